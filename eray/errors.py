"""Every error that eray raises, each with what was found, where, and what to change.

::

    ErayError
    ├── UsageError                  (ValueError)    2  a command or call that makes no sense
    ├── ConfigurationError          (ValueError)    3  the environment cannot work
    │   ├── SettingError                               an ERAY_* variable or argument has a bad value
    │   ├── SlurmFormatError                           a Slurm variable holds text that eray cannot read
    │   ├── SlurmMissingError                          a Slurm variable that a step always has is absent
    │   ├── SlurmContradictionError                    two Slurm variables cannot both be true
    │   ├── NotATaskError                              a shell or batch script of a job, not a task
    │   ├── ForeignLauncherError                       mpirun and the like inside a Slurm step
    │   ├── DevicePlanError                            devices of a node cannot be divided safely
    │   ├── DirectoryError                             a directory is unsafe, too long, or on the wrong disk
    │   ├── SecretError                                the secret is missing, or others can read it
    │   ├── AddressError                               a node has no address that others can reach
    │   ├── LimitError                                 a node's processes may have too little
    │   └── JaxInterfaceError       (RuntimeError)     JAX takes cluster environments in another way
    ├── ClusterError                (RuntimeError)  4  the cluster did not come up, or was lost
    │   ├── NodesMissingError       (TimeoutError)     some nodes did not report in time
    │   ├── BeaconError                                the head cannot listen, or is not who it should be
    │   ├── VersionMismatchError                       nodes run different Pythons, Rays or erays
    │   ├── RayStartError                              Ray did not start on a node
    │   ├── RayAttachError                             a Ray cluster cannot be reached or is another one
    │   ├── PlacementError          (TimeoutError)     the cluster has no room for a world's processes
    │   ├── NodeLockedError                            another supervisor holds this node's run directory
    │   ├── ChannelClosed                              a node's channel to the head ended
    │   └── ClusterLostError                           the supervisor or the coordinator is gone
    └── JoinError                   (RuntimeError)  5  a process could not join, or its world failed
        ├── JoinTimeoutError        (TimeoutError)     some processes did not join in time
        ├── BarrierTimeoutError     (TimeoutError)     some processes did not reach a barrier in time
        ├── DuplicateProcessError                      two living processes claim one index
        ├── StaleGenerationError                       the process belongs to an earlier life of its world
        ├── WorldContradictionError                    processes of one world do not agree on what it is
        ├── NotJoinedError                             the coordinator does not know this process or its world
        ├── ConnectionStateError                       connect() again with other arguments, use after close
        ├── JaxStateError                              JAX was started or touched before connect()
        ├── JaxMismatchError                           JAX came up differently from the plan
        ├── WorldFailedError                           a process of this world failed; the first cause is kept
        └── ResultError                                what a launched process returned cannot be sent

The number is the exit code of a command that ends with the error. Data stands in ``args`` and words in
``__str__``, so that every error survives pickle and so Ray (an exception that formats its message in
``__init__`` does not).
"""

from collections.abc import Mapping, Sequence
from typing import Any


class ErayError(Exception):
    """Base of all errors of eray. ``is_heard`` tells that a world failed by it in another process, or as a whole."""

    exit_code = 1
    is_heard = False


class UsageError(ErayError, ValueError):
    """A command line or call that makes no sense."""

    exit_code = 2


class ConfigurationError(ErayError, ValueError):
    """The environment or the configuration cannot work."""

    exit_code = 3


class _VariableError(ConfigurationError):
    def __init__(self, variable: str, value: str, reason: str) -> None:
        super().__init__(variable, value, reason)
        self.variable, self.value, self.reason = variable, value, reason

    def __str__(self) -> str:
        return f"{self.variable}={self.value!r}: {self.reason}"


class SettingError(_VariableError):
    """An ERAY_* variable or an argument has a value that eray cannot use.

    ``more`` are the (variable, value, reason) of others that are bad too.
    """

    def __init__(self, variable: str, value: str, reason: str, more: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(variable, value, reason)
        self.more = tuple((str(name), str(text), str(why)) for name, text, why in more)
        if self.more:
            self.args = (*self.args, self.more)

    def each(self) -> "list[SettingError]":
        """Return one error for each variable."""
        return [SettingError(*bad) for bad in ((self.variable, self.value, self.reason), *self.more)]

    def __str__(self) -> str:
        return super().__str__() + "".join(f"; and {name}={value!r}: {why}" for name, value, why in self.more)


class SlurmFormatError(_VariableError):
    """A Slurm variable holds text that eray cannot read."""


class SlurmMissingError(ConfigurationError):
    """A Slurm variable that a task of a step always has is absent."""

    def __init__(self, variables: Sequence[str], reason: str) -> None:
        super().__init__(tuple(variables), reason)
        self.variables, self.reason = tuple(variables), reason

    def __str__(self) -> str:
        return f"missing {', '.join(self.variables)}: {self.reason}"


class SlurmContradictionError(ConfigurationError):
    """Two Slurm variables cannot both be true."""

    def __init__(self, values: Sequence[tuple[str, str]], reason: str) -> None:
        super().__init__(tuple(tuple(pair) for pair in values), reason)
        self.values, self.reason = tuple((name, value) for name, value in values), reason

    def __str__(self) -> str:
        return f"{', '.join(f'{name}={value!r}' for name, value in self.values)}: {self.reason}"


class NotATaskError(ConfigurationError):
    """This process is a shell or batch script of a job, not one of its tasks."""

    def __init__(self, environment: str, job: str, reason: str) -> None:
        super().__init__(environment, job, reason)
        self.environment, self.job, self.reason = environment, job, reason

    def __str__(self) -> str:
        return (
            f"this is the {self.environment} of job {self.job}, not a task of a step: {self.reason}; "
            "start the program with `srun python …` or `eray run -- python …`"
        )


class ForeignLauncherError(ConfigurationError):
    """Another launcher (mpirun, …) started this process inside a Slurm step."""

    def __init__(self, launcher: str, reason: str) -> None:
        super().__init__(launcher, reason)
        self.launcher, self.reason = launcher, reason

    def __str__(self) -> str:
        return (
            f"{self.launcher} started this process inside a Slurm step: {self.reason}; start it by `srun python …` or "
            "`eray run -- python …` instead"
        )


class DevicePlanError(ConfigurationError):
    """The devices of a node cannot be divided among its processes safely.

    ``code`` is one of ``devices-unknown``, ``devices-indivisible``, ``devices-overlap`` and ``too-many-processes``.
    """

    def __init__(self, code: str, node: str, found: str, remedy: str) -> None:
        super().__init__(code, node, found, remedy)
        self.code, self.node, self.found, self.remedy = code, node, found, remedy

    def __str__(self) -> str:
        return f"node {self.node}: {self.found} ({self.code}); {self.remedy}"


class _PathError(ConfigurationError):
    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(path, reason, remedy)
        self.path, self.reason, self.remedy = path, reason, remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; {self.remedy}"


class DirectoryError(_PathError):
    """A directory that eray needs is unsafe, too long, or on the wrong kind of disk."""


class SecretError(_PathError):
    """The secret is missing or malformed, or others can read it."""


class _NodeConfigurationError(ConfigurationError):
    def __init__(self, node: str, found: str, remedy: str) -> None:
        super().__init__(node, found, remedy)
        self.node, self.found, self.remedy = node, found, remedy

    def __str__(self) -> str:
        return f"node {self.node}: {self.found}; {self.remedy}"


class AddressError(_NodeConfigurationError):
    """A node has no address that the other nodes can reach."""


class LimitError(_NodeConfigurationError):
    """The kernel grants the processes of a node too few open files or threads for Ray."""


class JaxInterfaceError(ConfigurationError, RuntimeError):
    """This version of JAX has changed what eray needs to know of its cluster detection."""

    def __init__(self, version: str, found: str, remedy: str) -> None:
        super().__init__(version, found, remedy)
        self.version, self.found, self.remedy = version, found, remedy

    def __str__(self) -> str:
        return f"JAX {self.version} takes cluster environments in another way: {self.found}; {self.remedy}"


class ClusterError(ErayError, RuntimeError):
    """The cluster did not come up, or was lost."""

    exit_code = 4


class NodesMissingError(ClusterError, TimeoutError):
    """Some nodes did not report to the head in time. ``missing`` is a folded host list."""

    def __init__(self, missing: str, expected: int, timeout_s: float, doing: str) -> None:
        super().__init__(missing, expected, timeout_s, doing)
        self.missing, self.expected, self.timeout_s, self.doing = missing, expected, timeout_s, doing

    def __str__(self) -> str:
        nodes = f"{self.expected} node{'' if self.expected == 1 else 's'}"
        return (
            f"{self.missing} (of {nodes}) did not {self.doing} within {self.timeout_s:g} s; look at the "
            "log of eray on that node, or raise ERAY_CLUSTER_TIMEOUT_S"
        )


class _NodeError(ClusterError):
    def __init__(self, node: str, found: str, remedy: str) -> None:
        super().__init__(node, found, remedy)
        self.node, self.found, self.remedy = node, found, remedy

    def __str__(self) -> str:
        return f"node {self.node}: {self.found}; {self.remedy}"


class BeaconError(_NodeError):
    """The head cannot listen for the other nodes, or what answers there is not the head of this cluster."""


class VersionMismatchError(_NodeError):
    """Nodes run different versions of Python, Ray or eray."""


class RayStartError(_NodeError):
    """Ray did not start on a node; ``found`` ends with the last lines of the log that tells why."""


class RayAttachError(_NodeError):
    """A Ray cluster cannot be reached, or is another one than this process needs."""


class PlacementError(ClusterError, TimeoutError):
    """The cluster has no room for the processes of a world, or others held it for ``waited_s`` seconds."""

    def __init__(self, asked: str, found: str, waited_s: float) -> None:
        super().__init__(asked, found, waited_s)
        self.asked, self.found, self.waited_s = asked, found, waited_s

    def __str__(self) -> str:
        if self.waited_s:
            return (
                f"no room for {self.asked} within {self.waited_s:g} s: {self.found}; others hold the rest: ask for "
                "less, or give timeout_s longer"
            )
        return f"the cluster cannot hold {self.asked}: {self.found}; ask for less of it"


class NodeLockedError(ClusterError):
    """Another supervisor of the same cluster holds this node's run directory: ``holder``, or in full ``words``."""

    def __init__(self, path: str, holder: str, words: str = "") -> None:
        super().__init__(path, holder, words)
        self.path, self.holder, self.words = path, holder, words

    def __str__(self) -> str:
        one = f"{self.path} is held by {self.holder}; one supervisor a node and cluster is enough, stop one of the two"
        return self.words or one


class ChannelClosed(ClusterError):
    """A node's channel to the head ended, or carried something that its peer cannot have sent."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(peer, reason)
        self.peer, self.reason = peer, reason

    def __str__(self) -> str:
        return f"the channel to {self.peer} is closed: {self.reason}; look at the log of eray on that node"


class ClusterLostError(_NodeError):
    """The supervisor, the head or the coordinator is gone."""


class JoinError(ErayError, RuntimeError):
    """A process could not join its world, or its world failed."""

    exit_code = 5


class JoinTimeoutError(JoinError, TimeoutError):
    """Some processes did not come in time. ``missing`` names them with their nodes where these are known."""

    def __init__(self, world: str, missing: str, timeout_s: float, stage: str = "join") -> None:
        super().__init__(world, missing, timeout_s, stage)
        self.world, self.missing, self.timeout_s, self.stage = world, missing, timeout_s, stage

    def __str__(self) -> str:
        return (
            f"world {self.world!r}: {self.missing} did not {self.stage} within {self.timeout_s:g} s; see whether that "
            "process started and called eray.connect(), or raise ERAY_JOIN_TIMEOUT_S"
        )


class BarrierTimeoutError(JoinError, TimeoutError):
    """Some processes did not reach a barrier in time."""

    def __init__(self, barrier: str, missing: str, timeout_s: float) -> None:
        super().__init__(barrier, missing, timeout_s)
        self.barrier, self.missing, self.timeout_s = barrier, missing, timeout_s

    def __str__(self) -> str:
        return f"barrier {self.barrier!r}: {self.missing} did not arrive within {self.timeout_s:g} s"


class DuplicateProcessError(JoinError):
    """Two living processes claim one process index."""

    def __init__(self, world: str, process_index: int, first: str, second: str) -> None:
        super().__init__(world, process_index, first, second)
        self.world, self.process_index, self.first, self.second = world, process_index, first, second

    def __str__(self) -> str:
        return (
            f"world {self.world!r}: process {self.process_index} is already {self.first}, and {self.second} claims the "
            "same index; start each process once, or give the second program another ERAY_WORLD"
        )


class StaleGenerationError(JoinError):
    """The process belongs to an earlier life of its world."""

    def __init__(self, world: str, process_index: int, generation: int, current: int) -> None:
        super().__init__(world, process_index, generation, current)
        self.world, self.process_index = world, process_index
        self.generation, self.current = generation, current

    def __str__(self) -> str:
        return (
            f"world {self.world!r}: process {self.process_index} is of generation {self.generation}, the world is now "
            f"in generation {self.current}; this process must end"
        )


class WorldContradictionError(JoinError):
    """Processes of one world, or its launcher, do not agree on what the world is."""

    def __init__(self, world: str, what: str, known: str, claimed: str) -> None:
        super().__init__(world, what, known, claimed)
        self.world, self.what, self.known, self.claimed = world, what, known, claimed

    def __str__(self) -> str:
        return (
            f"world {self.world!r}: {self.what} is {self.known}, but {self.claimed} was claimed; start all processes "
            "of a world alike, or give the other program another ERAY_WORLD"
        )


class NotJoinedError(JoinError):
    """The coordinator does not know this process, its world, or this generation."""

    def __init__(self, world: str, process_index: int, generation: int, reason: str) -> None:
        super().__init__(world, process_index, generation, reason)
        self.world, self.process_index, self.generation, self.reason = world, process_index, generation, reason

    def __str__(self) -> str:
        return (
            f"world {self.world!r}: process {self.process_index} (generation {self.generation}) has not joined: "
            f"{self.reason}; the program must start again"
        )


class ConnectionStateError(JoinError):
    """connect() was called again with other arguments, or a connection was used after close() or in a fork."""


class JaxStateError(JoinError):
    """JAX was initialised, or one of its backends was touched, before connect()."""


class JaxMismatchError(JoinError):
    """JAX came up differently from the plan."""

    def __init__(
        self, world: str, process_index: int, node: str, what: str, planned: str, found: str, remedy: str
    ) -> None:
        super().__init__(world, process_index, node, what, planned, found, remedy)
        self.world, self.process_index, self.node = world, process_index, node
        self.what, self.planned, self.found, self.remedy = what, planned, found, remedy

    def __str__(self) -> str:
        return (
            f"process {self.process_index} on {self.node}: the plan says {self.what} {self.planned}, "
            f"JAX has {self.found}; {self.remedy}"
        )


class WorldFailedError(JoinError):
    """A process of this world failed. The first cause is kept."""

    def __init__(self, world: str, generation: int, cause: str) -> None:
        super().__init__(world, generation, cause)
        self.world, self.generation, self.cause = world, generation, cause

    def __str__(self) -> str:
        return f"world {self.world!r} (generation {self.generation}) failed: {self.cause}"


class ResultError(JoinError):
    """What a launched process returned cannot be pickled there, or not be read in the driver."""

    def __init__(self, process_index: int, what: str, reason: str) -> None:
        super().__init__(process_index, what, reason)
        self.process_index, self.what, self.reason = process_index, what, reason

    def __str__(self) -> str:
        return (
            f"process {self.process_index} returned {self.what}, which cannot be sent to the driver: {self.reason}; "
            "return plain values or this process's own numpy arrays"
        )


def error_data(error: ErayError) -> dict[str, Any]:
    """Return an error as JSON types: the name of its class and its args."""
    return {"type": type(error).__name__, "args": list(error.args)}


def error_of(data: Mapping[str, Any]) -> ErayError:
    """Return the error that came as data; one of a class that is not here is an ErayError with its words."""
    kind = globals().get(str(data["type"]))
    if isinstance(kind, type) and issubclass(kind, ErayError):
        return kind(*data["args"])
    return ErayError(*data["args"])
