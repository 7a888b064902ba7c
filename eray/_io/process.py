"""Start processes that are ours, tell how they ended, and stop them and what they started, by pid."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eray._io import clock

_DEAD_STATES = "ZXx"
_REMARKS = {
    signal.SIGKILL: "was killed ({}): out of memory, or by somebody's `kill -9`?",
    signal.SIGTERM: "was asked to end ({})",
    signal.SIGINT: "was interrupted ({})",
    signal.SIGHUP: "lost its terminal ({})",
    signal.SIGSEGV: "crashed ({})",
    signal.SIGBUS: "crashed ({}): a shared memory or disk that ran full?",
    signal.SIGILL: "crashed ({}): a program built for another processor?",
    signal.SIGABRT: "aborted ({})",
}

_KILLED_IN_JOB = "was killed ({}): out of memory, or Slurm's KillWait was over?"


@dataclass(frozen=True)
class Identity:
    """One life of a pid: the kernel may give the number again, but not with the same start time (ticks since boot)."""

    pid: int
    started: int


@dataclass(frozen=True)
class _Row:
    identity: Identity
    state: str
    parent: int
    session: int


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    affinity: Iterable[int] | None = None,
    output: str | int | None = subprocess.DEVNULL,
    cwd: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``argv`` in a session of its own, with exactly ``env``, no input, and return the handle.

    ``affinity`` are the CPUs it may use (by default this thread's). ``output`` takes its stdout and stderr: a path is
    a log file, made 0600 and appended to; ``subprocess.PIPE``, ``DEVNULL``, a descriptor, or None for ours.

    Raises:
        OSError: the program or the log file cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(output, str):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            output = os.open(output, flags, 0o600)
            stack.callback(os.close, output)
        stack.enter_context(_thread_affinity(affinity))
        return subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output if output is None or output == subprocess.DEVNULL else subprocess.STDOUT,
            start_new_session=True,
        )


def terminate(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """End a process of ``spawn`` and all it started: SIGTERM to its group, after ``grace_s`` SIGKILL to what is left.

    Without a grace there is no SIGTERM. Returns its return code (negative for a signal) when all are dead. Blocks for
    ``grace_s`` and a little more at most.
    """
    family = {row.identity for row in _family(process)}
    if grace_s and process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
    killed = kill_family(process, family)
    with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel itself holds it: the signal is on its way
        process.wait(5.0)
    wait_gone(killed | kill_family(process), 5.0)  # once more: one of them may have started another meanwhile
    return -signal.SIGKILL if process.returncode is None else process.returncode


def kill_family(process: subprocess.Popen[bytes], known: Iterable[Identity] = ()) -> set[Identity]:
    """SIGKILL a process of ``spawn``, its descendants, the rest of its session, and ``known``; return the others."""
    pending = set(known) | {row.identity for row in _family(process)}
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGKILL)
    for each in pending:
        kill(each, signal.SIGKILL)
    return pending


def kill(identity: Identity, number: int) -> bool:
    """Send a signal to one life of a pid; False where that life is over. No later process of that pid is hit."""
    descriptor = None
    try:
        with contextlib.suppress(OSError, AttributeError):  # Linux before 5.3 has no pidfd
            descriptor = os.pidfd_open(identity.pid)
        if start_time(identity.pid) != identity.started:
            return False
        if descriptor is None:
            os.kill(identity.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def wait_gone(identities: Iterable[Identity], timeout_s: float) -> tuple[Identity, ...]:
    """Wait until all of ``identities`` are dead, and return those that still live after ``timeout_s``."""
    deadline, left, pause = clock.monotonic() + timeout_s, tuple(identities), 0.005
    while left := tuple(each for each in left if is_alive(each.pid, each.started)):
        if clock.monotonic() >= deadline:
            break
        clock.sleep(pause)
        pause = min(2 * pause, 0.1)
    return left


def start_time(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None where it is dead or cannot be seen."""
    row = _read_row(pid)
    return None if row is None or row.state in _DEAD_STATES else row.identity.started


def identity(pid: int) -> Identity | None:
    """Return the life of ``pid`` that is now, None where it is dead or cannot be seen."""
    started = start_time(pid)
    return None if started is None else Identity(pid, started)


def is_alive(pid: int, started: int | None = None) -> bool:
    """Tell whether a process lives: the one that started then, where ``started`` is known. A zombie is dead."""
    if not os.path.isdir("/proc/self"):
        return _answers(pid)
    now = start_time(pid)
    return now is not None and started in (None, now)


def descendants(pid: int) -> tuple[Identity, ...]:
    """Return the living children of ``pid`` and theirs, not ``pid`` itself."""
    return tuple(row.identity for row in _descendants(pid, tuple(_rows())))


def exit_code(returncode: int) -> int:
    """Return the code that a shell shows for a Popen's return code: 128 + n for signal n."""
    return returncode if returncode >= 0 else 128 - returncode


def exit_words(returncode: int, *, in_job: bool) -> str:
    """Return how a process ended, as words after its name: ``was killed (SIGKILL, 137): out of memory, or …``.

    ``in_job`` tells whether Slurm is around, which kills too.
    """
    code = exit_code(returncode)
    try:
        number = signal.Signals(code - 128) if code > 128 else None
    except ValueError:
        number = None
    if number is not None:
        remark = _REMARKS.get(number, "ended by a signal ({})")
        remark = _KILLED_IN_JOB if in_job and number == signal.SIGKILL else remark
        return remark.format(f"{number.name}, {code}")
    remark = {126: " (the program cannot be executed)", 127: " (the program was not found)"}.get(code, "")
    return f"ended with code {code}{remark}"


@contextlib.contextmanager
def _thread_affinity(cpus: Iterable[int] | None) -> Iterator[None]:
    # A child inherits the affinity of the thread that starts it: no code of ours has to run between fork and exec.
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cpus))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _family(process: subprocess.Popen[bytes]) -> list[_Row]:
    rows, pid = tuple(_rows()), process.pid
    if process.poll() is not None and any(row.identity.pid == pid for row in rows):
        return []  # it is reaped and its number is somebody else's now
    in_session = [row for row in rows if row.session == pid and row.identity.pid != pid]
    family = {row.identity: row for row in in_session}
    for root in (pid, *(row.identity.pid for row in in_session)):
        family |= {row.identity: row for row in _descendants(root, rows)}
    return list(family.values())


def _descendants(pid: int, rows: Sequence[_Row]) -> list[_Row]:
    found, parents = [], {pid}
    while parents:
        children = [row for row in rows if row.parent in parents]
        found += children
        parents = {row.identity.pid for row in children}
    return [row for row in found if row.state not in _DEAD_STATES]


def _rows() -> Iterator[_Row]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        row = _read_row(int(name)) if name.isdigit() else None
        if row is not None:
            yield row


def _read_row(pid: int) -> _Row | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold blanks and parentheses, see proc(5)
    return _Row(Identity(pid, int(fields[19])), fields[0], int(fields[1]), int(fields[3]))


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
