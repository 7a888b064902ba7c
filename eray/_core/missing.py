"""Names those who are awaited, in words: ``processes 3 and 7 (node02), 9 (node04)``."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any


def name_missing(missing: Sequence[Mapping[str, Any]], missing_count: int | None = None) -> str:
    """Return the processes of an answer's ``missing``, by node, with the number of those that are not listed.

    >>> name_missing([{"process_index": 3, "node": "n2"}, {"process_index": 7, "node": "n2"}], 4)
    'processes 3 and 7 (n2) and 2 more'
    """
    if not missing:
        return "no process"
    groups = []
    for where, entries in groupby(sorted(missing, key=_order), key=_where):
        indexes = _listed([entry["process_index"] for entry in entries])
        groups.append(f"{indexes} ({where})" if where else indexes)
    more = (missing_count or 0) - len(missing)
    text = ", ".join(groups) + (f" and {more} more" if more > 0 else "")
    return f"{'process' if len(missing) == 1 and more <= 0 else 'processes'} {text}"


def _where(entry: Mapping[str, Any]) -> str:
    state = entry.get("state") if entry.get("state") in ("left", "failed", "dead") else None
    return ", ".join(part for part in (entry.get("node"), state) if part)


def _order(entry: Mapping[str, Any]) -> tuple[bool, str, int]:
    return not entry.get("node"), _where(entry), entry["process_index"]


def _listed(indexes: Sequence[int]) -> str:
    """Return "3", "3 and 7", "0-5 and 9": runs of three and more are folded."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = []
    for run in runs:
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(index) for index in run]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
