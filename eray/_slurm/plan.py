"""What eray makes of one environment, or of those of several tasks of one step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eray._core.devices import NodeView, ProcessView, Share, plan_node
from eray._core.naming import candidate_ports, cluster_key
from eray._settings import Settings
from eray._slurm import variables as v
from eray._slurm.environment import Job, Mode, SlurmEnvironment, read_environment, read_mode
from eray._slurm.membership import foreign_error, head_notice, require_job
from eray.errors import (
    ConfigurationError,
    DevicePlanError,
    ForeignLauncherError,
    NotATaskError,
    SettingError,
    SlurmContradictionError,
    SlurmFormatError,
    SlurmMissingError,
)

SETTING = "setting"
_CODES: tuple[tuple[type[ConfigurationError], str], ...] = (
    (SlurmFormatError, "slurm-format"),
    (SlurmMissingError, "slurm-missing"),
    (SlurmContradictionError, "slurm-contradiction"),
    (NotATaskError, "not-a-task"),
    (ForeignLauncherError, "foreign-launcher"),
    (SettingError, SETTING),
)


@dataclass(frozen=True)
class PlannedProcess:
    """One process, with the devices it gets; null ids and rule where a problem left them open."""

    process_index: int
    node: str
    node_rank: int
    local_index: int
    local_count: int
    visible: tuple[str, ...] | None
    local_device_ids: tuple[int, ...] | None
    device_rule: str | None


@dataclass(frozen=True)
class Problem:
    """Something that will not work, by a stable code and in words."""

    code: str
    message: str


@dataclass(frozen=True)
class Plan:
    """What ``eray plan`` prints; ``notices`` are remarks that are no problems."""

    environment: Mode
    job: Job | None
    key: str | None
    ports: tuple[int, ...] | None
    nodes: tuple[str, ...]
    head: str | None
    process_count: int | None
    processes: tuple[PlannedProcess, ...]
    problems: tuple[Problem, ...]
    notices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON types, with the stable field names of ``eray plan --json``."""
        job = self.job and {"id": self.job.id, "step": self.job.step, "restart": self.job.restart}
        return {
            "environment": str(self.environment),
            "job": job,
            "key": self.key,
            "ports": None if self.ports is None else list(self.ports),
            "nodes": list(self.nodes),
            "head": self.head,
            "process_count": self.process_count,
            "processes": [_listed(vars(process)) for process in self.processes],
            "problems": [dict(vars(problem)) for problem in self.problems],
        }


def make_plan(
    environs: Sequence[Mapping[str, str]], hardware_count: int | None = None, host: str | None = None
) -> Plan:
    """Plan for one environment, or for the environments of several tasks of one step.

    ``hardware_count`` and ``host`` are those of this node, where the environment is of a process here: the one may
    settle what an unset visible list leaves open, the other is a node's name where Slurm gives none.

    Nothing is raised: what would stop ``connect()`` stands in the plan's problems.
    """
    problems: dict[Problem, None] = {}
    readings: list[tuple[SlurmEnvironment, Settings]] = []
    for environ in environs:
        found: list[Any] = []
        for read in (read_environment, Settings.from_environ):
            try:
                found.append(read(environ))
            except SettingError as error:
                problems.update(dict.fromkeys(map(problem_of, error.each())))
            except ConfigurationError as error:
                problems[problem_of(error)] = None
        if len(found) == 2:
            readings.append((found[0], found[1]))
    if not readings:
        return Plan(read_mode(environs[0]), None, None, None, (), None, None, (), tuple(problems))
    readings, strangers = _one_step(readings)
    problems.update(dict.fromkeys(strangers))
    base, settings = readings[0]
    key = ports = None
    try:
        if base.mode is Mode.FOREIGN_LAUNCHER:
            raise foreign_error(base)
        if base.mode not in (Mode.NONE, Mode.RAY_WORKER):
            job = require_job(base)
            key = cluster_key(job.id, job.step)
            ports = candidate_ports(job.cluster, key, job.restart, settings.port_range)
    except ConfigurationError as error:
        problems[problem_of(error)] = None
    nodes = base.nodes or ((host,) if host is not None and base.mode is Mode.NONE else ())
    processes, device_problems = _plan_devices(_placed(readings, host), hardware_count)
    problems.update(dict.fromkeys(device_problems))
    return Plan(
        environment=base.mode,
        job=base.job,
        key=key,
        ports=ports,
        nodes=nodes,
        head=(settings.head if base.nodes else None) or (nodes[0] if nodes else None),
        process_count=_process_count(base),
        processes=processes,
        problems=tuple(problems),
        notices=(
            *dict.fromkeys(notice for one, _ in readings for notice in one.notices),
            *head_notice(settings.head, base),
        ),
    )


def _process_count(base: SlurmEnvironment) -> int | None:
    if base.task:
        return base.task.process_count
    return 1 if base.mode in (Mode.SINGLE, Mode.NONE) else None


def _one_step(
    readings: Sequence[tuple[SlurmEnvironment, Settings]],
) -> tuple[list[tuple[SlurmEnvironment, Settings]], list[Problem]]:
    """Keep the environments that belong together: the first task's step, else the first environment alone."""
    base = next((reading for reading, _ in readings if reading.task), readings[0][0])
    kept: list[tuple[SlurmEnvironment, Settings]] = []
    problems = []
    indexes: dict[int, str] = {}
    for reading, settings in readings:
        if base.task and not reading.task:
            job = reading.job.id if reading.job else "?"
            problems.append(problem_of(NotATaskError(reading.mode, job, "the other environments are tasks")))
        elif _identity(reading) != _identity(base) or (kept and not base.task):
            values = [(v.JOB_ID[0], str(one.job and one.job.id)) for one in (base, reading)]
            reason = "the environments are not of tasks of one step, or its tasks do not agree on nodes and counts"
            problems.append(problem_of(SlurmContradictionError(values, reason)))
        elif reading.task and reading.task.process_index in indexes:
            values = [(v.PROCID, str(reading.task.process_index))] * 2
            problems.append(problem_of(SlurmContradictionError(values, "two environments claim one process index")))
        else:
            kept.append((reading, settings))
            if reading.task:
                indexes[reading.task.process_index] = reading.task.node
    return kept, problems


def _identity(reading: SlurmEnvironment) -> object:
    task = reading.task
    return reading.mode, reading.job, reading.nodes, task and task.tasks_per_node


def _placed(
    readings: Sequence[tuple[SlurmEnvironment, Settings]], host: str | None
) -> list[tuple[PlannedProcess, SlurmEnvironment, Settings]]:
    placed = []
    for reading, settings in readings:
        task = reading.task
        if task:
            place = (task.process_index, task.node, task.node_rank, task.local_index, task.local_count)
        elif reading.mode in (Mode.SINGLE, Mode.NONE):
            place = (0, reading.node_name or host or "localhost", 0, 0, 1)
        else:
            continue
        placed.append((PlannedProcess(*place, reading.visible, None, None), reading, settings))
    return sorted(placed, key=lambda item: item[0].process_index)


def _plan_devices(
    placed: Sequence[tuple[PlannedProcess, SlurmEnvironment, Settings]],
    hardware_count: int | None,
) -> tuple[tuple[PlannedProcess, ...], list[Problem]]:
    problems: dict[str, Problem] = {}
    shares: dict[tuple[int, int], Share] = {}
    for rank in dict.fromkeys(process.node_rank for process, _, _ in placed):
        members = [item for item in placed if item[0].node_rank == rank]
        try:
            for share in plan_node(_node_view(members, hardware_count)):
                shares[rank, share.local_index] = share
        except ConfigurationError as error:
            problem = problem_of(error)
            problems.setdefault(problem.code, problem)
    if problems:  # a world runs whole or not at all
        return tuple(process for process, _, _ in placed), list(problems.values())
    planned = []
    for process, _, _ in placed:
        share = shares[process.node_rank, process.local_index]
        decided = {"local_device_ids": share.local_device_ids, "device_rule": share.rule}
        planned.append(PlannedProcess(**{**vars(process), **decided}))
    return tuple(planned), []


def _node_view(
    members: Sequence[tuple[PlannedProcess, SlurmEnvironment, Settings]], hardware_count: int | None
) -> NodeView:
    process, reading, _ = members[0]
    return NodeView(
        node=process.node,
        local_count=process.local_count,
        in_step=reading.mode is Mode.STEP,
        gpus_on_node=reading.gpus_on_node,
        hardware_count=hardware_count,
        override=None,
        processes=tuple(
            ProcessView(one.local_index, one.visible, override=settings.devices) for one, _, settings in members
        ),
    )


def problem_of(error: ConfigurationError) -> Problem:
    """Return an error as a problem, with its stable code."""
    if isinstance(error, DevicePlanError):
        return Problem(error.code, str(error))
    return Problem(next(code for kind, code in _CODES if isinstance(error, kind)), str(error))


def _listed(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
