"""From what Slurm, the settings and this machine say to the NodeSpec of this node's supervisor."""

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eray._core import naming
from eray._core.devices import NodeView, ProcessView, device_count
from eray._core.nodespec import NodeSpec, WorldSpec
from eray._core.process_variables import IDENTITY
from eray._io import net
from eray._io.devices import read_hardware
from eray._io.limits import group_memory
from eray._io.secret import ensure_secret
from eray._settings import Settings
from eray._slurm import variables
from eray._slurm.allocation import node_aliases
from eray._slurm.environment import SlurmEnvironment
from eray._slurm.hostlist import fold_hostlist
from eray._slurm.membership import require_job
from eray._slurm.visibility import ray_visibility
from eray.errors import SettingError

LOCAL_KEY_BYTES = 4


@dataclass(frozen=True)
class Site:
    """What decides a node's spec: the environment, the settings, and what Slurm says."""

    environ: Mapping[str, str]
    settings: Settings
    slurm: SlurmEnvironment

    @property
    def node(self) -> str:
        """This node's name: Slurm's, else the host's."""
        return self.slurm.node_name or socket.gethostname()


def step_spec(site: Site, purpose: str, world: WorldSpec | None = None) -> NodeSpec:
    """Return this node's spec inside a step: ``run`` and ``up`` make the job's cluster, ``tasks`` the step's.

    Raises:
        SlurmMissingError: there is no job id.
        SettingError, SecretError, DirectoryError: the configuration cannot work.
    """
    settings, slurm, task = site.settings, site.slurm, site.slurm.task
    job = require_job(slurm)
    assert task is not None
    nodes, rank = _head_first(task.nodes, task.node_rank, settings.head)
    key = naming.cluster_key(job.id, job.step if purpose == "tasks" else None)
    secret = shared_secret(settings)
    aliases = node_aliases(site.environ)
    # A node that ERAY_HEAD leads astray hears of it at the head's own name.
    heads = tuple(dict.fromkeys(filter(None, (settings.head, aliases.get(nodes[0]), nodes[0]))))
    job_run_dir = naming.run_directory(settings.tmpdir, os.getuid(), naming.cluster_key(job.id, None), job.restart)
    spec = _spec(
        site,
        purpose=purpose,
        cluster=job.cluster,
        key=key,
        restart=job.restart,
        job=job.id,
        node_rank=rank,
        nodes=nodes,
        head_hosts=heads,
        alias=aliases.get(nodes[rank]),
        ports=naming.candidate_ports(job.cluster, key, job.restart, settings.port_range),
        token=naming.cluster_token(secret, job.cluster, key, job.restart),
        fingerprint=naming.secret_fingerprint(secret),
        world=world,
        shared_run_dir=job_run_dir if purpose == "tasks" else None,
    )
    if rank == 0 and (error := head_error(settings.head, nodes)) is not None:
        from eray._ray.refusal import tell_others

        tell_others(spec, error)
        raise error
    return spec


def head_error(head: str | None, nodes: Sequence[str]) -> SettingError | None:
    """Return what is wrong with ERAY_HEAD, seen from the first node: it names none, and is no address there."""
    if head is None or head in nodes:
        return None
    addresses = net.resolve(head)
    if any(net.is_local(address) for address in addresses):
        return None
    found = f"leads to {', '.join(addresses)}" if addresses else "does not resolve"
    reason = (
        f"is no node of the job ({fold_hostlist(nodes)}) and no address of the first of them, {nodes[0]} (it {found}); "
        "give one of these names, or unset it"
    )
    return SettingError("ERAY_HEAD", head, reason)


def local_spec(site: Site, purpose: str, world: WorldSpec | None = None) -> NodeSpec:
    """Return the spec of a cluster of this machine alone. Its name and token are new each time: nothing is shared."""
    name = socket.gethostname()
    is_guarded = site.settings.auth == "token"
    key = f"{naming.LOCAL}-{secrets.token_hex(LOCAL_KEY_BYTES)}"
    return _spec(
        site,
        purpose=purpose,
        cluster="",
        key=key,
        restart=0,
        job=None,
        node_rank=0,
        nodes=(name,),
        head_hosts=(name,),
        alias=None,
        ports=naming.candidate_ports("", key, 0, site.settings.port_range),
        token=secrets.token_hex(32) if is_guarded else naming.cluster_token(b"", "", key, 0),
        fingerprint="",
        world=world,
        shared_run_dir=None,
    )


def shared_secret(settings: Settings) -> bytes:
    """Return the secret that all nodes of the user's clusters share.

    Raises:
        SecretError, DirectoryError: the secret's file is not safe, or cannot be made.
    """
    if settings.auth == "disabled":
        return b""
    if settings.secret is None:
        return ensure_secret(os.path.expanduser(settings.state_dir))
    return settings.secret.encode()


def ray_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what Ray's processes inherit: no rank of the task that starts them, no address of another Ray."""
    env = {name: value for name, value in environ.items() if name not in _NOT_FOR_RAY}
    for name, value in ray_visibility(environ).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


_NOT_FOR_RAY = frozenset(
    {
        *variables.TASK_RANKS,
        *IDENTITY,
        *("ERAY_RUN_DIR", "ERAY_DEVICES_PER_PROCESS", "ERAY_SECRET"),
        *("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_TMPDIR", "RAY_AUTH_TOKEN"),
    }
)


def device_total(site: Site, hardware_count: int | None) -> int:
    """Return how many accelerators of this node are ours, as this process sees it: what Ray can be told of."""
    slurm = site.slurm
    view = NodeView(
        node=site.node,
        local_count=1,
        in_step=slurm.task is not None,
        gpus_on_node=slurm.gpus_on_node,
        hardware_count=hardware_count,
        override=site.settings.devices,
        processes=(ProcessView(0, slurm.visible),),
    )
    return device_count(view)


def _spec(
    site: Site,
    *,
    purpose: str,
    cluster: str,
    key: str,
    restart: int,
    job: str | None,
    node_rank: int,
    nodes: tuple[str, ...],
    head_hosts: tuple[str, ...],
    alias: str | None,
    ports: tuple[int, ...],
    token: str,
    fingerprint: str,
    world: WorldSpec | None,
    shared_run_dir: str | None,
) -> NodeSpec:
    settings, slurm = site.settings, site.slurm
    run_dir = naming.run_directory(settings.tmpdir, os.getuid(), key, restart)
    in_step = slurm.task is not None
    hardware = read_hardware()
    ray_gpus = settings.ray_gpus
    if ray_gpus is None:
        ray_gpus = device_total(site, hardware.count) if purpose == "up" else 0
    return NodeSpec(
        purpose=purpose,
        cluster=cluster,
        key=key,
        restart=restart,
        job=job,
        node_rank=node_rank,
        node=nodes[node_rank],
        nodes=nodes,
        head_hosts=head_hosts,
        ports=ports,
        token=token,
        fingerprint=fingerprint,
        auth=settings.auth,
        tmpdir=settings.tmpdir,
        run_dir=run_dir,
        ray_dir=naming.ray_temp_directory(run_dir),
        state_dir=os.path.abspath(os.path.expanduser(settings.state_dir)),
        interface=settings.interface,
        alias=alias,
        cpus=slurm.cpus_on_node or len(os.sched_getaffinity(0)),
        memory_bytes=memory_bytes(slurm.memory_mb_on_node),
        ray_gpus=ray_gpus,
        visible=slurm.visible,
        gpus_on_node=slurm.gpus_on_node if in_step else None,
        hardware_count=None if in_step else hardware.count,
        dashboard=purpose == "up" if settings.dashboard is None else settings.dashboard,
        cluster_timeout_s=settings.cluster_timeout_s,
        node_timeout_s=settings.node_timeout_s,
        world=world,
        shared_run_dir=shared_run_dir,
        preemption_signals=settings.preemption_signals,
    )


def _head_first(nodes: tuple[str, ...], rank: int, head: str | None) -> tuple[tuple[str, ...], int]:
    """Put the node that ERAY_HEAD names in front; where it names none of them it is an address of the first."""
    if head is None or head not in nodes:
        return nodes, rank
    ordered = (head, *(node for node in nodes if node != head))
    return ordered, ordered.index(nodes[rank])


def memory_bytes(allotted_mb: int | None) -> int:
    """Return what of this node's memory is ours: what Slurm allotted, else nine tenths of all; never more than granted.

    Where a partition has a default the variables may be missing, and the control group has the limit.
    """
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    ours = allotted_mb * 2**20 if allotted_mb else int(0.9 * pages)
    return min(ours, group_memory() or ours)
