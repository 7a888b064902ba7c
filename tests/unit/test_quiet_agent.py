import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eray._ray import quiet_agent
from eray._ray.start_hook import _quieted

RAYS_OWN = """
import os, socket, sys

options = dict(word[2:].split("=") for word in sys.argv[1:])
host, port = options["node-ip-address"], int(options["runtime-env-agent-port"])
family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
listener = socket.socket(family, kind, protocol)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(where)
listener.listen()
other = socket.socket()
other.bind(("127.0.0.1", 0))
while True:
    caller, _ = listener.accept()
    is_other = other.getsockname()[1] != where[1]
    caller.sendall(f"{caller.recv(100).decode()} {os.getpid()} {is_other} {os.path.basename(sys.path[0])}".encode())
    caller.close()
"""

RAYLET = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"


@contextlib.contextmanager
def agent(directory: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the stand-in as a child of this process, which is its raylet."""
    options = ["--node-id=ab12", f"--session-dir={directory}", "--node-ip-address=127.0.0.1"]
    child = subprocess.Popen(
        [sys.executable, "-u", quiet_agent.__file__, *words, *options, "--runtime-env-agent-port=0"]
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def told(directory: Path, name: str) -> int:
    path, deadline = directory / f"{name}_ab12", time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.005)
    return int(path.read_text())


def ask(port: int, text: str) -> list[str]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(text.encode())
        return line.recv(200).decode().split()


def test_agent_of_runtime_environments_becomes_rays_own_with_the_first_request(tmp_path: Path) -> None:
    own = tmp_path / "rays"
    own.mkdir()
    script = own / "main.py"
    script.write_text(RAYS_OWN)
    with agent(tmp_path, str(script)) as child:
        port = told(tmp_path, "runtime_env_agent_port")
        for text in ("first", "second"):
            assert ask(port, text) == [text, str(child.pid), "True", "rays"]
        assert child.poll() is None


@pytest.mark.parametrize("name", quiet_agent.PORTS)
def test_agent_of_the_dashboard_has_no_ports(tmp_path: Path, name: str) -> None:
    with agent(tmp_path) as child:
        assert told(tmp_path, name) == -1
        assert child.poll() is None


@pytest.mark.parametrize("kind", ["dashboard", "runtime environments"])
def test_agent_ends_with_its_raylet(tmp_path: Path, kind: str) -> None:
    words = [] if kind == "dashboard" else [str(tmp_path / "unused.py")]
    options = ["--node-id=ab12", f"--session-dir={tmp_path}", "--node-ip-address=127.0.0.1"]
    command = [sys.executable, quiet_agent.__file__, *words, *options, "--runtime-env-agent-port=0"]
    raylet = subprocess.Popen([sys.executable, "-c", RAYLET, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert raylet.stdout is not None
    pid = int(raylet.stdout.readline())
    told(tmp_path, quiet_agent.PORTS[-1] if kind == "dashboard" else quiet_agent.ENV_PORT)
    ends = os.pidfd_open(pid)
    try:
        raylet.send_signal(signal.SIGKILL)
        raylet.wait()
        assert select.select([ends], [], [], 10)[0] == [ends]
    finally:
        os.close(ends)
        raylet.communicate()


@pytest.mark.parametrize(
    ("option", "rest", "script"),
    [
        ("--runtime_env_agent_command", "--node-id=1 --session-dir=/s", "ours /ray/main.py"),
        ("--runtime_env_agent_command", "--node-id=1", "/ray/main.py"),
        ("--other", "--node-id=1 --session-dir=/s", "/ray/main.py"),
    ],
)
def test_rays_own_agent_is_replaced_where_its_command_is_known(option: str, rest: str, script: str) -> None:
    theirs = {"--runtime_env_agent_command=": ("/ray/main.py", "ours /ray/main.py")}
    assert _quieted(f"{option}=python /ray/main.py {rest}", theirs) == f"{option}=python {script} {rest}"
