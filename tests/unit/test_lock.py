"""One supervisor a run directory."""

import os
import subprocess
import sys

import pytest

from eray._io.lock import NodeLock
from eray.errors import DirectoryError, NodeLockedError

HOLDER = """
import sys
from eray._io.lock import NodeLock
lock = NodeLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
"""


def test_lock_is_held_by_one_and_freed(tmp_path):
    first, second = NodeLock(str(tmp_path)), NodeLock(str(tmp_path))
    with first:
        assert second.holder() == os.getpid()
        with pytest.raises(NodeLockedError, match=f"process {os.getpid()} on this node"):
            second.acquire()
        assert second.holder() == os.getpid()  # a failed attempt leaves the holder's note alone
    assert second.holder() is None
    with second:
        pass
    second.release()


def test_lock_without_directory_is_an_error(tmp_path):
    with pytest.raises(DirectoryError, match="ERAY_TMPDIR"):
        NodeLock(str(tmp_path / "none")).acquire()


def test_lock_of_a_killed_process_is_free_again(tmp_path):
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holder = subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(NodeLockedError, match=f"process {holder.pid} on this node"):
            NodeLock(str(tmp_path)).acquire(wait_s=0.05)
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    with NodeLock(str(tmp_path)) as lock:
        assert lock.holder() == os.getpid()


def test_lock_whose_holder_cannot_be_seen_says_so(tmp_path):
    with NodeLock(str(tmp_path)):
        (tmp_path / "node.pid").write_text("4194999 12345\n")
        with pytest.raises(NodeLockedError, match=r"4194999.*namespace"):
            NodeLock(str(tmp_path)).acquire()
        (tmp_path / "node.pid").write_text("")
        with pytest.raises(NodeLockedError, match="just starting"):
            NodeLock(str(tmp_path)).acquire()
