"""Environments in which eray cannot work on a real Slurm: a clear error, soon, and nothing left."""

import re
import socket

import pytest
from slurm_rig import USER, Rig
from worlds import WHO, expect_nothing_left, read_world

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
ON_NODE2 = 'if [ "$SLURMD_NODENAME" = node02 ]; then %s; fi; exec "$@"'


HOLD = """
import socket, time
held = [socket.create_server(("10.77.0.11", port)) for port in range(23000, 23016)]
print("held", flush=True)
time.sleep(60)
"""


def task(*, on_node02: str) -> list[str]:
    """Return a command for srun that runs bash words on node02 before it becomes ``who.py``."""
    return ["bash", "-c", ON_NODE2 % on_node02, "task", "python", WHO]


def expect_error(output: str, *parts: str) -> None:
    """Check that a line of eray's, or the last line of a traceback, says all of these."""
    lines = [line for line in output.splitlines() if re.match(r"(\[\d+\] )?(eray: |eray\.errors\.)", line)]
    assert any(all(part in line for part in parts) for line in lines), output


def test_batch_script_and_login_shell_are_no_tasks(rig: Rig) -> None:
    job = rig.sbatch(f"python {WHO}", "-N2").wait()
    expect_nothing_left(rig)
    assert job.exit_code == 3
    expect_error(job.output, f"NotATaskError: this is the batch-shell of job {job.id}", "node[01-02]", "`srun python")
    for nodes, reason in (
        ("-N2", "the job has 2 nodes, node[01-02]"),
        ("-N1", f"{socket.gethostname()} is not a node"),
    ):
        result = rig.salloc([nodes], f"python {WHO}")
        assert result.returncode == 3
        expect_error(result.output, "NotATaskError: this is the allocation-shell of job", reason, "`eray run -- python")
    expect_nothing_left(rig)


def test_one_node_batch_script_is_a_world_of_one(rig: Rig) -> None:
    job = rig.sbatch(f"python {WHO}", "-N1", "-n2").wait()
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    assert read_world(job.output).places == [("node01", 0)]
    said = re.findall(r"^eray: .*", job.output, re.M)
    assert len(said) == 1, job.output
    assert f"batch-shell of job {job.id}" in said[0]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("SLURM_STEP_TASKS_PER_NODE", None, "SlurmMissingError: missing SLURM_STEP_TASKS_PER_NODE"),
        ("SLURM_PROCID", "2", "SlurmContradictionError: SLURM_PROCID='2'"),
        ("SLURM_STEP_NODELIST", "node[01", "SlurmFormatError: SLURM_STEP_NODELIST='node[01'"),
    ],
)
def test_variable_missing_contradicting_or_malformed(rig: Rig, name: str, value: str | None, error: str) -> None:
    change = ["-u", name] if value is None else [f"{name}={value}"]
    result = rig.srun(["-N2", "-n2", "env", *change, "python", WHO])
    expect_nothing_left(rig)
    assert result.returncode == 3, result.output
    expect_error(result.output, error)


HEADLESS = (
    "ERAY_HEAD='node03': is no node of the job (node[01-02]) and no address of the first of them, node01 (it leads to"
)


@pytest.mark.parametrize("program", [["python", WHO], ["eray", "run", "--", "python", WHO]], ids=["tasks", "eray run"])
def test_head_outside_the_job_is_refused_in_time_on_all_nodes(rig: Rig, program: list[str]) -> None:
    result = rig.srun(["-N2", "-n2", *program], ERAY_HEAD="node03", timeout_s=40)
    expect_nothing_left(rig)
    assert result.returncode == 3, result.output
    expect_error(result.output, HEADLESS)


def test_plan_under_srun_has_one_header_and_a_line_of_each_task(rig: Rig) -> None:
    result = rig.srun(["-N2", "-n4", "--ntasks-per-node=2", "--gpus-per-node=4", "eray", "plan"]).check()
    assert len(re.findall(r"^cluster key ", result.stdout, re.M)) == 1
    assert sorted(re.findall(r"^(\d) +(node\d\d) .* split$", result.stdout, re.M)) == [
        ("0", "node01"),
        ("1", "node01"),
        ("2", "node02"),
        ("3", "node02"),
    ]


def test_dry_run_in_a_batch_script_refuses_what_run_would(rig: Rig) -> None:
    options = "eray run --processes-per-node 2 --devices-per-process 3"
    job = rig.sbatch(f"{options} --dry-run -- true; echo code $?; {options} -- true", "-N2", "--gpus-per-node=4").wait()
    assert job.exit_code == 3, job.output
    assert "code 3" in job.output
    assert job.output.count("node node01: 2 processes x 3 devices = 6, the node has 4") == 2


@pytest.mark.full
def test_secret_homes_that_differ_are_told_from_no_beacon(rig: Rig) -> None:
    command = task(on_node02="export HOME=$(mktemp -d)")
    result = rig.srun(["-N2", "-n2", *command], ERAY_JOIN_TIMEOUT_S="10")
    expect_nothing_left(rig)
    assert result.returncode == 5, result.output  # of the one that waited in vain
    expect_error(result.output, "JoinTimeoutError", "process 1 (node02) did not join")
    expect_error(result.output, "node02", "secret", "home", "ERAY_SECRET")


def test_secret_that_others_can_read_is_refused(rig: Rig) -> None:
    home = rig.share.out / "open-home"
    rig.run(
        [
            "bash",
            "-c",
            f"mkdir -p {home}/.eray && chmod 700 {home}/.eray && umask 0 && "
            f"head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >{home}/.eray/secret",
        ]
    ).check()
    result = rig.srun(["-N2", "-n2", "python", WHO], HOME=str(home))
    expect_nothing_left(rig)
    assert result.returncode == 3, result.output
    expect_error(result.output, f"SecretError: {home}/.eray/secret: can be read by others (mode 0666")


def test_auth_disabled_works_without_any_home_and_warns(rig: Rig) -> None:
    options = ["-N2", "-n2", *task(on_node02="export HOME=/nonexistent")]
    result = rig.srun(options, ERAY_AUTH="disabled").check()
    expect_nothing_left(rig)
    assert read_world(result.output).places == [("node01", 0), ("node02", 0)]
    expect_error(result.output, "ERAY_AUTH=disabled")


@pytest.mark.full
def test_run_directory_that_is_a_link_or_of_another_user_is_refused(rig: Rig) -> None:
    uid = rig.run(["id", "-u"]).check().stdout.strip()
    rig.exec("node01", f"install -d -o {USER} -m 700 /tmp/elsewhere; ln -s /tmp/elsewhere /tmp/eray-{uid}").check()
    rig.exec("node02", f"install -d -m 700 /tmp/eray-{uid}").check()
    try:
        result = rig.srun(["-N2", "-n2", "python", WHO])
        expect_nothing_left(rig)
        assert result.returncode == 3, result.output
        expect_error(result.output, f"DirectoryError: /tmp/eray-{uid}: is a symbolic link")
        expect_error(result.output, f"DirectoryError: /tmp/eray-{uid}: belongs to uid 0, this is uid {uid}")
    finally:
        for node in ("node01", "node02"):
            rig.exec(node, f"rm -rf /tmp/eray-{uid} /tmp/elsewhere").check()


@pytest.mark.full
def test_loopback_and_interface(rig: Rig) -> None:
    rig.exec("node02", "printf '127.0.0.1 localhost\\n127.0.1.1 node02\\n10.77.0.11 node01\\n' >/tmp/hosts").check()
    rig.exec("node02", "mount --bind /tmp/hosts /etc/hosts").check()
    try:
        result = rig.srun(["-N2", "-n2", "python", WHO])
    finally:
        rig.exec("node02", "umount /etc/hosts; rm /tmp/hosts").check()
    expect_nothing_left(rig)
    assert result.returncode in (3, 4), result.output
    expect_error(result.output, "node02", "127.0.1.1", "loopback", "/etc/hosts", "ERAY_INTERFACE")
    result = rig.srun(["-N2", "-n2", "python", WHO], ERAY_INTERFACE="lo")
    expect_nothing_left(rig)
    assert result.returncode == 3, result.output
    expect_error(result.output, "ERAY_INTERFACE=lo is loopback", "eth0 10.77.0.1")


def test_beacon_ports_all_busy(rig: Rig) -> None:
    holder = rig.share.out / "hold.py"
    holder.write_text(HOLD)
    running = rig.start(["srun", "-N1", "-w", "node01", "python", str(holder)])
    rig.wait_until(lambda: "held" in running.output, 10, "the ports to be held")
    result = rig.srun(["-N2", "-n2", "python", WHO], ERAY_PORT_RANGE="23000-23015", ERAY_CLUSTER_TIMEOUT_S="8")
    running.kill()
    expect_nothing_left(rig)
    assert result.returncode == 4, result.output
    expect_error(result.output, "BeaconError", "all ports of the beacon are busy", "ERAY_PORT_RANGE")


def test_ray_versions_that_differ(rig: Rig) -> None:
    fake = rig.share.out / "fake"
    info = fake / "ray-2.61.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ray\nVersion: 2.61.0\n")
    result = rig.srun(["-N2", "-n2", *task(on_node02=f"export PYTHONPATH={fake}:$PYTHONPATH")])
    expect_nothing_left(rig)
    assert result.returncode == 4, result.output
    expect_error(result.output, "node node02: it has Ray 2.61.0, the head node01 has", "use one environment")
