"""Drive the Slurm rig from a test: run commands as its users, submit jobs, see what is left behind."""

import os
import pwd
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from commands import Result, Running
from rig_processes import Process, has_in_environment, is_below, pid_namespace, processes_in
from rig_share import Share

SCRIPT = Path(__file__).with_name("slurm-rig")
STATE = Path("/run/slurm-rig")
USER = "rig"
GUEST = "guest"
"""Another plain user, who has nothing to do with the first."""
# The guard lives until the write end of its stdin is closed, by us or by our death, of whatever cause. It holds the
# lock until all is down. Another's rig, which we did not get, stays up.
GUARD = 'cat >/dev/null; "$0" down "$2"; rm -rf "$1"'
HELD = 3
"""The script's exit code where the rig is another's."""
NODES = 3
Command = str | Sequence[str | os.PathLike[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """A batch job, or all elements of a job array."""

    id: str
    rig: "Rig"
    directory: Path

    def wait(self, timeout_s: float = 120) -> "Job":
        """Wait until the job has ended and return it; raise AssertionError with its output if it does not."""
        try:
            self.rig.wait_until(lambda: self.ended, timeout_s, f"the end of job {self.id}")
        except AssertionError as exc:
            raise AssertionError(f"{exc}; it is {self.state} and printed:\n{self.output}") from None
        return self

    @property
    def output(self) -> str:
        """What the job printed; of an array, one element after the other."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.directory.glob(f"{self.id}-*")))

    @property
    def state(self) -> str:
        """Slurm's word, such as COMPLETED or FAILED; different ones of an array's elements with commas."""
        return ",".join(sorted({record["JobState"] for record in self.records()}))

    @property
    def exit_code(self) -> int:
        """The script's code, 128 + n for a signal; the largest one of an array."""
        pairs = [record["ExitCode"].split(":") for record in self.records()]
        return max(128 + int(sig) if int(sig) else int(code) for code, sig in pairs)

    def cancel(self, *options: str) -> None:
        """Run `scancel` with these options on the job."""
        self.rig.run(["scancel", *options, self.id]).check()

    def records(self) -> list[dict[str, str]]:
        """Return what `scontrol show job` says, one dict an element."""
        shown = self.rig.run(["scontrol", "-o", "show", "job", self.id]).check()
        return [
            dict(re.findall(r"(\S+?)=(\S*)", line)) for line in shown.stdout.splitlines() if line.startswith("JobId=")
        ]

    @property
    def ended(self) -> bool:
        """Whether Slurm is done with it."""
        alive = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD"}
        return not alive & {record["JobState"] for record in self.records()}


@dataclass
class Rig:
    """The running cluster. It is ours alone while the tests run."""

    nodes: tuple[str, ...]
    share: Share
    mark: str  # NAME=value in the environment of all that tests start
    started: float = field(default_factory=lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
    _running: list[Running] = field(default_factory=list)

    @property
    def python(self) -> str:
        return self.share.python

    @property
    def tree(self) -> Path:
        """The copy of the working tree; commands start there."""
        return self.share.tree

    def environment(self, user: str = USER) -> dict[str, str]:
        """Return the environment of a command: a login's, with the shared python and eray first on PATH."""
        entry = pwd.getpwnam(user)
        name, _, value = self.mark.partition("=")
        return {
            "HOME": str(self.share.home(user)),
            "USER": user,
            "LOGNAME": user,
            "SHELL": entry.pw_shell,
            "LANG": "C.UTF-8",
            "PATH": f"{self.share.root}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": str(self.tree),
            name: value,
        }

    def start(self, command: Command, user: str = USER, env: Mapping[str, str] | None = None) -> Running:
        """Start a command on the host, the login node; a string goes to bash."""
        argv = ["bash", "-c", command] if isinstance(command, str) else [os.fspath(part) for part in command]
        running = Running([*_become(user), *argv], self.environment(user) | dict(env or {}), self.tree)
        self._running.append(running)
        return running

    def run(
        self, command: Command, user: str = USER, timeout_s: float = 60, env: Mapping[str, str] | None = None
    ) -> Result:
        """Run a command on the host to its end."""
        return self.start(command, user, env).wait(timeout_s)

    def srun(self, arguments: Sequence[str], user: str = USER, timeout_s: float = 90, **env: str) -> Result:
        """Run `srun` with these arguments."""
        return self.run(["srun", *arguments], user, timeout_s, env)

    def salloc(self, options: Sequence[str], command: str, user: str = USER, timeout_s: float = 90) -> Result:
        """Run a bash command in the shell of an allocation, on the login node."""
        return self.run(["salloc", *options, "bash", "-c", command], user, timeout_s)

    def sbatch(self, script: str, *options: str, user: str = USER, env: Mapping[str, str] | None = None) -> Job:
        """Submit the lines of a bash script; stdout and stderr go to one file."""
        directory = Path(tempfile.mkdtemp(prefix="job-", dir=self.share.out))
        directory.chmod(0o1777)
        text = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
        (directory / "script").write_text(text)
        argv = ["sbatch", "--parsable", f"--output={directory}/%A-%j.out", *options, str(directory / "script")]
        return Job(self.run(argv, user, env=env).check().stdout.strip().partition(";")[0], self, directory)

    def exec(self, node: str, command: Command, user: str = "root", timeout_s: float = 60) -> Result:
        """Run a command on a node outside of Slurm, as ssh would; a string goes to bash."""
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        env = self.environment(user)
        running = Running([str(SCRIPT), "exec", node, *_become(user), *map(os.fspath, argv)], env, self.tree)
        self._running.append(running)
        return running.wait(timeout_s)

    def control(self, *arguments: str) -> None:
        """Run a command of the rig's script, such as ``kill-node node02`` or ``restore-node node02``."""
        self.run([SCRIPT, *arguments], "root").check()

    def restore(self, node: str) -> None:
        """Plug a node in, boot it if it is dead, and wait until it runs jobs again."""
        self.control("restore-node", node)
        self.wait_until(lambda: self.srun(["-w", node, "true"], timeout_s=60).returncode == 0, 60, f"{node} to be back")

    def processes(self, node: str) -> list[Process]:
        """Return what runs on a node, its own daemons included."""
        init = (STATE / f"{node}.pid").read_text().split()[0]
        return list(processes_in(pid_namespace(int(init))))

    def leftover_processes(self) -> list[str]:
        """Return processes of eray or Ray on any node, and on the host those that tests started."""
        found = [
            f"{node}: {process.pid} {process.user} {process.cmdline}"
            for node in self.nodes
            for process in self.processes(node)
            if process.belongs_to_eray_or_ray
        ]
        for process in processes_in(pid_namespace(os.getpid())):
            # Ray's processes write a title over their environment; they stay in the directory where ours start.
            ours = has_in_environment(process.host_pid, self.mark) or is_below(process.host_pid, self.share.root)
            if ours and process.started > self.started and process.belongs_to_eray_or_ray:
                found.append(f"host: {process.pid} {process.user} {process.cmdline}")
        return found

    def leftover_directories(self) -> list[str]:
        """Return run directories of eray on any node."""
        lists = [(node, self.exec(node, "ls -d /tmp/eray-*/* 2>/dev/null").stdout.split()) for node in self.nodes]
        return [f"{node}: {path}" for node, paths in lists for path in paths]

    def leftovers(self) -> list[str]:
        """Return all that eray or Ray left behind."""
        return self.leftover_processes() + self.leftover_directories()

    def wait_until(self, predicate: Callable[[], T], timeout_s: float, what: str) -> T:
        """Return the first true value of ``predicate``; raise AssertionError when it takes longer than that."""
        deadline, pause_s = time.monotonic() + timeout_s, 0.05
        while not (value := predicate()):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {timeout_s} s for {what}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.5)
        return value

    def clear(self) -> None:
        """End what a test started: its commands, then all jobs (no one else uses the rig), and remove what is left."""
        for running in self._running:
            running.kill()
        self._running.clear()
        jobs = self.run(["squeue", "-h", "-o", "%A"], "root").stdout.split()
        if jobs:
            self.run(["scancel", *jobs], "root")
            self.wait_until(lambda: not self.run(["squeue", "-h"], "root").stdout.strip(), 30, "the end of all jobs")
        for found in self.leftover_directories():
            node, _, path = found.partition(": ")
            self.exec(node, ["rm", "-r", path])


def bring_up(owner_pid: int) -> subprocess.CompletedProcess[str]:
    """Bring the rig up for one process alone; the code is ``HELD`` where another has it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    environ |= {"SLURM_RIG_OWNER": str(owner_pid), "SLURM_RIG_ALONE": "1"}
    return subprocess.run([SCRIPT, "up", str(NODES)], capture_output=True, text=True, env=environ, timeout=90)


def owner() -> str:
    """Return whose the rig is, in the words of its script."""
    try:
        return (STATE / "owner").read_text().strip()
    except OSError:
        return "it is not up"


def _become(user: str) -> list[str]:
    """Return the words before a command that make it ``user``'s, and make it die with this process."""
    identity = [] if user == "root" else [f"--reuid={user}", f"--regid={user}", "--init-groups"]
    return ["setpriv", *identity, "--pdeathsig=KILL"]
