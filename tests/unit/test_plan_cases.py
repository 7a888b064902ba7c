"""Every golden environment, held against ``eray plan --json``; what it cannot answer, against the deciding function."""

import json

import pytest
from case_files import CASES, case_id, read_cases

from eray._cli.main import command_parser
from eray._core.devices import NodeView, ProcessView, device_count, plan_node
from eray._core.naming import run_directory
from eray._io.net import node_address
from eray._slurm.allocation import node_aliases, read_allocation
from eray._slurm.environment import SHELLS, Mode, read_environment
from eray._slurm.membership import check_lone_process, is_inside
from eray._slurm.visibility import ray_visibility
from eray.errors import AddressError, ConfigurationError, NotATaskError

GOLDEN = sorted(path.name for path in (CASES / "slurm-env").iterdir())
ENV_CASES = read_cases("env_cases.jsonl")
PARSER = command_parser(["plan"])


@pytest.fixture
def plan(capsys):
    """Run ``eray plan --json`` in this process on files; its JSON and what it said on stderr."""

    def run(paths):
        arguments = [word for path in paths for word in ("--environ", str(path))]
        args = PARSER.parse_args(["plan", "--json", *arguments])
        code = args.run(args, {})
        captured = capsys.readouterr()
        answer = json.loads(captured.out)
        assert code == (3 if answer["problems"] else 0)
        return answer, captured.err

    return run


@pytest.mark.parametrize("case", GOLDEN)
def test_plan_real_slurm_environment(case, plan):
    folder = CASES / "slurm-env" / case
    answer, _ = plan(sorted(folder.glob("task*.env"), key=lambda path: int(path.stem[4:])))
    expected = json.loads((folder / "expected.json").read_text())
    assert {problem["code"] for problem in answer["problems"]} == set(expected.pop("problems"))
    processes = expected.pop("processes")
    assert len(answer["processes"]) == len(processes)
    for found, wanted in zip(answer["processes"], processes, strict=True):
        wanted = {"local_device_ids": None, "device_rule": None, **wanted}
        assert {name: found[name] for name in wanted} == wanted
    assert {name: answer[name] for name in expected} == expected


class Answers:
    """What eray answers to one case: the plan of its environments together, and of each alone."""

    def __init__(self, case, plan, folder):
        self.case = case
        self.environs = [dict(environ) for environ in case.get("envs") or [case["env"]]]
        if "ray" in case:  # what Ray puts into the environment of every worker
            self.environs = [{**environ, "RAY_RAYLET_PID": "4711"} for environ in self.environs]
        paths = []
        for number, environ in enumerate(self.environs):
            paths.append(folder / f"task{number}.env")
            paths[-1].write_text("".join(f"{name}={value}\n" for name, value in environ.items()))
        each = [plan([path]) for path in paths]
        self.alone = [answer for answer, _ in each]
        apart = {"keys_differ", "ports_differ", "process_counts"} & set(case["expected"])
        if apart:
            self.plan, self.stderr = self.alone[0], ""
        else:
            self.plan, self.stderr = each[0] if len(paths) == 1 else plan(paths)

    def processes(self, name):
        return [process[name] for process in self.plan["processes"]]

    def problems(self):
        return [problem["message"] for problem in self.plan["problems"]]

    def shares(self):
        """The device ids of each process: the plan's, or where it prints none what connect() would decide."""
        if self.plan["processes"]:
            return [
                (process["visible"], [] if process["device_rule"] == "none" else process["local_device_ids"])
                for process in self.plan["processes"]
            ]
        if self.plan["problems"]:
            return [([], None)]
        environment = read_environment(self.environs[0])
        assigned = tuple(self.case["ray"]["gpu_ids"]) if "ray" in self.case else None
        view = ProcessView(0, environment.visible, assigned=assigned)
        (share,) = plan_node(NodeView("n", 1, False, None, None, None, (view,)))
        return [(list(environment.visible), list(share.local_device_ids))]

    def device_ids(self):
        return [ids for _, ids in self.shares()]

    def tokens(self):
        return [[visible[ordinal] for ordinal in ids] for visible, ids in self.shares()]

    def process_0(self):
        homes = {process["process_index"]: process["node"] for process in self.plan["processes"]}
        return homes.get(0, self.plan["head"])

    def lives(self):
        """What separates two lives or clusters: the run directory, made of key and restart count."""
        return [run_directory("/tmp", 1, one["key"], one["job"]["restart"]) for one in self.alone]

    def is_alone_allowed(self):
        try:
            check_lone_process(read_environment(self.environs[0]), self.case.get("hostname", "elsewhere"))
        except NotATaskError:
            return False
        return True


def _wanted_processes(wanted):
    return wanted if isinstance(wanted, list) else [wanted]


def check_mode(answers, wanted):
    if wanted == "ambiguous-pty":
        assert (answers.plan["environment"], "srun --pty" in answers.stderr) == ("step", True)
    else:
        assert [one["environment"] for one in answers.alone] == [wanted] * len(answers.alone)


def check_process_count(answers, wanted):
    mode = Mode(answers.plan["environment"])
    if mode in SHELLS:  # a lone connect() is one process where that is allowed, else a NotATaskError
        assert wanted == 1
        assert (answers.plan["process_count"], answers.plan["processes"]) == (None, [])
        environment = read_environment(answers.environs[0])
        inside = is_inside(environment, answers.case.get("hostname", "elsewhere"))
        assert answers.is_alone_allowed() == (len(environment.nodes) == 1 and inside)
    elif mode is Mode.RAY_WORKER:  # an argument of connect(), never read from the raylet's variables
        assert wanted == answers.case["ray"]["world_size"]
        assert (answers.plan["process_count"], answers.plan["processes"]) == (None, [])
    else:
        assert answers.plan["process_count"] == wanted


def check_process_id(answers, wanted):
    if answers.plan["processes"]:
        assert answers.processes("process_index") == [wanted]
    else:
        assert wanted == answers.case.get("ray", {"rank": 0})["rank"]


def check_local_count(answers, wanted):
    assert answers.processes("local_count") == [wanted] or (wanted == 1 and answers.plan["processes"] == [])


def check_local_device_ids(answers, wanted):
    if wanted == "error":
        assert answers.problems()
        assert set(answers.device_ids()) == {None}
    else:
        assert answers.device_ids() == (wanted if wanted[:1] and isinstance(wanted[0], list) else [wanted])


def check_visible_tokens(answers, wanted):
    assert answers.tokens() == (wanted if wanted[:1] and isinstance(wanted[0], list) else [wanted])


def check_error(answers, wanted):
    if wanted is None:
        assert answers.plan["problems"] == []
    else:
        numbers = [word for word in wanted.replace(";", " ").split() if word.isdigit()]
        assert all(number in " ".join(answers.problems()) for number in numbers)


def check_accept(answers, alternatives):
    failures = []
    for alternative in alternatives:
        try:
            if "error" in alternative:
                assert answers.problems() or answers.stderr
            for name, wanted in alternative.items():
                if name != "error":
                    CHECKS[name](answers, wanted)
            return
        except AssertionError as failure:
            failures.append(failure)
    raise AssertionError(failures)


def check_must_not(answers, words):
    assert words
    FORBIDDEN[answers.case["id"]](answers)


def check_ray_num_gpus(answers, wanted):
    environment = read_environment(answers.environs[0])
    view = NodeView(
        "n", 1, True, environment.gpus_on_node, answers.case["nvml_count"], None, (ProcessView(0, environment.visible),)
    )
    assert device_count(view) == wanted


def check_addresses(answers, wanted):
    assert node_aliases(answers.environs[0]) == wanted  # names that do not resolve: Slurm's own list has the addresses


CHECKS = {
    "mode": check_mode,
    "nodes": lambda answers, wanted: _equal(answers.plan["nodes"] or None, wanted),
    "process_count": check_process_count,
    "process_counts": lambda answers, wanted: _equal(
        [one["process_count"] for one in answers.alone],
        [None if one["environment"] in SHELLS else count for one, count in zip(answers.alone, wanted, strict=True)],
    ),
    "process_id": check_process_id,
    "process_ids": lambda answers, wanted: _equal(answers.processes("process_index"), wanted),
    "local_process_id": lambda answers, wanted: _equal(answers.processes("local_index") or [0], [wanted]),
    "local_process_ids": lambda answers, wanted: _equal(answers.processes("local_index"), wanted),
    "local_process_count": check_local_count,
    "local_process_counts": lambda answers, wanted: _equal(answers.processes("local_count"), wanted),
    "node_of_process": lambda answers, wanted: _equal(answers.processes("node"), wanted),
    "node_indexes": lambda answers, wanted: _equal(answers.processes("node_rank"), wanted),
    "is_head": lambda answers, wanted: _equal(
        [node == answers.plan["head"] for node in answers.processes("node")], wanted
    ),
    "coordinator_host": lambda answers, wanted: _equal(answers.process_0(), wanted),
    "local_device_ids": check_local_device_ids,
    "visible_tokens": check_visible_tokens,
    "error": check_error,
    "accept": check_accept,
    "must_not": check_must_not,
    "keys_differ": lambda answers, wanted: _equal(len(set(answers.lives())) == len(answers.lives()), wanted),
    "ports_differ": lambda answers, wanted: _equal(answers.alone[0]["ports"] != answers.alone[1]["ports"], wanted),
    "port_in_range": lambda answers, wanted: _equal(
        all(1024 <= port <= 65535 for port in answers.plan["ports"]), wanted
    ),
    "cpus_per_node": lambda answers, wanted: _equal(list(read_allocation(answers.environs[0]).cpus_per_node), wanted),
    "node_groups": lambda answers, wanted: _equal(
        [list(group) for group in read_allocation(answers.environs[0]).groups], wanted
    ),
    "inside_allocation": lambda answers, wanted: _equal(
        is_inside(read_environment(answers.environs[0]), answers.case["hostname"]), wanted
    ),
    "ray_num_gpus": check_ray_num_gpus,
    "ray_env": lambda answers, wanted: _equal(ray_visibility(answers.environs[0]), wanted),
    "addresses": check_addresses,
    "note": lambda answers, wanted: None,  # words for the reader
    "or": lambda answers, wanted: None,  # a second way; the first is ours
    "accept_error": lambda answers, wanted: None,  # would be right too; we answer
}


def _equal(found, wanted):
    assert found == wanted


def forbid_two_devices(answers):
    assert all(ids is None or len(ids) < 2 for ids in answers.device_ids() if not answers.problems())


def forbid_login_node(answers):
    with pytest.raises(NotATaskError, match="srun"):
        check_lone_process(read_environment(answers.environs[0]), answers.case["hostname"])


def forbid_loopback(answers):
    with pytest.raises(AddressError, match=r"127\.0\.1\.1"):
        node_address("cn2", None, True, hostname="cn2", look_up=lambda name: [answers.case["resolve"][name]])


def forbid_one_node(answers):
    with pytest.raises(ConfigurationError, match="SLURM_JOB_NODELIST"):
        read_environment(answers.environs[0])
    assert answers.problems()


FORBIDDEN = {
    "env-025": lambda answers: _equal("4 tasks" in answers.stderr and "ERAY_PROCESS_COUNT=1" in answers.stderr, True),
    "env-046": lambda answers: _equal([one["problems"][0]["code"] for one in answers.alone], ["foreign-launcher"] * 2),
    "env-048": forbid_login_node,
    "env-062": forbid_two_devices,
    "env-067": forbid_two_devices,
    "env-079": forbid_one_node,
    "env-082": forbid_loopback,
    "env-091": lambda answers: _equal((answers.plan["process_count"], answers.plan["nodes"]), (None, [])),
    "env-092": lambda answers: _equal(answers.device_ids(), [[3]]),
}


@pytest.mark.parametrize("case", ENV_CASES, ids=case_id)
def test_plan_reported_environment(case, plan, tmp_path):
    answers = Answers(case, plan, tmp_path)
    for name, wanted in case["expected"].items():
        CHECKS[name](answers, wanted)
