"""What fails beneath a cluster, in a real form: a disk that is full. It is named, in time, and holds nobody."""

import os
import re
from pathlib import Path

import pytest
from laptop import Laptop, await_text, in_mount_namespace

pytestmark = [pytest.mark.ray, pytest.mark.jax]

FILLS_DISK = Path(__file__).parent / "programs" / "fills_disk.py"
CONNECT = "import eray; eray.connect(jax=False); print('connected')"
REMEDY = "free space there, or set ERAY_TMPDIR to another local disk"


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
        laptop.start([*within, "python", "-c", CONNECT]),
    ]
    for run in runs:
        result = run.wait(20)
        assert result.returncode == 3, result.output
        assert result.stdout == "left:\n"
        words = (
            rf"{laptop.root}/tmp: node \S+ has {found} {laptop.root}/tmp; sockets, logs and state need .*; {REMEDY}$"
        )
        assert re.search(words, result.stderr.splitlines()[-1]), result.stderr
        assert result.wall_s < 10


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
    await_text(run, f"has 0 B of 100.0 MiB free in {disk}: logs and the coordinator's state are not kept, and Ray may")
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
