import inspect
import pickle
import re

import pytest

from eray import errors
from eray.errors import ErayError

ARGS = {
    "ErayError": ("something",),
    "UsageError": ("no command",),
    "ConfigurationError": ("bad",),
    "SettingError": ("ERAY_PORT_RANGE", "x", "must be two ports"),
    "SlurmFormatError": ("SLURM_NODELIST", "n[1", "bracket is not closed"),
    "SlurmMissingError": (("SLURM_PROCID", "SLURM_LOCALID"), "a step always has them"),
    "SlurmContradictionError": ((("SLURM_NTASKS", "2"), ("SLURM_PROCID", "5")), "beyond the last"),
    "NotATaskError": ("batch-shell", "42", "several nodes"),
    "ForeignLauncherError": ("mpirun", "OMPI_COMM_WORLD_RANK is set"),
    "DevicePlanError": ("devices-indivisible", "node02", "3 processes and 4 devices", "start 2 or 4"),
    "DirectoryError": ("/run/x", "is a symlink", "remove it"),
    "SecretError": ("~/.eray/secret", "others can read it", "chmod 600"),
    "AddressError": ("node02", "resolves to 127.0.1.1", "mend /etc/hosts"),
    "ClusterError": ("lost",),
    "NodesMissingError": ("node[02-03]", 4, 300.0, "report"),
    "BeaconError": ("node01", "no port is free", "widen ERAY_PORT_RANGE"),
    "VersionMismatchError": ("node02", "ray 2.60.0, the head has 2.61.0", "use one environment"),
    "RayStartError": ("node02", "ray start ended", "look at its log"),
    "RayAttachError": ("node02", "another cluster", "unset RAY_ADDRESS"),
    "NodeLockedError": ("/run/x/lock", "pid 12"),
    "ChannelClosed": ("node02", "end of file"),
    "ClusterLostError": ("node01", "no coordinator", "look at the log"),
    "JoinError": ("no",),
    "JoinTimeoutError": ("main", "processes 3 and 7 (node02)", 120.0, "join"),
    "BarrierTimeoutError": ("checkpoint", "process 3 (node02)", 60.0),
    "DuplicateProcessError": ("main", 3, "pid 1 on a", "pid 2 on b"),
    "StaleGenerationError": ("main", 3, 1, 2),
    "WorldContradictionError": ("main", "process_count", "4", "8"),
    "NotJoinedError": ("main", 3, 1, "the coordinator does not know this world"),
    "ConnectionStateError": ("closed",),
    "JaxStateError": ("jax was initialised",),
    "JaxMismatchError": ("main", 3, "node02", "local devices", "2", "3"),
    "WorldFailedError": ("main", 1, "process 3 on node02 died: signal 9"),
}
CLASSES = {
    name: item
    for name, item in vars(errors).items()
    if inspect.isclass(item) and issubclass(item, ErayError) and not name.startswith("_")
}
NOT_SHOWN = {"main"}  # JaxMismatchError names the process and its node, WorldFailedError the world
CODES = {"ErayError": 1, "UsageError": 2, "ConfigurationError": 3, "ClusterError": 4, "JoinError": 5}


@pytest.fixture(params=sorted(CLASSES), name="error")
def one_of_every_class(request):
    return CLASSES[request.param](*ARGS[request.param])


def test_error_survives_pickle(error):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(error, protocol))
        assert type(copy) is type(error)
        assert (copy.args, str(copy), vars(copy)) == (error.args, str(error), vars(error))


def test_error_is_made_again_from_its_args(error):
    assert str(type(error)(*error.args)) == str(error)


def test_error_text_says_all_that_it_was_given(error):
    for part in error.args:
        values = part if isinstance(part, tuple) else (part,)
        for value in values:
            for text in value if isinstance(value, tuple) else (value,):
                shown = f"{text:g}" if isinstance(text, float) else str(text)
                assert shown in str(error) or shown in NOT_SHOWN


def test_error_has_the_exit_code_of_its_branch(error):
    branch = [name for name in CODES if isinstance(error, CLASSES[name])][-1]
    assert error.exit_code == CODES[branch]


def test_tree_in_the_docstring_is_the_tree_of_classes():
    tree = errors.__doc__.partition("::")[2].partition("The number is")[0]
    branches = {}
    path = []
    for line in tree.splitlines():
        found = re.match(r"^ {4}([│ ├└─]*)(\w+)\b(?:\s+\((\w+)\))?", line)
        if found:
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            branches[found[2]] = (path[-2] if depth else None, found[3])
    assert set(branches) == set(CLASSES)
    for name, (parent, builtin) in branches.items():
        if parent:
            assert issubclass(CLASSES[name], CLASSES[parent])
        if builtin:
            assert builtin in [base.__name__ for base in CLASSES[name].__mro__]


def test_every_class_has_an_example_here():
    assert set(ARGS) == set(CLASSES)
