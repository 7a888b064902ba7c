"""What `eray doctor` makes of facts: rows of facts and the finding that must come of them."""

import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from eray._core.checkup import Facts, check
from eray._core.checkup_limits import Limits
from eray._core.checkup_network import MOST_NAMES, Network, Ports, names_to_ask
from eray._core.checkup_node import Clock, Disk, Node, OtherRay
from eray._core.checkup_software import FLOORS, Accelerators, Secret, Slurm, Software
from eray._core.finding import Fault, Status
from eray._core.place import Place, place_of
from eray._core.sizes import size
from eray.errors import AddressError, BeaconError, DirectoryError, SettingError

ROOT = Path(__file__).resolve().parents[2]
GIB = 2**30
FAULT = Fault("what is wrong", "what to do")
VERSIONS = {
    "ray": "2.60.0",
    "jax": "0.10.2",
    "jaxlib": "0.10.2",
    "eray": "0.1.0",
    "filelock": "3.16",
    "pydantic": "2.12",
    "rich": "13.7",
    "shtab": "1.9",
}
PORTS = (24001, 24002, 24003)

HEALTHY = Facts(
    place=Place("step", ("n1", "n2"), "n2", True, "n1"),
    network=Network(
        hostname="host2",
        resolved={"n1": ("10.0.0.1",), "n2": ("10.0.0.2",), "host2": ("10.0.0.2",)},
        interface=None,
        interfaces=(("lo", "127.0.0.1"), ("eth0", "10.0.0.2")),
        address="10.0.0.2",
        ports=Ports(PORTS),
    ),
    node=Node(
        temporary=Disk("/tmp", "ext4", 100 * GIB, 200 * GIB, 10**6),
        run_directory="/tmp/eray-1000/7",
        shared_free_bytes=60 * GIB,
        memory_bytes=100 * GIB,
        limits=Limits(
            open_files=65536,
            threads=60000,
            threads_used=500,
            group_room=None,
            locked_bytes=None,
            has_infiniband=True,
            core_bytes=0,
            core_path="core",
        ),
        clock=Clock("12:00:00", 0.01),
        kernel="6.1.0",
        pidfd=True,
        other_rays=(),
    ),
    software=Software(
        slurm=Slurm("7", (), (), "/usr/bin/srun", runs_steps=False),
        python="3.11.2",
        executable="/venv/bin/python",
        versions=VERSIONS,
        accelerators=Accelerators(None, 0, None),
        state_directory="/home/u/.eray on nfs4",
        secret=Secret("token", "~/.eray/secret", "0a1b2c3d", shared=True),
        proxies={},
        ray_address=None,
    ),
)
NAMES = [finding.name for finding in check(HEALTHY).findings]


def with_facts(facts, **changes):
    """Return the facts with each field of that name, at whatever depth, replaced."""
    found = {each.name: changes[each.name] for each in fields(facts) if each.name in changes}
    for each in fields(facts):
        value = getattr(facts, each.name)
        if each.name not in found and is_dataclass(value):
            found[each.name] = with_facts(value, **changes)
    return replace(facts, **found)


def versions(**changes):
    return {**VERSIONS, **changes}


def resolved(**changes):
    return {**HEALTHY.network.resolved, **changes}


GPUS = {"accelerators": Accelerators("cuda", 4, ("0", "1", "2", "3"))}
HEAD = {"place": replace(HEALTHY.place, name="n1")}
LOGIN = {"place": Place("allocation-shell", ("n1", "n2"), "login", False, "n1"), "ports": None}
SHELL = {"place": replace(HEALTHY.place, environment="batch-shell", name="n1")}
ALONE = {"place": Place("none", (), "laptop", False, None), "ports": Ports(tuple(range(24000, 30000)))}
ONE_NODE = {"place": Place("step", ("n1",), "n1", True, "n1")}
NO_SRUN = Slurm("7", (), (), None, runs_steps=True)

ROWS = [
    # Slurm's words
    ({}, "environment", "ok", "step of job 7, 2 nodes, head n1"),
    (ALONE | {"slurm": Slurm(None, (), (), None, False)}, "environment", "ok", "no job"),
    (LOGIN, "environment", "note", "this host is none of them"),
    (SHELL | {"slurm": replace(HEALTHY.software.slurm, runs_steps=True)}, "environment", "note", "this is one of them"),
    ({"notices": ("looks like --pty",)}, "environment", "note", "looks like --pty"),
    ({"problems": (("slurm-format", "SLURM_X='?': no"),)}, "environment", "error", "slurm-format: SLURM_X='[?]': no"),
    ({"problems": (("devices-overlap", "node n2: so"),)}, "environment", "error", "devices-overlap: node n2: so"),
    ({"slurm": NO_SRUN}, "srun", "error", "not on PATH"),
    ({"slurm": replace(NO_SRUN, runs_steps=False)}, "srun", "ok", "not needed"),
    # libraries
    ({}, "versions", "ok", "Python 3.11.2, ray 2.60.0, jax 0.10.2"),
    ({"versions": versions(ray=None)}, "versions", "error", "missing: ray"),
    ({"versions": versions(jaxlib=None)}, "versions", "error", "missing: jaxlib"),
    ({"versions": versions(ray="2.53.1")}, "versions", "warning", "older than tested"),
    ({"versions": versions(jax="0.8.1rc1")}, "versions", "ok", ""),
    ({"versions": versions(jax="0.11.0.dev20260101")}, "versions", "ok", ""),
    ({}, "accelerators", "ok", "none"),
    (GPUS, "accelerators", "warning", "no plugin"),
    ({"accelerators": Accelerators("cuda", None, None)}, "accelerators", "warning", "some of cuda, all visible"),
    ({"accelerators": Accelerators("cuda", 4, ())}, "accelerators", "ok", "visible: none"),
    (
        GPUS | {"versions": versions(**{"jax-cuda12-plugin": "0.10.2"})},
        "accelerators",
        "ok",
        "jax-cuda12-plugin 0.10.2",
    ),
    (GPUS | {"versions": versions(**{"jax-cuda12-plugin": "0.9.0"})}, "accelerators", "warning", "ignores jax-cuda12"),
    (
        {"accelerators": Accelerators("rocm", 2, None), "versions": versions(**{"jax-rocm7-plugin": "0.8.0"})},
        "accelerators",
        "ok",
        "2 of rocm",  # its version need not be jaxlib's
    ),
    # the secret and what else stands in the environment
    ({"state_directory": FAULT}, "state-directory", "error", "what is wrong"),
    ({}, "secret", "ok", "fingerprint 0a1b2c3d"),
    ({"secret": Secret("token", "~/.eray/secret", None, True)}, "secret", "ok", "made at its first use"),
    ({"secret": Secret("token", "~/.eray/secret", FAULT, True)}, "secret", "error", "what is wrong"),
    ({"secret": Secret("token", "~/.eray/secret", "0a", False)}, "secret", "warning", "other nodes may have another"),
    (ALONE | {"secret": Secret("token", "~/.eray/secret", "0a", False)}, "secret", "ok", ""),
    ({"secret": Secret("token", "ERAY_SECRET", "0a", None)}, "secret", "ok", "ERAY_SECRET"),
    ({"secret": Secret("disabled", "", "0a", None)}, "secret", "warning", "run code as you"),
    ({"proxies": {"http_proxy": "http://me:pass@proxy:80"}}, "proxies", "note", "http_proxy=http://…@proxy:80$"),
    ({"ray_address": "10.0.0.9:6379"}, "ray-address", "warning", "not the job's"),
    (ALONE | {"ray_address": "10.0.0.9:6379"}, "ray-address", "note", "joins that Ray"),
    # names
    ({}, "names", "ok", "n1 10.0.0.1, n2 10.0.0.2"),
    (ALONE, "names", "ok", "no other node"),
    ({"resolved": resolved(n1=())}, "names", "error", "n1 not known, of 2 names; the head n1 is among them"),
    ({"resolved": resolved(n1=None)}, "names", "error", "no answer for n1"),
    ({"resolved": resolved(n2=())}, "names", "warning", "n2 not known"),
    (HEAD | {"resolved": resolved(n1=(), n2=None)}, "names", "warning", "n1 not known and no answer for n2"),
    (LOGIN | {"resolved": resolved(n1=())}, "names", "note", "n1 not known"),
    ({"resolved": resolved(n1=("127.0.1.1",))}, "names", "error", "which is this node itself"),
    ({"resolved": resolved(n1=("127.0.1.1",), n2=())}, "names", "error", "which is this node itself"),
    (HEAD | {"resolved": resolved(n1=("127.0.1.1",))}, "names", "ok", ""),
    # this node's address
    ({}, "address", "ok", "10.0.0.2"),
    ({"address": FAULT}, "address", "error", "what is wrong"),
    ({"resolved": resolved(host2=("127.0.1.1",))}, "address", "warning", "host name host2 is 127.0.1.1"),
    (ALONE | {"resolved": {"host2": ("127.0.1.1",)}}, "address", "ok", ""),
    ({"interface": "ib0", "address": FAULT}, "interface", "error", "what is wrong"),
    ({"interface": "ib0", "address": FAULT}, "address", "ok", "see interface"),
    ({"interface": "ib0"}, "interface", "ok", "ERAY_INTERFACE=ib0 is 10.0.0.2"),
    ({}, "interface", "ok", "lo 127.0.0.1, eth0 10.0.0.2"),
    # the beacon's ports
    ({}, "ports", "ok", "n1 can be reached on 24001 24002 24003"),
    ({"ports": Ports(PORTS, silent=PORTS[:1])}, "ports", "warning", "no answer from the head n1 on 24001$"),
    ({"ports": Ports(PORTS, silent=PORTS)}, "ports", "error", "on any of 24001 24002 24003"),
    ({"resolved": resolved(n1=())}, "ports", "note", "does not resolve"),
    (HEAD, "ports", "ok", "3 of 3 are free here, 24001 is the first$"),
    (HEAD | {"ports": Ports(PORTS, busy=PORTS[:1])}, "ports", "ok", "24002 is the first; busy: 24001"),
    (HEAD | {"ports": Ports(PORTS, busy=PORTS)}, "ports", "error", "all are busy"),
    (HEAD | {"ports": Ports(PORTS, busy=PORTS, cluster_pid=12)}, "ports", "ok", "runs here .supervisor 12"),
    (LOGIN, "ports", "ok", "not a node of the job"),
    (ALONE, "ports", "ok", "24000 is free here, of 24000 to 29999$"),
    (ALONE | {"ports": Ports(PORTS, busy=PORTS[:1])}, "ports", "ok", "24002 is free here, of 24001 24002 24003$"),
    (ALONE | {"ports": Ports(PORTS, busy=PORTS)}, "ports", "warning", "all are busy here: 24001 24002 24003; .*status"),
    (ONE_NODE | {"ports": Ports(PORTS, busy=PORTS)}, "ports", "warning", "all are busy here"),
    (ONE_NODE | {"ports": Ports(PORTS)}, "ports", "ok", "3 of 3 are free here"),
    ({"place": Place("unknown", (), "n1", False, None), "ports": None}, "ports", "ok", "not known"),
    # disks
    ({"temporary": FAULT}, "temporary-directory", "error", "what is wrong"),
    ({"temporary": FAULT}, "disk-space", "ok", "see temporary-directory"),
    ({"run_directory": FAULT}, "run-directory", "error", "what is wrong"),
    ({}, "disk-space", "ok", "100.0 GiB of 200.0 GiB free in /tmp"),
    ({"temporary": Disk("/tmp", "tmpfs", 10**7, GIB, None)}, "disk-space", "error", "9.5 MiB of 1.0 GiB"),
    ({"temporary": Disk("/tmp", "ext4", 10**8, GIB, None)}, "disk-space", "warning", "95.4 MiB"),
    ({"temporary": Disk("/tmp", "sysfs", 0, 0, None)}, "disk-space", "warning", "0 B of 0 B free"),
    ({"temporary": Disk("/tmp", "ext4", 4 * GIB, 100 * GIB, None)}, "disk-space", "warning", "over 95% full"),
    ({"temporary": Disk("/tmp", "ext4", 50 * GIB, 100 * GIB, 3)}, "disk-space", "error", "room for 3 more files"),
    ({}, "shared-memory", "ok", "30.0 GiB for Ray's object store"),
    ({"shared_free_bytes": None}, "shared-memory", "error", "no /dev/shm"),
    ({"shared_free_bytes": 64 * 2**20}, "shared-memory", "error", "64.0 MiB free in /dev/shm; .* needs 80.0 MiB"),
    ({"shared_free_bytes": 10 * GIB}, "shared-memory", "warning", "gets 8.0 GiB instead of 30.0 GiB"),
    # limits
    ({"open_files": None}, "open-files", "ok", "unlimited"),
    ({"open_files": 4096}, "open-files", "warning", "4096"),
    ({"open_files": 32}, "open-files", "error", "32"),
    ({"threads": None}, "threads", "ok", "no limit"),
    ({"threads": 700}, "threads", "error", "ulimit -u leaves room for 200"),
    ({"threads": 400}, "threads", "error", "room for 0"),
    ({"threads": 2000}, "threads", "warning", "room for 1500"),
    ({"group_room": 250}, "threads", "error", "the control group leaves room for 250"),
    ({"locked_bytes": 65536}, "locked-memory", "warning", "64.0 KiB"),
    ({"locked_bytes": 65536, "has_infiniband": False}, "locked-memory", "ok", ""),
    ({"core_bytes": None}, "core-files", "note", "its whole memory to 'core'"),
    ({"core_bytes": None, "core_path": "|/usr/bin/collect %P"}, "core-files", "ok", "/usr/bin/collect$"),
    # the clock and the kernel
    ({"clock": Clock("12:00:00", -40.0)}, "clock", "warning", "40.0 s behind"),
    ({"clock": Clock("12:00:00", 2.0)}, "clock", "warning", "2.0 s ahead"),
    ({"clock": Clock("12:00:00", None)}, "clock", "note", "cannot be told"),
    (ALONE | {"clock": Clock("12:00:00", None)}, "clock", "ok", "12:00:00"),
    ({"pidfd": False}, "kernel", "note", "no pidfd"),
    ({"other_rays": (OtherRay(5, "uid 1001", "raylet"),)}, "other-ray", "note", "raylet 5 of uid 1001"),
]


def found(facts, name):
    (finding,) = [each for each in check(facts).findings if each.name == name]
    return finding


@pytest.mark.parametrize(("changes", "name", "status", "words"), ROWS)
def test_checkup_judges_facts(changes, name, status, words):
    finding = found(with_facts(HEALTHY, **changes), name)
    assert finding.status == status
    assert re.search(words, finding.found), finding.found
    assert (finding.remedy is not None) or finding.status in (Status.OK, Status.NOTE)


def test_checkup_healthy_node_has_nothing_to_say():
    checkup = check(HEALTHY)
    assert [finding for finding in checkup.findings if finding.status is not Status.OK] == []
    assert (checkup.node, checkup.exit_code) == ("n2", 0)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("changes", [ALONE, LOGIN, SHELL, HEAD, {"temporary": FAULT, "address": FAULT}])
def test_checkup_always_has_the_same_checks(changes):
    assert [finding.name for finding in check(with_facts(HEALTHY, **changes)).findings] == NAMES


@pytest.mark.parametrize(
    ("changes", "code"), [({"open_files": 32}, 3), ({"open_files": 4096, "pidfd": False}, 0), ({"address": FAULT}, 3)]
)
def test_checkup_exit_code_is_3_with_an_error_only(changes, code):
    assert check(with_facts(HEALTHY, **changes)).exit_code == code


def test_checkup_every_problem_of_the_environment_is_a_finding():
    problems = (("setting", "ERAY_X='1': no"), ("slurm-format", "SLURM_X='?': no"))
    findings = check(with_facts(HEALTHY, problems=problems)).findings
    assert [each.found for each in findings if each.name == "environment"] == [
        f"{code}: {words}" for code, words in problems
    ]


def test_checkup_json_has_exactly_the_designed_fields():
    checkup = check(HEALTHY)
    assert {tuple(each) for each in checkup.records()} == {("node", "name", "status", "found", "remedy")}
    assert {each["node"] for each in checkup.records()} == {checkup.node}


def test_every_check_has_a_row_that_is_not_ok_and_a_place_in_the_docs():
    page = (ROOT / "docs/doctor.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == NAMES
    assert {name for _, name, status, _ in ROWS if status != "ok"} == set(NAMES)


def test_floors_are_those_of_the_package():
    text = (ROOT / "pyproject.toml").read_text()
    wanted = re.search(r"^dependencies = \[(.*)\]$", text, re.MULTILINE)
    assert wanted is not None
    assert dict(re.findall(r'"(\w+)(?:\[\w+\])?>=([0-9.]+)"', wanted[1])) == FLOORS


@pytest.mark.parametrize(
    ("name", "hostname", "head", "place"),
    [
        ("n2", "host2", None, ("n2", True, "n1", False)),
        ("n1", "host1", None, ("n1", True, "n1", True)),
        (None, "n1.cluster", None, ("n1", True, "n1", True)),
        (None, "login", None, ("login", False, "n1", False)),
        ("n2", "host2", "n2", ("n2", True, "n2", True)),
        ("n1", "host1", "n2", ("n1", True, "n2", False)),
        ("n1", "host1", "10.1.0.1", ("n1", True, "10.1.0.1", True)),  # an address of the first
        ("n2", "host2", "10.1.0.1", ("n2", True, "10.1.0.1", False)),
    ],
)
def test_place_of_a_host_among_the_nodes(name, hostname, head, place):
    found = place_of("step", ("n1", "n2"), name=name, hostname=hostname, head=head)
    assert (found.name, found.inside, found.head, found.is_head) == place


def test_names_to_ask_are_the_heads_and_a_window_from_this_node_on():
    nodes = tuple(f"n{number}" for number in range(1000))
    asked = names_to_ask(Place("step", nodes, "n900", True, "boss"))
    assert asked[:3] == ("boss", "n900", "n901")
    assert len(set(asked)) == len(asked) == MOST_NAMES
    assert "n0" in asked


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (DirectoryError("/d", "is a symbolic link", "remove it"), Fault("/d is a symbolic link", "remove it")),
        (AddressError("n1", "no address", "mend it"), Fault("no address", "mend it")),
        (SettingError("ERAY_X", "1", "no"), Fault("ERAY_X='1': no", "correct or unset ERAY_X")),
        (BeaconError("n1", "a", "b"), Fault("node n1: a; b", "see BeaconError in docs/errors.md")),
    ],
)
def test_fault_of_an_error_keeps_its_words(error, found):
    assert Fault.of(error) == found


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 * 2**40, "3.0 TiB")])
def test_size_in_words(count, words):
    assert size(count) == words
