"""The main job on one machine: the README's first command, and what is written when it makes no sense."""

import re

import pytest
from laptop import EXAMPLES, Laptop, in_mount_namespace, lines_of

pytestmark = [pytest.mark.ray, pytest.mark.jax]

HELLO = EXAMPLES / "hello_jax.py"
SEALED = """
for place in / /tmp /var/tmp /root /home; do
    ! [ -w $place ] || { mount --rbind $place $place; mount -o remount,ro,bind $place; }
done
mount --bind "$(dirname $HOME)" "$(dirname $HOME)"
mount -o remount,rw,bind "$(dirname $HOME)"
mount -t tmpfs tmpfs /dev/shm
cd "$PWD" # into what is now mounted there
touch /tmp/outside 2>/dev/null && exit 99
"$@"
code=$?
find /dev/shm -mindepth 1
exit $code
"""
"""Runs a command where only the test's own directories can be written to, and lists what it left in /dev/shm."""


def test_run_four_processes_reach_their_first_collective(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "4", "--", "python", HELLO).wait().check()
    said = lines_of(result)
    nodes = set()
    for index in range(4):
        found = re.search(
            rf"process {index} of 4 on (\S+): 1 of 4 devices .*, Ray node ([0-9a-f]{{56}})", result.stdout
        )
        assert found, result.output
        assert any(f"process {index} of 4 " in line for line in said[index])
        nodes.add(found.groups())
    assert len(nodes) == 1
    assert "all-gather over 4 processes is right: [0, 1, 2, 3]" in "\n".join(said[0])


def test_run_writes_nowhere_else(laptop: Laptop) -> None:
    words = ["run", "-n", "2", "--devices-per-process", "2", "--", "python", HELLO]
    result = laptop.eray(*words, within=in_mount_namespace(SEALED)).wait().check()
    assert "all-gather over 2 processes is right: [0, 0, 1, 1]" in result.stdout
    assert "2 of 4 devices" in result.stdout
    assert not re.search("^/dev/shm/", result.stdout, re.MULTILINE)


def test_connect_alone_is_a_world_of_one(laptop: Laptop) -> None:
    result = laptop.python(HELLO).wait().check()
    assert "Traceback" not in result.output
    assert "process 0 of 1 on " in result.stdout
    assert "all-gather over 1 processes is right: [0]" in result.stdout


def test_train_loss_falls_over_two_processes(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "2", "--", "python", EXAMPLES / "train.py").wait().check()
    assert re.search(
        r"loss 0\.\d+ to 0\.\d+ on 128 rows, 2 processes and 2 devices; \d+ parameters equal", result.stdout
    )


def test_run_needs_no_eray_in_the_program(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "1", "--", "echo", "hi").wait().check()
    assert (result.stdout, result.stderr) == ("[0] hi\n", "")


def test_processes_that_know_nothing_of_eray_may_end_one_after_the_other(laptop: Laptop) -> None:
    stays = (
        'if [ "$ERAY_PROCESS_INDEX" = 0 ]; then until [ -e "$ERAY_RUN_DIR/coordinator.json" ]; do sleep 0.1; done; fi'
    )
    result = laptop.eray("run", "-n", "2", "--", "sh", "-c", f"{stays}; echo hi").wait().check()
    assert (sorted(result.stdout.splitlines()), result.stderr) == (["[0] hi", "[1] hi"], "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run"], 2, "no program; write it after `--`, such as `eray run -n 4 -- python train.py`"),
        (["run", "-n", "2", "--"], 2, "no program"),
        (["run", "-n", "0", "--", "echo"], 2, "argument -n/--processes: '0' must be a whole number, 1 or more"),
        (["run", "-n", "2", "--processes-per-node", "2", "--", "echo"], 2, "cannot both be given"),
        (["run", "--devices-per-process", "x", "--", "echo"], 2, "'x' must be a whole number"),
        (
            ["run", "-n", "2", "--", "no-such-program"],
            127,
            "process 0 on .* cannot be started: No such file or directory: 'no-such-program'",
        ),
        (["run", "-n", "1", "--", "/dev/null"], 126, "cannot be started: Permission denied: '/dev/null'"),
        (["bogus"], 2, "'bogus' is no command; the commands are run, up, "),
        (["statsu"], 2, "'statsu' is no command; did you mean status\\?"),
        ([], 2, "required: COMMAND"),
        (["node"], 2, "started by eray itself"),
    ],
)
def test_command_that_makes_no_sense(laptop: Laptop, words: list[str], code: int, message: str) -> None:
    result = laptop.eray(*words).wait(20)
    assert result.returncode == code, result.output
    assert re.search(message, result.stderr, re.DOTALL), result.stderr
    assert result.stdout == ""
