"""Settings and surroundings that cannot work: an error that names the variable, its value and the remedy, in time."""

import os
import re
from pathlib import Path

import pytest
from laptop import Laptop, in_mount_namespace

pytestmark = [pytest.mark.ray, pytest.mark.jax]

CASES = Path(__file__).resolve().parents[1] / "cases" / "slurm-env"
CONNECT = "import eray; eray.connect(jax=False); print('connected')"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ERAY_PORT_RANGE": "5"}, r"ERAY_PORT_RANGE='5': must be two ports, such as 24000-29999"),
        ({"ERAY_AUTH": "maybe"}, r"ERAY_AUTH='maybe': must be one of token, disabled"),
        ({"ERAY_DEVICES": "some"}, r"ERAY_DEVICES='some': must be all, split, own, none, or ordinals such as 0,2"),
        ({"ERAY_LOG": "loud"}, r"ERAY_LOG='loud': must be one of debug, info, warning, error"),
        ({"ERAY_JOIN_TIMEOUT_S": "-1"}, r"ERAY_JOIN_TIMEOUT_S='-1': must be a number of seconds greater than 0"),
        ({"ERAY_INTERFACE": "wlan9"}, r"ERAY_INTERFACE='wlan9': node \S+ has no address there; its interfaces are lo "),
        ({"ERAY_TMPDIR": "here"}, r"ERAY_TMPDIR='here': must be an absolute path"),
        ({"ERAY_TMPDIR": "/no/such"}, r"/no/such: is no directory; make it, or set ERAY_TMPDIR"),
        ({"ERAY_TMPDIR": "/sys"}, r"/sys/eray-\d+: cannot be made \(.*\); set ERAY_TMPDIR .* that you can write to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_setting_that_cannot_work(laptop: Laptop, env: dict[str, str], words: str) -> None:
    runs = [laptop.eray("run", "-n", "1", "--", "echo", "hi", **env), laptop.python("-c", CONNECT, **env)]
    for run in runs:
        result = run.wait(20)
        assert result.returncode == 3, result.output
        assert re.search(words, result.stderr.splitlines()[-1]), result.stderr
        assert result.stdout == ""


def test_temp_directory_that_is_too_long(laptop: Laptop, tmp_path: Path) -> None:
    result = laptop.eray("run", "--", "echo", "hi", ERAY_TMPDIR=str(tmp_path)).wait(20)
    assert result.returncode == 3
    assert re.search(rf"^eray: ERAY_TMPDIR={tmp_path}: too long: it has \d+ bytes, \d+ are", result.stderr)
    assert "set ERAY_TMPDIR to a shorter directory" in result.stderr


def link(path: Path) -> None:
    path.symlink_to(path.parent / "work")


def public_directory(path: Path) -> None:
    path.mkdir(mode=0o755)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (link, r"is a symbolic link \(of uid \d+\); remove it, or set ERAY_TMPDIR"),
        (public_directory, r"is open to others \(mode 0755, must be 0700\); `chmod 700 \S+`"),
        (Path.touch, r"is no directory; remove it, or set ERAY_TMPDIR"),
    ],
)
def test_run_directory_that_is_not_safe(laptop: Laptop, spoil, words: str) -> None:
    path = laptop.root / f"eray-{os.getuid()}"
    spoil(path)
    result = laptop.eray("run", "--", "echo", "hi").wait(20)
    assert result.returncode == 3
    assert re.search(rf"^eray: {path}: {words}", result.stderr)
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            "process_index=5, process_count=2",
            2,
            "UsageError: process_index 5 must be 0 or more and below process_count 2",
        ),
        ("process_index=0", 2, "UsageError: process_index is 0 and process_count is None: give both or none"),
    ],
)
def test_connect_with_arguments_that_make_no_sense(laptop: Laptop, arguments: str, code: int, words: str) -> None:
    result = laptop.python("-c", f"import eray; eray.connect({arguments})").wait(20)
    assert result.returncode == code
    assert words in result.stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (
            "127.0.0.1:9",
            "RAY_ADDRESS=127.0.0.1:9 names a cluster that is gone: nothing answers there; `unset RAY_ADDRESS`",
        ),
        ("auto", "RAY_ADDRESS='auto' is no address; give host:port of that cluster's GCS"),
    ],
)
def test_ray_address_that_cannot_be_reached(laptop: Laptop, address: str, words: str) -> None:
    for program in (CONNECT, "import eray; eray.attach()"):
        result = laptop.python("-c", program, RAY_ADDRESS=address).wait(20)
        assert result.returncode == 4 or "attach" in program
        assert "RayAttachError: node " in result.stderr
        assert words in result.stderr


def test_proxies_and_a_ray_address_do_no_harm(laptop: Laptop) -> None:
    nowhere = "http://127.0.0.1:9"
    names = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    env = dict.fromkeys(names, nowhere) | {"RAY_ADDRESS": "127.0.0.1:9"}
    program = (
        "import eray\nwith eray.connect() as conn:\n  conn.barrier('b'); eray.attach(); print('through', flush=True)"
    )
    result = laptop.eray("run", "-n", "2", "--", "python", "-c", program, **env).wait().check()
    assert result.stdout.count("] through\n") == 2


def test_auth_disabled_works_and_warns(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "1", "--", "python", "-c", CONNECT, ERAY_AUTH="disabled").wait().check()
    assert result.stdout == "[0] connected\n"
    assert (
        "eray: ERAY_AUTH=disabled: whoever reaches a port of this cluster can run programs in it as you"
        in result.stderr
    )


def test_cluster_that_does_not_come_up_in_time(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "1", "--", "sleep", "60", ERAY_CLUSTER_TIMEOUT_S="0.5").wait(20)
    assert result.returncode == 4
    assert re.search(r"^eray: .*(did not bring Ray up within|Ray did not start: .* after) 0.5 s", result.stderr)
    assert "eray: the logs of node " in result.stderr


def slurm_environment(case: str, without: str = "", **changed: str) -> dict[str, str]:
    lines = (CASES / case / "task0.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if line.startswith("SLURM_"))
    env.pop(without, None)
    return env | changed


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (
            slurm_environment("sbatch-N3-only.batch"),
            r"NotATaskError: this is the batch.shell of job .*eray run -- ",
        ),
        (slurm_environment("srun-N3.step0", "SLURM_PROCID"), r"SlurmMissingError: missing SLURM_PROCID"),
        (slurm_environment("srun-N3.step0", SLURM_PROCID="9"), r"SlurmContradictionError: .*SLURM_PROCID='9'"),
        (slurm_environment("srun-N3.step0", SLURM_STEP_NODELIST="n[1-"), r"SlurmFormatError: .*NODELIST='n\[1-'"),
    ],
    ids=["batch-shell", "missing", "contradiction", "format"],
)
def test_slurm_environment_that_cannot_work(laptop: Laptop, env: dict[str, str], words: str) -> None:
    result = laptop.python("-c", CONNECT, **env).wait(20)
    assert result.returncode == 3, result.output
    assert re.search(words, result.stderr), result.stderr


SMALL_SHM = 'mount -t tmpfs -o size=20m tmpfs /dev/shm; "$@"'


def test_shared_memory_that_is_too_small(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "1", "--", "sleep", "60", within=in_mount_namespace(SMALL_SHM)).wait(20)
    assert result.returncode == 3
    assert re.search(r"^eray: /dev/shm: node \S+ has 20 MiB free, Ray's object store needs 80; remove", result.stderr)
