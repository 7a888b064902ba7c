"""The variables by which a process of a world learns who it is, from a supervisor or from ``launch``."""

FORCED_CPU_DEVICES = "--xla_force_host_platform_device_count"
IDENTITY = ("ERAY_WORLD", "ERAY_GENERATION", "ERAY_PROCESS_INDEX", "ERAY_PROCESS_COUNT")


def identity_variables(world: str, generation: int, process_index: int, process_count: int) -> dict[str, str]:
    """Return what says which process of which world this is."""
    return dict(zip(IDENTITY, (world, str(generation), str(process_index), str(process_count)), strict=True))


def device_variables(devices_per_process: int, xla_flags: str) -> dict[str, str]:
    """Return what says how many devices were asked for; on CPUs JAX makes them, unless ``xla_flags`` decide that."""
    asked = {"ERAY_DEVICES_PER_PROCESS": str(devices_per_process)}
    forced = FORCED_CPU_DEVICES in xla_flags
    return asked if forced else asked | {"JAX_NUM_CPU_DEVICES": str(devices_per_process)}
