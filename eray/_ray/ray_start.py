"""The program ``ray start``, and no other command of ``ray``: run it as ``ray`` itself, with ``start …``.

``ray`` loads the packages of all its commands first, aiohttp and pydantic among them; those of commands that it can do
without (it says so by ``except ImportError``) are a third of its start.
"""

import signal
import sys
from typing import Any

OTHER_COMMANDS = ("ray.util.state.state_cli", "ray.dashboard.modules.job.cli", "ray.serve.scripts")


def main() -> None:
    """Run ``ray`` with this process's arguments."""
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        # Where Slurm knows a step's processes by their parents (proctrack/linuxproc) its warning goes to all of them.
        signal.signal(number, signal.SIG_IGN)
    sys.modules.update(dict.fromkeys(OTHER_COMMANDS))  # type: ignore[arg-type]  # None: as if they were not there
    from ray.scripts import scripts

    command: Any = scripts
    command.main()


if __name__ == "__main__":
    main()
