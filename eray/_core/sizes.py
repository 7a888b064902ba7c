"""Numbers of bytes in words."""


def size(count: int) -> str:
    """Return a number of bytes in words.

    >>> size(3 * 2**30), size(100)
    ('3.0 GiB', '100 B')
    """
    for unit, bytes_ in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} B"
