"""How large Ray's object store is on a node."""

MIN_BYTES = 80 * 1024 * 1024
MAX_BYTES = 200 * 1024**3
SHARE_OF_MEMORY, SHARE_OF_FREE = 0.3, 0.8


def wanted_bytes(memory_bytes: int | None) -> int:
    """Return the size that fits the node's memory: 30 % of it, within limits."""
    wanted = MAX_BYTES if memory_bytes is None else int(SHARE_OF_MEMORY * memory_bytes)
    return max(min(wanted, MAX_BYTES), MIN_BYTES)


def object_store_bytes(free_bytes: int, memory_bytes: int | None) -> int | None:
    """Return the size for a node with that much room in shared memory, None where it is too little for any."""
    if free_bytes < MIN_BYTES:
        return None
    return max(min(wanted_bytes(memory_bytes), int(SHARE_OF_FREE * free_bytes)), MIN_BYTES)
