"""One realistic error of each class: what docs/errors.md shows and what must survive pickle."""

from eray import errors
from eray._core.access import RAY_ADDRESS, nothing_answers
from eray._ray.tenant import REMEDIES

EXAMPLES: tuple[errors.ErayError, ...] = (
    errors.UsageError("eray run: no command; write `eray run -- python train.py`"),
    errors.SettingError("ERAY_PORT_RANGE", "24000", "must be two ports, such as 24000-29999"),
    errors.SlurmFormatError("SLURM_JOB_NODELIST", "node[1-", "the bracket at position 4 is not closed"),
    errors.SlurmMissingError(["SLURM_STEP_NODELIST"], "Slurm sets it in every task of a step"),
    errors.SlurmContradictionError([("SLURM_PROCID", "4"), ("SLURM_NTASKS", "4")], "indices run from 0 to 3"),
    errors.NotATaskError("batch-shell", "4711", "the job has 2 nodes, and a batch script runs on one"),
    errors.ForeignLauncherError("mpirun", "OMPI_COMM_WORLD_SIZE=8 but the step has 2 tasks"),
    errors.DevicePlanError(
        "devices-indivisible",
        "node02",
        "3 processes see the same 4 devices 0,1,2,3",
        "start 1, 2 or 4 processes there, or use --gpus-per-task",
    ),
    errors.DirectoryError("/tmp/eray-1000", "owned by uid 1001", "set ERAY_TMPDIR to a directory of your own"),
    errors.SecretError(
        "~/.eray/secret", "others can read it (mode 0644)", "chmod 600 it, or delete it to get a new one"
    ),
    errors.AddressError(
        "node02", "its name resolves to 127.0.1.1 (loopback)", "mend /etc/hosts there, or set ERAY_INTERFACE"
    ),
    errors.LimitError(
        "node02",
        "ulimit -n may be 60; each of Ray's daemons holds about 64",
        "`ulimit -Hn` must be 8192 or more: limits.conf, or LimitNOFILE of slurmd; Slurm hands a shell's on",
    ),
    errors.JaxInterfaceError(
        "0.13.0", "ClusterEnv has no opt_in_only_method", "call eray.connect(), or give the values as arguments"
    ),
    errors.NodesMissingError("node[02-03]", 3, 300.0, "report to the head"),
    errors.BeaconError("node01", "none of the ports 24017, 25301 answers", "see whether a firewall closes them"),
    errors.VersionMismatchError(
        "node02", "Ray 2.59.0, the head has Ray 2.60.0", "use one environment on all nodes, on a shared file system"
    ),
    errors.RayStartError("node02", "raylet exited with code 1: /dev/shm is full", "free it, or ask for less memory"),
    nothing_answers("node01", RAY_ADDRESS, "10.0.0.1:6379"),
    errors.PlacementError("processes with 8 devices each, 1 on each node", "node01 has 16 of 16 CPUs free", 0.0),
    errors.ClusterLostError(
        "node01", "the head's supervisor is gone", "look at the end of its log in the job directory"
    ),
    errors.NodeLockedError(
        "/tmp/eray-1000/123/node.lock",
        "process 4242 on this node",
        "job 123 has a cluster already: `eray run -- python train.py` runs for 3 min 20 s, from node01 (process 4242 "
        f"on this node); {REMEDIES['run']}",
    ),
    errors.ChannelClosed("node02", "it closed the connection"),
    errors.WorldContradictionError("train", "process_count", "4", "8"),
    errors.NotJoinedError("train", 3, 2, "the world is in generation 1"),
    errors.JoinTimeoutError("train", "processes 3 and 7 (node02)", 300.0),
    errors.BarrierTimeoutError("checkpoint", "process 3 (node02)", 60.0),
    errors.DuplicateProcessError("train", 3, "pid 4242 on node02", "pid 5151 on node03"),
    errors.StaleGenerationError("train", 3, 1, 2),
    errors.ConnectionStateError("connect() was called before with world='train', now with world='eval'"),
    errors.JaxStateError("a JAX backend is already up; call eray.connect() before the first use of a JAX device"),
    errors.JaxMismatchError("train", 2, "node02", "local devices", "2", "3", "look at XLA_FLAGS"),
    errors.ResultError(1, "ArrayImpl", "RuntimeError: fetching value for an array that spans other processes"),
    errors.WorldFailedError("train", 1, "process 2 on node02 (pid 4242) ended with code 7"),
)


def public_classes() -> set[type[errors.ErayError]]:
    """Return the classes of the tree that have no leading underscore."""
    found = (value for name, value in vars(errors).items() if not name.startswith("_") and isinstance(value, type))
    return {value for value in found if issubclass(value, errors.ErayError)}
