"""Whether the devices of a node can be divided among the processes that `eray run` starts there, before it does."""

from eray._core.counted import counted
from eray.errors import DevicePlanError

OPTION, VARIABLE = "--devices-per-process", "ERAY_DEVICES_PER_PROCESS"


def check_division(node: str, there: int | None, processes: int, each: int | None, option: str = OPTION) -> None:
    """Check that a node's devices suffice and divide. Without any, JAX makes as many CPU devices as are asked for.

    Args:
        node: its name.
        there: how many devices the job has on it, None where that is not known.
        processes: how many processes are to share them.
        each: how many of them each is to have, None for equal parts of all.
        option: where ``each`` comes from, as the user knows it.

    Raises:
        DevicePlanError: they do not; the remedy has the numbers that would do.
    """
    if not there or not processes or (processes * (each or 1) <= there and (each or there % processes == 0)):
        return
    room = there // (each or 1)
    fewer = f"at most {counted(room, 'process', 'processes')} a node (-n, --processes-per-node)"
    if each:
        found = f"{counted(processes, 'process', 'processes')} x {counted(each, 'device')} = {processes * each}"
        less = f"{option} {there // processes}" if processes <= there else ""
        remedy = (
            ", or ".join(filter(None, (less, fewer if room else ""))) or f"{option} 1, and at most {there} processes"
        )
        raise DevicePlanError("too-many-processes", node, f"{found}, the node has {there}", f"give {remedy}")
    if processes > there:
        found = f"{counted(processes, 'process', 'processes')}, the node has {counted(there, 'device')}"
        raise DevicePlanError(
            "too-many-processes", node, found, f"give {fewer}, or set ERAY_DEVICES=none for the CPU alone"
        )
    found = f"{processes} processes and {there} devices, which do not divide equally"
    remedy = f"give {OPTION} {there // processes} ({VARIABLE}), or a number of processes that divides {there}"
    raise DevicePlanError("devices-indivisible", node, found, remedy)
