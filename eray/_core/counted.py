"""Numbers with their nouns."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 node``, ``1,000 nodes``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
