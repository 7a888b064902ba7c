"""Stands in for a raylet's dashboard agent where there is no dashboard. Run as a script; it imports nothing of eray's.

A raylet insists on an agent, waits for its ports, and ends when it does. As Ray's own agent does in an installation
without the dashboard's packages, this one says that it has no ports (-1), which means no metrics; unlike that one it
needs no second of CPU for it.
"""

import os
import select
import sys
from collections.abc import Mapping, Sequence

PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line of ``--name=value``."""
    pairs = (word[2:].partition("=") for word in words if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def say_ports(options: Mapping[str, str]) -> None:
    """Write the files that the raylet waits for, each by a rename."""
    for name in PORTS:
        path = os.path.join(options["session-dir"], f"{name}_{options['node-id']}")
        with open(f"{path}.tmp", "w", encoding="ascii") as stream:
            stream.write("-1")
        os.rename(f"{path}.tmp", path)


def main() -> None:
    """Say that there are no ports, and stay until the raylet ends."""
    raylet = os.getppid()
    descriptor = os.pidfd_open(raylet)
    say_ports(options_of(sys.argv[1:]))
    if os.getppid() == raylet:  # else it is dead already
        select.select([descriptor], [], [])


if __name__ == "__main__":
    main()
