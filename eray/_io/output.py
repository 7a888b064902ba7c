"""Write what a user asked for into the file that the user named."""

import os
import stat

from eray._io.files import remove


def write_output(path: str, data: bytes) -> None:
    """Write a file whole, by a rename: a reader sees the old content or the new, never a part; raises OSError.

    The umask decides who may read it. A symbolic link is followed; what is no plain file (``/dev/stdout``, a pipe) is
    written to as it is.
    """
    try:
        plain = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        plain = True
    if not plain:
        with open(path, "wb") as stream:
            stream.write(data)
        return
    target = os.path.realpath(path)
    partial = f"{target}.{os.getpid()}.{os.urandom(4).hex()}"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(partial, target)
    except BaseException:
        remove(partial)
        raise
