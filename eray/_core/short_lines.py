"""Lines that ``srun`` passes on whole from many tasks: it mixes the parts of longer ones."""

import json
from collections.abc import Mapping

LINE_BYTES = 1024
"""With the line's end; measured, Slurm 22.05, with and without --label. With --unbuffered no line is safe."""
CUT = "…"


def short_line(text: str) -> str:
    """Return a line, cut at its end where it is too long."""
    room = LINE_BYTES - 1
    if len(text.encode()) <= room:
        return text
    return text.encode()[: room - len(CUT.encode())].decode(errors="ignore") + CUT


def short_json(record: Mapping[str, str | None]) -> str:
    """Return a record as one line of JSON; where that is too long its longest texts are cut."""
    fields = dict(record)
    while (surplus := len((text := json.dumps(fields, ensure_ascii=False)).encode()) + 1 - LINE_BYTES) > 0:
        name = max(fields, key=lambda name: len(fields[name] or ""))
        value = str(fields[name]).removesuffix(CUT)
        # A character has a byte or more in JSON.
        fields[name] = value[: max(len(value) - surplus - len(CUT.encode()), len(value) // 2)] + CUT
    return text
