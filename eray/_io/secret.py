"""Keep the user's secret, from which the tokens of all clusters are derived."""

import os
import secrets
import socket
import stat
import string

from eray._io import clock, files
from eray._io.patience import answers
from eray.errors import SecretError

SECRET_NAME = "secret"
SECRET_BYTES = 32
_OTHERWISE = "or set ERAY_SECRET to 32 characters or more in the batch script"
PATIENCE_S = 5.0
"""How long the home may take: one that is mounted when it is first touched takes seconds."""
_LOOKS, _PAUSE_S = 20, 0.1  # NFS may show a file of another node's a moment after it refuses to make ours


def ensure_secret(state_dir: str, patience_s: float = PATIENCE_S) -> bytes:
    """Return the secret of ``state_dir`` (``~/.eray``); the first caller makes it.

    It is linked into place, which only one of several nodes can do, so all agree. The directory is made 0700.

    Raises:
        SecretError: others can read it, it is not ours, it is malformed, it cannot be made, or nothing answers there.
        DirectoryError: the directory is not safe.
    """
    path = os.path.join(os.path.abspath(state_dir), SECRET_NAME)
    found = answers({path: lambda: _ensure(path)}, patience_s)
    if not found:
        here = f"does not answer for {patience_s:g} s on node {socket.gethostname()}"
        remedy = f"see whether the file server is up, set ERAY_STATE_DIR to another place, {_OTHERWISE}"
        raise SecretError(path, here, remedy)
    return found[path]


def _ensure(path: str) -> bytes:
    state_dir = os.path.dirname(path)
    files.private_directory(state_dir, os.path.dirname(state_dir))
    for _ in range(_LOOKS):
        found = read_secret(path)
        if found is not None:
            return found
        if not _make(path):
            clock.sleep(_PAUSE_S)
    raise SecretError(path, "exists, but does not show up on this node", f"look at the file system, {_OTHERWISE}")


def read_secret(path: str) -> bytes | None:
    """Return the secret in the file ``path``, None where there is no such file.

    Raises:
        SecretError: others can read it, it is not ours, it is malformed, or it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise SecretError(path, f"cannot be read ({exc.strerror})", f"remove it, {_OTHERWISE}") from exc
    try:
        _check(path, os.fstat(descriptor))
        text = os.read(descriptor, 4096).strip()
    finally:
        os.close(descriptor)
    if len(text) != 2 * SECRET_BYTES or not set(text.decode("ascii", "replace")) <= set(string.hexdigits):
        reason = f"is malformed (not {2 * SECRET_BYTES} hexadecimal digits)"
        raise SecretError(
            path, reason, f"remove it while no job of yours runs, so that a new one is made, {_OTHERWISE}"
        )
    return bytes.fromhex(text.decode())


def _check(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SecretError(path, "is no regular file", f"remove it, {_OTHERWISE}")
    if found.st_uid != os.geteuid():
        reason = f"belongs to uid {found.st_uid}, this is uid {os.geteuid()}"
        raise SecretError(path, reason, f"remove it, {_OTHERWISE}")
    if found.st_mode & 0o077:
        reason = f"can be read by others (mode {stat.S_IMODE(found.st_mode):04o}, must be 0600)"
        raise SecretError(
            path, reason, f"remove it while no job of yours runs, so that a new one is made, {_OTHERWISE}"
        )


def _make(path: str) -> bool:
    temporary = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        files.write_new(temporary, secrets.token_hex(SECRET_BYTES) + "\n")
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as exc:
        reason = f"cannot be made ({exc.strerror})"
        raise SecretError(
            path, reason, f"set ERAY_STATE_DIR to a directory that you can write to, {_OTHERWISE}"
        ) from exc
    finally:
        files.remove(temporary)
    return True
