"""Read what heads and launchers left in the job directories of the home; what cannot be read is not there."""

import fnmatch
import os
from collections.abc import Iterable
from typing import Any

from eray._io import files


def told_in(directory: str, kind: str) -> Iterable[dict[str, Any]]:
    """Yield what the files of one kind (``naming.job_file``) in a job directory say."""
    for name in fnmatch.filter(names_in(directory), f"{kind}*.json"):
        if (about := files.read_json(os.path.join(directory, name))) is not None:
            yield about


def names_in(directory: str) -> list[str]:
    """Return what is in a directory, nothing where it cannot be read."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
