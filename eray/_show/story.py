"""How a cluster that ended came to that, as its head told people: what `eray logs` shows before any log."""

from datetime import tzinfo
from textwrap import dedent, indent

from eray._core import naming
from eray._core.access import PURPOSES
from eray._core.picture import Picture
from eray._show.log_hint import OUTPUT_FILE
from eray._show.status import head_lines
from eray._show.wording import clean

OUTPUT = f"what the program printed is in {OUTPUT_FILE}"


def output_line(job: str, purpose: str | None) -> str:
    """Return where the output of a program stands; ``purpose`` is what started the cluster, None where unknown."""
    if not naming.is_local(job):
        return OUTPUT
    where = f"`{PURPOSES[purpose]}` prints it" if purpose == "run" else "it was started"
    return f"what the program prints stands where {where}"


def story_lines(picture: Picture, count: int, zone: tzinfo) -> list[str]:
    """Return how it ended, the cause with the last lines of the process that failed first, and what else was said.

    Of either it is the last ``count`` lines.
    """
    ending = picture.ending
    lines = [line.text for line in head_lines(picture, zone)][:1]
    if ending is None:
        return lines
    said = [text for _, text in picture.remarks]
    if ending.cause:
        told = next((text for text in said if text.startswith(ending.cause)), ending.cause)
        first, *rest = clean(told).splitlines()
        lines += [f"cause: {first}", *indent(dedent("\n".join(rest[-count:])), "  ").splitlines()]
        said = [text for text in said if text not in (told, ending.cause)]
    others = [line for text in said for line in clean(text).splitlines()]
    lines += [f"said: {line}" for line in others[-count:]]
    if picture.job is not None and picture.purpose != "up":
        lines.append(OUTPUT)
    return lines
