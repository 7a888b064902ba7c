"""A home, a work directory and a place for Ray of one test's own, and what is left in and of them."""

import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from commands import Result, Running

from eray._io import process
from eray._io.net import PROXY_VARIABLES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MARK = "ERAY_TEST_LAPTOP"
NOT_OURS = ("SLURM", "ERAY_", "RAY_", "JAX_", "XLA_", "PMI", "OMPI_")
SKELETON = ("home", "work", "tmp")
PLAIN_RAY = {"RAY_AUTH_MODE": "disabled"}
"""What a driver of a Ray without a token needs."""
JOB_DIRECTORIES = "home/.eray/jobs"
GONE_S = 1.0
"""How long after a command's end its processes may still be seen: what the issue allows after a step."""
T = TypeVar("T")


@dataclass
class Laptop:
    """Starts commands in a clean environment and knows their processes, also those that hide their environment."""

    root: Path
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _running: list[Running] = field(default_factory=list)

    @classmethod
    def make(cls) -> "Laptop":
        """Make the directories. The path is short: Ray's sockets lie below it."""
        root = Path(tempfile.mkdtemp(prefix="e", dir="/tmp"))
        for name in SKELETON:
            (root / name).mkdir()
        return cls(root)

    def environment(self, **more: str | None) -> dict[str, str]:
        """Return the environment of a user who has set nothing but ``more``; None unsets."""
        proxies = {name.lower() for name in PROXY_VARIABLES} | {"no_proxy"}
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(NOT_OURS) and name.lower() not in proxies and "VISIBLE_DEVICES" not in name
        }
        env |= {
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "ERAY_TMPDIR": str(self.root),
            "ERAY_STATE_DIR": str(self.root / "home" / ".eray"),
            MARK: self.id,
        }
        if any(Path(device).exists() for device in ("/dev/nvidia0", "/dev/kfd")):
            env |= {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}  # a laptop has none
        return {name: value for name, value in (env | more).items() if value is not None}

    def start(self, argv: Sequence[str | os.PathLike[str]], **env: str | None) -> Running:
        """Start a command in the work directory."""
        running = Running([os.fspath(part) for part in argv], self.environment(**env), self.root / "work")
        self._running.append(running)
        return running

    def eray(self, *words: str | os.PathLike[str], within: Sequence[str] = (), **env: str | None) -> Running:
        """Start the command ``eray``, where ``within`` is given by that command."""
        return self.start([*within, sys.executable, "-m", "eray", *words], **env)

    def python(self, *words: str | os.PathLike[str], **env: str | None) -> Running:
        """Start Python, as the user would."""
        return self.start([sys.executable, *words], **env)

    def processes(self) -> dict[int, str]:
        """Return pid and command line of every living process that a command of this test started."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and process.is_alive(int(entry.name)) and self._is_ours(entry):
                found[int(entry.name)] = _command_line(entry)
        return found

    def pid_of(self, *words: str, timeout_s: float = 20.0) -> int:
        """Return the pid of the one process whose command line has all ``words``, when there is one."""
        return until(lambda: self._pid_of(words), timeout_s, f"a process {' '.join(words)!r}")

    def run_directory(self, timeout_s: float = 20.0) -> Path:
        """Return the run directory of the cluster that a command started, when Ray is up in it."""
        pattern = f"eray-{os.getuid()}/*/node.json"
        return until(lambda: next(iter(self.root.glob(pattern)), None), timeout_s, pattern).parent

    def files(self) -> list[str]:
        """Return what there is below the root beside what the test made, and the logs of a cluster that failed."""
        found = (str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        expected = {*SKELETON, os.path.dirname(JOB_DIRECTORIES), JOB_DIRECTORIES}
        return sorted(path for path in found if path not in expected and not path.startswith(f"{JOB_DIRECTORIES}/"))

    def require_clean(self) -> None:
        """Fail unless every process has ended and every file is gone."""
        until(lambda: not self.processes() or None, GONE_S, lambda: f"the end of {self.processes()}")
        assert self.files() == []

    def clear(self) -> None:
        """End what is left, by pid, and remove the directories."""
        for running in self._running:
            if running.process.poll() is None:
                running.kill()
        for pid in self.processes():
            if (life := process.identity(pid)) is not None:
                process.kill(life, 9)
        shutil.rmtree(self.root, ignore_errors=True)

    def _pid_of(self, words: Sequence[str]) -> int | None:
        found = [pid for pid, line in self.processes().items() if all(word in line for word in words)]
        return found[0] if len(found) == 1 else None

    def _is_ours(self, entry: Path) -> bool:
        # Ray's processes with a title of their own write it over their environment; their files stay open here.
        try:
            if f"{MARK}={self.id}".encode() in (entry / "environ").read_bytes():
                return True
            links = [entry / "cwd", *(entry / "fd").iterdir()]
        except OSError:
            return False
        return any(_target(link).startswith(f"{self.root}/") for link in links)


def until(found: Callable[[], T | None], timeout_s: float, what: str | Callable[[], str]) -> T:
    """Return what ``found`` returns as soon as that is not None; fail after ``timeout_s``, naming what was awaited."""
    deadline = time.monotonic() + timeout_s
    while (value := found()) is None:
        if time.monotonic() > deadline:
            words = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {timeout_s:g} s in vain for {words}")
        time.sleep(0.02)
    return value


def await_text(running: Running, text: str, timeout_s: float = 40.0) -> None:
    """Wait until a command has printed ``text``; fail when it ends without it."""

    def printed() -> bool | None:
        ended = running.process.poll() is not None
        if text in running.output:
            return True
        assert not ended, f"ended with {running.process.returncode} without {text!r}:\n{running.output}"
        return None

    until(printed, timeout_s, lambda: f"{text!r} in:\n{running.output}")


def in_mount_namespace(script: str) -> list[str]:
    """Return what runs a command, which the shell script has as ``"$@"``, with file systems of its own."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *user, "sh", "-euc", script, "sh"]


def lines_of(result: Result) -> Mapping[int, list[str]]:
    """Return what each process of ``eray run`` printed on stdout, by process index, without prefixes."""
    lines: dict[int, list[str]] = {}
    for line in result.stdout.splitlines():
        prefix, bracket, text = line.partition("] ")
        if bracket and prefix[1:].isdigit():
            lines.setdefault(int(prefix[1:]), []).append(text)
    return lines


def result_of(result: Result) -> Any:
    """Return what a program printed as JSON after ``result:``; Ray prints there too."""
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("result: "))
    return json.loads(line.removeprefix("result: "))


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
