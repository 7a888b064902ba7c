"""Mount a file system that never answers on a directory, and run a command beside it; in a mount namespace of its own.

It is a FUSE daemon that does not read what the kernel asks, so that each access hangs, as that to a hard NFS mount
whose server is gone: only SIGKILL ends a process that does it.
"""

import ctypes
import os
import subprocess
import sys

directory, *command = sys.argv[1:]
daemon = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={daemon},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"hangs", directory.encode(), b"fuse.hangs", 0, options):
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
code = subprocess.call(command)  # which does not inherit the descriptor
sys.exit(code if code >= 0 else 128 - code)
