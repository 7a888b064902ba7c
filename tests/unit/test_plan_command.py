import json
import os
import socket
import subprocess
import sys

import pytest
from case_files import CASES

from eray._cli.main import main

STEP = CASES / "slurm-env" / "gpus-per-task1.step0"
FIELDS = ["environment", "job", "key", "ports", "nodes", "head", "process_count", "processes", "problems"]
PROCESS = [
    "process_index",
    "node",
    "node_rank",
    "local_index",
    "local_count",
    "visible",
    "local_device_ids",
    "device_rule",
]


def plan_of(tmp_path, capsys, *environs, code=0):
    words = []
    for number, environ in enumerate(environs):
        path = tmp_path / f"{number}.env"
        path.write_text("".join(f"{name}={value}\n" for name, value in environ.items()))
        words += ["--environ", str(path)]
    assert main(["plan", "--json", *words]) == code
    return json.loads(capsys.readouterr().out)


def task(index, **changes):
    environ = {
        "SLURM_JOB_ID": "12",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "n1",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_PROCID": str(index),
        "SLURM_NODEID": "0",
        "SLURM_LOCALID": str(index),
    }
    return {name: value for name, value in {**environ, **changes}.items() if value is not None}


def codes(plan):
    return [problem["code"] for problem in plan["problems"]]


def test_plan_of_a_machine_of_its_own_names_it(monkeypatch, capsys):
    for name in [name for name in os.environ if name.startswith(("SLURM", "ERAY_"))]:
        monkeypatch.delenv(name)
    assert main(["plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["nodes"], plan["head"]) == ([socket.gethostname()], socket.gethostname())
    assert [process["node"] for process in plan["processes"]] == [socket.gethostname()]


def test_plan_json_has_exactly_the_designed_fields(capsys):
    words = [word for path in sorted(STEP.glob("task*.env")) for word in ("--environ", str(path))]
    assert main(["plan", "--json", *words]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert list(plan) == FIELDS
    assert plan["job"] == {"id": "29", "step": "0", "restart": 0}
    assert (plan["key"], len(plan["ports"])) == ("29.0", 8)
    assert [list(process) for process in plan["processes"]] == [PROCESS] * 4
    assert plan["processes"][2]["visible"] == ["2"]


def test_plan_text_shows_processes_and_problems(capsys):
    path = CASES / "slurm-env" / "gres-gpu4-bind-none.step0" / "task0.env"
    assert main(["plan", "--environ", str(path)]) == 3
    text = capsys.readouterr().out
    assert "node[01,03]" in text
    assert "problem: devices-unknown: node node01" in text


def test_plan_reads_this_environment(monkeypatch, capsys):
    for name, value in task(0, SLURM_STEP_TASKS_PER_NODE="1").items():
        monkeypatch.setenv(name, value)
    assert main(["plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == "12.0"


def test_plan_malformed_setting_of_this_environment_is_a_problem(monkeypatch, capsys):
    monkeypatch.setenv("ERAY_PORT_RANGE", "80")
    assert main(["plan", "--json"]) == 3
    assert codes(json.loads(capsys.readouterr().out)) == ["setting"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"SLURM_LOCALID": None}, "slurm-missing"),
        ({"SLURM_STEP_NODELIST": "n[1"}, "slurm-format"),
        ({"SLURM_STEP_NUM_TASKS": "9"}, "slurm-contradiction"),
        ({"CUDA_VISIBLE_DEVICES": "two"}, "slurm-format"),
        ({"SLURM_JOB_ID": None}, "slurm-missing"),
        ({"ERAY_DEVICES": "some"}, "setting"),
        ({"ERAY_PORT_RANGE": "80"}, "setting"),
        ({"OMPI_COMM_WORLD_RANK": "1"}, "foreign-launcher"),
    ],
)
def test_plan_bad_environment_is_a_problem(changes, code, tmp_path, capsys):
    plan = plan_of(tmp_path, capsys, task(0, **changes), code=3)
    assert codes(plan) == [code]
    assert list(plan) == FIELDS


def test_plan_names_a_bad_setting_beside_a_bad_environment(tmp_path, capsys):
    changes = {"SLURM_STEP_NODELIST": "n[1", "ERAY_PORT_RANGE": "80"}
    assert codes(plan_of(tmp_path, capsys, task(0, **changes), code=3)) == ["slurm-format", "setting"]


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (task(1, SLURM_JOB_ID="13"), "slurm-contradiction"),
        (task(0), "slurm-contradiction"),
        (task(1, SLURM_STEP_NODELIST="n2"), "slurm-contradiction"),
        ({"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n1", "SLURM_PROCID": "0"}, "not-a-task"),
    ],
)
def test_plan_environments_that_do_not_belong_together(second, code, tmp_path, capsys):
    assert codes(plan_of(tmp_path, capsys, task(0), second, code=3)) == [code]


def test_plan_settings_decide_head_ports_and_devices(tmp_path, capsys):
    settings = {
        "ERAY_HEAD": "boss",
        "ERAY_PORT_RANGE": "30000-30015",
        "ERAY_DEVICES": "1",
        "CUDA_VISIBLE_DEVICES": "4,5",
    }
    plan = plan_of(tmp_path, capsys, task(0, **settings))
    assert plan["head"] == "boss"
    assert all(30000 <= port <= 30015 for port in plan["ports"])
    assert plan["processes"][0]["local_device_ids"] == [1]


def test_plan_environ_file_comments_functions_and_blank_values(tmp_path, capsys):
    path = tmp_path / "task.env"
    lines = [
        "# command: srun",
        "",
        "BASH_FUNC_module%%=() {  eval x",
        " local=1",
        "}",
        "CUDA_VISIBLE_DEVICES=",
        "A=b=c",
    ]
    path.write_text("\r\n".join([*lines, *(f"{name}={value}" for name, value in task(1).items())]))
    assert main(["plan", "--json", "--environ", str(path)]) == 0
    (process,) = json.loads(capsys.readouterr().out)["processes"]
    assert (process["process_index"], process["visible"], process["device_rule"]) == (1, [], "none")


@pytest.mark.parametrize("content", [None, "SLURM_JOB_ID=1\nnonsense\n", "=x\n"])
def test_plan_unusable_environ_file_is_wrong_usage(content, tmp_path, capsys):
    path = tmp_path / "task.env"
    if content is not None:
        path.write_text(content)
    assert main(["plan", "--environ", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"eray: --environ {path}: ")


@pytest.mark.parametrize("words", [["nonsense"], [], ["plan", "--nonsense"], ["plan", "--environ"]])
def test_main_wrong_usage_exits_2(words, capsys):
    assert main(words) == 2
    assert "usage" in capsys.readouterr().err


def test_main_help_exits_0(capsys):
    assert main(["--help"]) == 0
    assert "plan" in capsys.readouterr().out


def test_plan_imports_nothing_heavy():
    words = [word for path in sorted(STEP.glob("task*.env")) for word in ("--environ", str(path))]
    program = (
        "import sys; from eray._cli.main import main; code = main(sys.argv[1:]); "
        "heavy = {'ray', 'jax', 'numpy', 'pydantic', 'filelock', 'asyncio'} & set(sys.modules); "
        "sys.exit(f'{heavy}' if heavy else code)"
    )
    command = [sys.executable, "-c", program, "plan", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_python_m_eray_passes_the_exit_code():
    command = [sys.executable, "-m", "eray", "nonsense"]
    assert subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 2


def test_reader_that_stops_reading_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "eray", "plan"], stdout=write, stderr=subprocess.PIPE, timeout=30, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
