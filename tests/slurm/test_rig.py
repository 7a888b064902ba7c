"""The rig itself works: its nodes, its users, its jobs, and the search for what is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rig_processes import Process
from slurm_rig import GUARD, HELD, SCRIPT, STATE, Rig, bring_up, owner

pytestmark = pytest.mark.slurm


def raylets(rig: Rig, node: str) -> list[Process]:
    return [process for process in rig.processes(node) if "raylet" in process.cmdline.split()[0]]


@pytest.mark.parametrize("user", ["rig", "root"])
def test_srun_three_nodes_each_answers(rig: Rig, user: str) -> None:
    result = rig.srun(["-N3", "-l", "bash", "-c", "echo $(hostname) $(id -un) $SLURM_NODEID"], user=user).check()
    assert sorted(result.stdout.splitlines()) == [f"{n}: node0{n + 1} {user} {n}" for n in range(3)]


def test_srun_python_imports_ray_jax_and_eray_from_the_tree(rig: Rig) -> None:
    code = "import ray, jax, eray, sys; print(sys.version_info[:2], ray.__version__, jax.__version__, eray.__path__[0])"
    result = rig.srun(["-N1", rig.python, "-c", code]).check()
    import jax
    import ray

    assert result.stdout.strip() == f"{sys.version_info[:2]} {ray.__version__} {jax.__version__} {rig.tree}/eray"


def test_srun_python_on_path_is_the_shared_one(rig: Rig) -> None:
    assert rig.srun(["-N1", "python", "-c", "import sys; print(sys.executable)"]).check().stdout.strip() == rig.python


def test_sbatch_output_state_and_code(rig: Rig) -> None:
    job = rig.sbatch("srun -N2 hostname; exit 7", "-N2").wait(30)
    assert sorted(job.output.split()) == ["node01", "node02"]
    assert (job.state, job.exit_code) == ("FAILED", 7)


def test_sbatch_array_outputs_of_all_elements(rig: Rig) -> None:
    job = rig.sbatch("echo element $SLURM_ARRAY_TASK_ID", "--array=0-1").wait(30)
    assert sorted(job.output.splitlines()) == ["element 0", "element 1"]
    assert (job.state, job.exit_code) == ("COMPLETED", 0)


def test_salloc_shell_runs_on_the_host(rig: Rig) -> None:
    result = rig.salloc(["-N2"], "hostname; srun hostname").check()
    assert sorted(result.stdout.split()) == sorted([os.uname().nodename, "node01", "node02"])


def test_gpus_fake_devices_are_counted(rig: Rig) -> None:
    result = rig.srun(["-N1", "--gpus-per-node=2", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES"]).check()
    assert result.stdout.strip() == "0,1"


def test_leftovers_name_a_process_and_a_directory(rig: Rig) -> None:
    assert rig.leftovers() == []
    start = "setsid bash -c 'exec -a /x/raylet sleep 300' </dev/null >/dev/null 2>&1 &"
    rig.exec("node02", f"mkdir -p /tmp/eray-1/2; {start}").check()
    try:
        process = rig.wait_until(lambda: raylets(rig, "node02"), 5, "the process to be seen")[0]
        assert rig.leftovers() == [f"node02: {process.pid} root /x/raylet 300", "node02: /tmp/eray-1/2"]
    finally:
        rig.exec("node02", "rm -r /tmp/eray-1")
        for process in raylets(rig, "node02"):
            os.kill(process.host_pid, signal.SIGKILL)
    rig.wait_until(lambda: not rig.leftovers(), 5, "nothing to be left")


def test_leftovers_on_the_host_count_only_what_a_test_started(rig: Rig) -> None:
    stranger = subprocess.Popen(["bash", "-c", "exec -a /y/raylet sleep 30"])
    ours = rig.start("exec -a /x/raylet sleep 30", user="root")
    rig.wait_until(rig.leftover_processes, 5, "the process to be seen")
    found = rig.leftovers()
    stranger.kill()
    stranger.wait()
    ours.kill()
    assert found == [f"host: {ours.process.pid} root /x/raylet 30"]
    assert rig.leftovers() == []


def test_wait_command_too_long_is_killed_and_shown(rig: Rig) -> None:
    with pytest.raises(AssertionError, match=r"still ran after 2 s, having printed:\nhello"):
        rig.run("echo hello; sleep 60", timeout_s=2)


def test_clear_cancels_jobs_and_commands(rig: Rig) -> None:
    job = rig.sbatch("sleep 600")
    running = rig.start(["srun", "-N1", "sleep", "600"])
    rig.wait_until(lambda: job.state == "RUNNING", 20, "the job to run")
    rig.clear()
    assert running.process.poll() is not None
    assert job.wait(10).state == "CANCELLED"


def test_signal_interrupt_reaches_the_step(rig: Rig) -> None:
    running = rig.start(["srun", "-N1", "bash", "-c", "trap 'echo caught; exit 3' INT; echo ready; sleep 60 & wait"])
    rig.wait_until(lambda: "ready" in running.output, 20, "the step to start")
    running.interrupt()
    time.sleep(0.3)
    running.interrupt()
    assert "caught" in running.wait(20).output


def test_kill_node_and_restore(rig: Rig) -> None:
    rig.control("kill-node", "node03")
    try:
        assert rig.exec("node03", ["true"]).returncode != 0
    finally:
        rig.restore("node03")


def test_rig_of_another_that_lives_is_refused_and_stays_up(rig: Rig) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        refused = bring_up(stranger.pid)
        subprocess.run([SCRIPT, "down", str(stranger.pid)], check=True)
    finally:
        stranger.kill()
        stranger.wait()
    assert refused.returncode == HELD
    for words in (f"up for pid {os.getpid()} of root since 20", "pytest", f"or end it: {SCRIPT} down"):
        assert words in refused.stderr
    assert rig.run(["sinfo", "-h", "-o", "%D"]).check().stdout.split() == ["3"]


def test_rig_of_an_owner_that_is_gone_is_taken_down_and_comes_up_anew(rig: Rig) -> None:
    gone = subprocess.Popen(["sleep", "60"])
    started = Path(f"/proc/{gone.pid}/stat").read_text().rpartition(")")[2].split()[19]
    gone.kill()
    gone.wait()
    job = rig.sbatch("sleep 600")
    (STATE / "owner.pid").write_text(f"{gone.pid} {started}\n")
    (STATE / "owner").write_text("pid 7 of somebody\n")
    taken = bring_up(os.getpid())
    assert taken.returncode == 0, taken.stderr
    assert "taking down what is left of pid 7 of somebody" in taken.stderr
    assert f"pid {os.getpid()} of root since 20" in owner()
    assert job.id not in rig.run(["squeue", "-h", "-o", "%A"]).check().stdout.split()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_guard_takes_all_down_when_its_owner_dies(tmp_path: Path, number: int) -> None:
    """Play the fixture's part with a stand-in for the rig's script: what goes down and when does not depend on it."""
    script, share, downed = tmp_path / "script", tmp_path / "share", tmp_path / "downed"
    share.mkdir()
    script.write_text(f"#!/bin/sh\necho $@ >{downed}\n")
    script.chmod(0o755)
    code = "import subprocess, sys, time; subprocess.Popen(['sh', '-c', *sys.argv[1:]], stdin=subprocess.PIPE, "
    code += "start_new_session=True); print('up', flush=True); time.sleep(60)"
    owner = subprocess.Popen([sys.executable, "-c", code, GUARD, script, share, "7"], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    assert share.exists()
    owner.send_signal(number)
    owner.wait(10)
    owner.stdout.close()
    deadline = time.monotonic() + 5
    while share.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert downed.read_text() == "down 7\n"
    assert not share.exists()
