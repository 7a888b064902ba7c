"""What fails beneath a cluster, in a real form: a disk that is full, a home that hangs, a clock that jumps."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from laptop import Laptop, await_text, in_mount_namespace

PROGRAMS = Path(__file__).parent / "programs"
JUMPING_CLOCK = PROGRAMS / "jumping_clock"
FILLS_DISK, HANGS = PROGRAMS / "fills_disk.py", PROGRAMS / "hangs.py"
CASES = Path(__file__).resolve().parents[1] / "cases" / "slurm-env"
CONNECT = "import eray; eray.connect(jax=False); print('connected')"
HUNG = [*in_mount_namespace('exec "$@"'), sys.executable, str(HANGS)]
REMEDY = "free space there, or set ERAY_TMPDIR to another local disk"


def can(*argv: str) -> bool:
    return subprocess.run(argv, capture_output=True).returncode == 0


needs_mounts = pytest.mark.skipif(
    not can(*in_mount_namespace("mount -t tmpfs tmpfs /mnt")), reason="needs to mount: root, or user namespaces"
)
needs_fuse = pytest.mark.skipif(not can(*HUNG, "/mnt", "true"), reason="needs to mount a FUSE: /dev/fuse, and root")
pytestmark = [pytest.mark.ray, pytest.mark.jax, needs_mounts]


def small_disk(laptop: Laptop, options: str, before: str = "") -> list[str]:
    """Return what runs a command with ERAY_TMPDIR on a tmpfs of its own, which then shows what is left there."""
    disk = laptop.root / "tmp"
    return in_mount_namespace(
        f"mount -t tmpfs -o {options} tmpfs {disk}; {before} export ERAY_TMPDIR={disk}; "
        f'code=0; "$@" || code=$?; echo left: $(ls -A {disk}); exit $code'
    )


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("size=4m", r"4\.0 MiB of 4\.0 MiB free in"),
        ("size=4k", r"4\.0 KiB of 4\.0 KiB free in"),
        ("nr_inodes=2", "room for 1 more files in"),
        ("nr_inodes=60", r"room for \d+ more files in"),
    ],
)
def test_disk_that_is_full_at_the_start_is_named_at_once(laptop: Laptop, options: str, found: str) -> None:
    within = small_disk(laptop, options)
    runs = [
        laptop.eray("run", "-n", "2", "--", "echo", "hi", within=within),
        laptop.start([*within, sys.executable, "-c", CONNECT]),
    ]
    for run in runs:
        result = run.wait(20)
        assert result.returncode == 3, result.output
        assert result.stdout == "left:\n"
        short = rf"node \S+ has {found} {laptop.root}/tmp; sockets, logs and state need .*; {REMEDY}$"
        none_at_all = r"\S+ cannot be made \(No space left on device\); set ERAY_TMPDIR"
        words = rf"{laptop.root}/tmp(: {short}|/{none_at_all})"
        assert re.search(words, result.stderr.splitlines()[-1]), result.stderr
        assert result.wall_s < 10


@pytest.mark.full
def test_disk_that_fills_while_ray_starts_is_named(laptop: Laptop) -> None:
    within = small_disk(laptop, "size=70m")
    fill = 'head -c 70m /dev/zero >"$ERAY_TMPDIR/filler" 2>/dev/null; exec sleep 60'
    result = laptop.eray("run", "--", "sh", "-c", fill, within=within).wait(30)
    assert result.returncode == 4, result.output
    assert re.search(rf"^eray: .* with 0 B of 70.0 MiB free in {laptop.root}/tmp\b", result.stderr, re.M), result.stderr
    assert result.stdout == "left: filler\n"


def test_disk_that_fills_later_is_named_and_the_world_goes_on(laptop: Laptop) -> None:
    disk, told = laptop.root / "tmp", laptop.root / "work" / "told"
    os.mkfifo(told)
    within = small_disk(laptop, "size=100m")
    run = laptop.eray("run", "-n", "2", "--", "python", FILLS_DISK, disk, told, within=within)
    await_text(run, f"free in {disk}; where that is used up, logs and the coordinator's state are not kept, and Ray")
    told.write_text("go on")
    result = run.wait(20).check()
    assert result.stdout.count("] 1 node\n") == 2
    assert result.stdout.endswith("left: filler\n")
    assert len(re.findall(r"^eray: ", result.stderr, re.M)) == 1
    told.unlink()


@pytest.mark.full
def test_shared_memory_that_fills_later_is_named(laptop: Laptop) -> None:
    told = laptop.root / "work" / "told"
    os.mkfifo(told)
    within = in_mount_namespace('mount -t tmpfs -o size=200m tmpfs /dev/shm; "$@"')
    run = laptop.eray("run", "-n", "2", "--", "python", FILLS_DISK, "/dev/shm", told, "objects", within=within)
    await_text(run, "No space left on device")
    told.write_text("go on")
    result = run.wait(20)
    assert result.returncode
    assert re.search(
        r"eray: .*raylet of node \S+ ended, with 0 B of 200.0 MiB free in /dev/shm: free space there", result.stderr
    )
    told.unlink()


def hung_home(laptop: Laptop) -> list[str]:
    """Return what runs a command whose home hangs: ERAY_STATE_DIR lies in it."""
    return [*HUNG, str(laptop.root / "home")]


def step_of_one(**more: str) -> dict[str, str]:
    """Return the environment of a step with one task, on this host."""
    lines = (CASES / "srun-n1.step0" / "task0.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if line.startswith("SLURM"))
    node = env["SLURMD_NODENAME"]
    return {name: socket.gethostname() if value == node else value for name, value in env.items()} | more


@needs_fuse
def test_home_that_hangs_holds_nobody_up_who_does_not_need_it(laptop: Laptop) -> None:
    result = laptop.eray("run", "--", "python", "-c", CONNECT, within=hung_home(laptop)).wait().check()
    assert (result.stdout, result.stderr) == ("[0] connected\n", "")


@needs_fuse
def test_home_that_hangs_is_named_where_the_secret_is_needed(laptop: Laptop) -> None:
    words = (
        rf"{laptop.root}/home/.eray/secret: does not answer for 5 s on node {socket.gethostname()}; see whether the "
        "file server is up, set ERAY_STATE_DIR to another place, or set ERAY_SECRET to 32 characters or more "
    )
    commands = (["-m", "eray", "run", "--", "echo", "hi"], ["-c", CONNECT])
    runs = [laptop.start([*hung_home(laptop), sys.executable, *command], **step_of_one()) for command in commands]
    for run in runs:
        result = run.wait(20)
        assert result.returncode == 3, result.output
        assert words in result.stderr.splitlines()[-1]
        assert result.wall_s < 10


@pytest.mark.full
def test_home_that_is_full_is_named_and_the_step_goes_on(laptop: Laptop) -> None:
    home = laptop.root / "home"
    within = in_mount_namespace(f'mount -t tmpfs -o size=4k tmpfs {home}; "$@"')  # the secret fits
    result = laptop.start([*within, sys.executable, "-c", CONNECT], **step_of_one()).wait().check()
    assert result.stdout == "connected\n"
    place, no_room = rf"{home}/.eray/jobs/\S+", "No space left on device"
    assert re.fullmatch(
        rf"eray: the login node will not find this cluster: {place}: cannot be written \({no_room}\); free .*\n"
        rf"eray: the logs of node \S+ are not all kept: {place}: {no_room}\n",
        result.stderr,
    ), result.stderr


@needs_fuse
def test_home_that_hangs_holds_the_end_of_a_step_up_for_seconds(laptop: Laptop) -> None:
    env = step_of_one(ERAY_SECRET="a" * 32)
    run = laptop.start([*hung_home(laptop), sys.executable, "-c", CONNECT], **env)
    await_text(run, "connected")
    began = time.monotonic()
    result = run.wait(20).check()
    assert time.monotonic() - began < 8
    assert re.fullmatch(
        rf"eray: the logs of node \S+ are not all kept: {laptop.root}/home/.eray does not take them within 3 s\n",
        result.stderr,
    )


@pytest.mark.full
@needs_fuse
def test_home_that_hangs_holds_the_end_of_a_lost_cluster_up_for_seconds(laptop: Laptop) -> None:
    stay = "import eray, time; eray.connect(jax=False); print('connected', flush=True); time.sleep(60)"
    run = laptop.eray("run", "-n", "2", "--", "python", "-c", stay, within=hung_home(laptop))
    for index in range(2):
        await_text(run, f"[{index}] connected")
    os.kill(laptop.pid_of("gcs_server", "--session-name"), signal.SIGKILL)
    began = time.monotonic()
    result = run.wait(20)
    assert time.monotonic() - began < 8
    assert result.returncode == 4, result.output
    assert "gcs_server of node " in result.stderr
    assert f"are not all kept: {laptop.root}/home/.eray does not take them within 3 s\n" in result.stderr


@needs_fuse
def test_logs_in_a_home_that_hangs_are_named_and_those_of_this_node_listed(laptop: Laptop) -> None:
    silent = f"eray: {laptop.root}/home/.eray/jobs: does not answer for 3 s; see whether its file server is up\n"
    run = laptop.eray("run", "--", "sleep", "60")
    laptop.run_directory()
    all_logs, of_another = (laptop.eray("logs", *words, within=hung_home(laptop)) for words in ([], ["--job", "4711"]))
    result = all_logs.wait(20).check()
    whose = r"eray: the logs of local-\w+ \(`eray run -- sleep 60`, for \d+ s\); `--job` chooses another\n"
    assert re.fullmatch(re.escape(silent) + whose, result.stderr)
    assert "logs live on this node in" in result.stdout
    result = of_another.wait(20)
    assert (result.returncode, result.stdout, result.stderr) == (3, "", silent)
    run.interrupt()
    assert run.wait(20).returncode == 130


@pytest.mark.full
def test_clock_that_jumps_ends_nothing_and_removes_nothing_that_lives(laptop: Laptop) -> None:
    told = laptop.root / "work" / "told"
    env = {"PYTHONPATH": os.pathsep.join(filter(None, (str(JUMPING_CLOCK), os.environ.get("PYTHONPATH"))))}
    run = laptop.eray("run", "-n", "2", "--", "python", PROGRAMS / "stay.py", told, **env)
    for index in range(2):
        await_text(run, f"[{index}] process {index} is in")
    before = sorted(laptop.run_directory().iterdir())
    laptop.python("-c", CONNECT, **env).wait().check()  # it looks for what killed supervisors left
    assert sorted(laptop.run_directory().iterdir()) == before
    told.touch()
    assert run.wait(20).check().stdout.count("running on 1 node\n") == 2
    told.unlink()
