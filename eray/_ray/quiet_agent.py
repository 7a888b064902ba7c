"""Stands in for a raylet's two agents where there is no dashboard. Run as a script; it imports nothing of eray's.

A raylet insists on both, waits for their ports before it registers, and ends when one of them does.

``quiet_agent.py --node-id=… --session-dir=… …`` is the dashboard's agent. As Ray's own does in an installation without
the dashboard's packages, it says that it has no ports (-1), which means no metrics; unlike that one it needs no second
of CPU for it.

``quiet_agent.py RAYS_SCRIPT --node-id=… --session-dir=… --node-ip-address=… --runtime-env-agent-port=… …`` is the agent
of runtime environments, which most clusters never ask for anything, and for whose port Ray's needs half a second of
CPU. It listens at once. When the first request is there it becomes Ray's own, in the same process and with the same
listening socket, so that none is lost: the first one only takes that much longer.
"""

import os
import select
import socket
import sys
from collections.abc import Mapping, Sequence

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
ENV_PORT, ENV_PORT_OPTION = "runtime_env_agent_port", "--runtime-env-agent-port="
BACKLOG = 128


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line of ``--name=value``."""
    pairs = (word[2:].partition("=") for word in words if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def say_port(options: Mapping[str, str], name: str, port: int) -> None:
    """Write a file that the raylet waits for, by a rename."""
    path = os.path.join(options["session-dir"], f"{name}_{options['node-id']}")
    with open(f"{path}.tmp", "w", encoding="ascii") as stream:
        stream.write(str(port))
    os.rename(f"{path}.tmp", path)


def listen(options: Mapping[str, str]) -> socket.socket:
    """Listen where Ray's own agent of runtime environments would."""
    host, port = options["node-ip-address"], int(options["runtime-env-agent-port"])
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(BACKLOG)
    return listener


def become(script: str, words: Sequence[str], listener: socket.socket) -> None:
    """Run Ray's own agent here. What it binds to our port is our socket, with those who wait there."""
    import runpy

    port = listener.getsockname()[1]

    class Socket(socket.socket):
        def bind(self, address: object) -> None:
            if isinstance(address, tuple) and address[1] == port:
                os.dup2(listener.fileno(), self.fileno())
            else:
                super().bind(address)  # type: ignore[arg-type]

    socket.socket = Socket  # type: ignore[misc]
    sys.argv = [script, *(word for word in words if not word.startswith(ENV_PORT_OPTION)), f"{ENV_PORT_OPTION}{port}"]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name="__main__")


def main() -> None:
    """Say the ports, and stay until the raylet ends; be Ray's own agent from the first request on."""
    raylet, words = os.getppid(), sys.argv[1:]
    ends, options = os.pidfd_open(raylet), options_of(words)
    listener = None
    if words[0].startswith("--"):
        for name in PORTS:
            say_port(options, name, -1)
    else:
        listener = listen(options)
        say_port(options, ENV_PORT, listener.getsockname()[1])
    if os.getppid() != raylet:
        return  # it is dead already
    awaited: list[int] = [ends] if listener is None else [ends, listener.fileno()]
    ready = select.select(awaited, [], [])[0]
    if listener is not None and ends not in ready:
        become(words[0], words[1:], listener)


if __name__ == "__main__":
    main()
