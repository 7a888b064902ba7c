"""Who this process is in which world, and how its supervisor is reached.

Arguments beat what ``eray run`` set, that beats RAY_ADDRESS, then Slurm's step, then a shell, then this machine alone.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eray._bringup import Site, local_spec, step_spec
from eray._core.nodespec import SOCKET_NAME, NodeSpec
from eray._settings import Settings
from eray._slurm.affinity import step_cpus
from eray._slurm.environment import Mode, SlurmEnvironment, read_environment
from eray._slurm.membership import check_lone_process
from eray.errors import SettingError, UsageError

WORLD = "main"


@dataclass(frozen=True)
class Identity:
    """One process's place.

    One of three ways leads to the cluster: ``socket_path`` of a supervisor that runs, ``spec`` of one that the first
    process of the node starts, or ``ray_address`` of a Ray that eray did not start (empty: the one that this process
    is attached to). ``local_index`` and ``local_count`` are None where only others know them.
    ``indexes_on_node`` are those of all processes of this node, ``step_cpus`` the CPUs of all of them.
    """

    world: str
    generation: int | None
    process_index: int
    process_count: int
    local_index: int | None = None
    local_count: int | None = None
    socket_path: str | None = None
    spec: Callable[[], NodeSpec] | None = None
    ray_address: str | None = None
    notice: str | None = None
    indexes_on_node: tuple[int, ...] | None = None
    step_cpus: frozenset[int] | None = None

    @property
    def hello(self) -> dict[str, Any]:
        """What this process says of itself to its supervisor."""
        place = {"process_index": self.process_index, "process_count": self.process_count}
        return {"type": "hello", "world": self.world, **place, "indexes_on_node": self.indexes_on_node}


def identify(
    site: Site,
    *,
    world: str | None,
    process_count: int | None,
    process_index: int | None,
    attached: bool,
) -> Identity:
    """Decide who this process is.

    ``attached`` says that the program called ``ray.init`` itself, or that this is a Ray worker.

    Raises:
        UsageError: index and count do not fit together.
        SettingError: an ERAY_* variable is missing beside another.
        NotATaskError, ForeignLauncherError: the environment names a cluster of which this process is no task.
    """
    settings, slurm, environ = site.settings, site.slurm, site.environ
    index, count = _given(settings, process_index, process_count)
    named = world or settings.world
    if settings.run_dir is not None and slurm.mode is not Mode.RAY_WORKER:
        return _launched(settings, named, index, count)
    address = environ.get("RAY_ADDRESS", "")
    if slurm.mode is Mode.STEP and not address:
        return _task(site, named, index, count)  # where the program attached to another Ray, that is an error later
    if slurm.mode is Mode.STEP and slurm.task is not None and index is None:
        named, index, count = named or _step_world(site), slurm.task.process_index, slurm.task.process_count
    if attached or address or slurm.mode is Mode.RAY_WORKER:
        return Identity(named or WORLD, settings.generation, index or 0, count or 1, ray_address=address)
    check_lone_process(slurm, socket.gethostname())
    if count is not None and count > 1:
        raise UsageError(
            f"process_count is {count}, and there is no cluster in which the others could be: start them by "
            f"`eray run -n {count} -- …` or srun, or set RAY_ADDRESS"
        )
    return Identity(
        named or WORLD,
        None,
        index or 0,
        count or 1,
        local_index=0,
        local_count=1,
        spec=lambda: local_spec(site, "tasks"),
        notice=_lone_notice(slurm),
    )


def read_site(environ: Mapping[str, str]) -> Site:
    """Read the settings and Slurm's words from the environment."""
    return Site(environ, Settings.from_environ(environ), read_environment(environ))


def _given(settings: Settings, index: int | None, count: int | None) -> tuple[int | None, int | None]:
    index = settings.process_index if index is None else index
    count = settings.process_count if count is None else count
    if (index is None) != (count is None):
        raise UsageError(
            f"process_index is {index} and process_count is {count}: give both or none "
            "(ERAY_PROCESS_INDEX and ERAY_PROCESS_COUNT)"
        )
    if index is not None and count is not None and not 0 <= index < count:
        raise UsageError(f"process_index {index} must be 0 or more and below process_count {count}")
    return index, count


def _launched(settings: Settings, world: str | None, index: int | None, count: int | None) -> Identity:
    assert settings.run_dir is not None
    if index is None or count is None or world is None:
        raise SettingError(
            "ERAY_RUN_DIR",
            settings.run_dir,
            "`eray run` sets it together with ERAY_WORLD, ERAY_PROCESS_INDEX and ERAY_PROCESS_COUNT; one is gone",
        )
    return Identity(world, settings.generation, index, count, socket_path=f"{settings.run_dir}/{SOCKET_NAME}")


def _task(site: Site, world: str | None, index: int | None, count: int | None) -> Identity:
    task = site.slurm.task
    assert task is not None
    return Identity(
        world or _step_world(site),
        None,
        task.process_index if index is None else index,
        task.process_count if count is None else count,
        local_index=task.local_index,
        local_count=task.local_count,
        spec=lambda: step_spec(site, "tasks"),
        indexes_on_node=task.indexes_on_node if count is None else None,  # an own world is laid out as it likes
        step_cpus=step_cpus(site.environ),
        notice=" ".join(site.slurm.notices) or None,
    )


def _step_world(site: Site) -> str:
    job = site.slurm.job
    return f"step-{job.step if job is not None else None}"


def _lone_notice(slurm: SlurmEnvironment) -> str | None:
    if slurm.mode is Mode.NONE:
        return None
    job = slurm.job.id if slurm.job else "?"
    return f"in a {slurm.mode} of job {job}: one process with a Ray of its own; `srun` or `eray run` start several"
