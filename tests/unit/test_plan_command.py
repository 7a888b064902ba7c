import json
import os
import re
import socket
import subprocess
import sys

import pytest
from case_files import CASES

from eray._cli.main import main
from eray._cli.plan import read_environ_file

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


def in_shell(monkeypatch, case, **more):
    """Let this process be a batch script, or a task, as a real one was."""
    for name in [name for name in os.environ if name.startswith(("SLURM", "ERAY_", "CUDA"))]:
        monkeypatch.delenv(name)
    environ = read_environ_file(str(CASES / "slurm-env" / case))
    slurm = {name: value for name, value in environ.items() if name.startswith(("SLURM", "CUDA"))}
    for name, value in {**slurm, **more}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("case", "rows"),
    [
        ("sbatch-gpus-per-node4", ["eray run|node[01-02]|1|0–1|all 4", "srun|node[01-02]|1|0–1|all 4"]),
        ("sbatch-gpus-per-task1", ["eray run|node[01-02]|1|0–1|all 2", "srun|node[01-02]|2|0–3|1 of 2"]),
        (
            "sbatch-N3-n5",
            [
                "eray run|node[01-03]|1|0–2|no GPU from Slurm",
                "srun|node01|3|0–2|no GPU from Slurm",
                "srun|node[02-03]|1|3–4|no GPU from Slurm",
            ],
        ),
        (
            "sbatch-N3-only",
            [f"{way}|node[01-03]|1|0–2|no GPU from Slurm" for way in ("eray run", "srun")],
        ),
    ],
)
def test_plan_in_a_batch_script_shows_what_would_start_on_each_node(case, rows, monkeypatch, capsys):
    in_shell(monkeypatch, f"{case}.batch/task0.env")
    assert main(["plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = ["|".join(re.split(r" {2,}", line)) for line in lines if line.startswith(("eray run ", "srun "))]
    assert found == rows
    assert "not known here: " in lines[-1]


def test_plan_in_a_batch_script_refuses_what_run_would_refuse(monkeypatch, capsys):
    in_shell(monkeypatch, "sbatch-gpus-per-node4.batch/task0.env", ERAY_DEVICES_PER_PROCESS="5")
    assert main(["plan", "--json"]) == 3
    assert codes(json.loads(capsys.readouterr().out)) == ["too-many-processes"]


@pytest.mark.parametrize(
    ("options", "code", "row", "words"),
    [
        ("-n 3", 0, "node01|2|0–1|2 of 4", ""),
        ("--processes-per-node 4", 0, "node[01-02]|4|0–7|1 of 4", ""),
        ("--processes-per-node 3 --devices-per-process 1", 0, "node[01-02]|3|0–5|1 of 4", ""),
        ("--processes-per-node 3", 3, "node[01-02]|3|0–5|4 are not divided by 3", "give --devices-per-process 1"),
        ("--processes-per-node 8", 3, "node[01-02]|8|0–15|too few: 4 for 8", "give at most 4 processes a node"),
        (
            "--processes-per-node 2 --devices-per-process 3",
            3,
            "node[01-02]|2|0–3|too few: 4 for 2 x 3",
            "node node01: 2 processes x 3 devices = 6, the node has 4",
        ),
    ],
)
@pytest.mark.parametrize("case", ["sbatch-gpus-per-node4.batch", "gpus-per-node4.step0"])
def test_dry_run_shows_what_would_start_and_refuses_what_cannot(case, options, code, row, words, monkeypatch, capsys):
    in_shell(monkeypatch, f"{case}/task0.env")
    assert main(["run", "--dry-run", *options.split(), "--", "train"]) == code
    captured = capsys.readouterr()
    assert row in ["|".join(re.split(r" {2,}", line)) for line in captured.out.splitlines()]
    assert words in captured.err


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        ("--devices-per-process 3", {}, "; give --devices-per-process 2,"),
        ("", {"ERAY_DEVICES_PER_PROCESS": "3"}, "; give ERAY_DEVICES_PER_PROCESS 2,"),
    ],
)
def test_run_refuses_more_devices_than_there_are_before_it_starts(options, variables, words, monkeypatch, capsys):
    in_shell(monkeypatch, "sbatch-gpus-per-node4.batch/task0.env", PATH="", **variables)
    assert main(["run", "--processes-per-node", "2", *options.split(), "--", "train"]) == 3
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("task", "lines"), [(0, 10), (1, 1), (5, 1)])
def test_plan_of_several_tasks_has_one_header(task, lines, monkeypatch, capsys):
    in_shell(monkeypatch, f"gpus-per-node4-tpn4.step0/task{task}.env")
    assert main(["plan"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
    assert printed[-1].split()[0] == str(task)


def test_plan_of_a_captured_environment_tells_a_misspelled_variable(tmp_path, capsys):
    plan_of(tmp_path, capsys, task(0, SLURM_STEP_TASKS_PER_NODE="1", ERAY_HEADS="n1"))
    assert main(["plan", "--environ", str(tmp_path / "0.env")]) == 0
    assert "eray: note: ERAY_HEADS is set" in capsys.readouterr().err


def test_plan_notes_a_head_that_is_no_node_of_the_job(tmp_path, capsys):
    plan_of(tmp_path, capsys, task(0, SLURM_STEP_TASKS_PER_NODE="1", ERAY_HEAD="boss"))
    assert main(["plan", "--environ", str(tmp_path / "0.env")]) == 0
    assert "eray: note: ERAY_HEAD=boss is no node of the job (n1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("head", "found"), [("nowhere.invalid", "it does not resolve"), ("192.0.2.1", "it leads to 192.0.2.1")]
)
def test_head_outside_the_job_is_refused_where_the_first_node_sees_it(head, found, monkeypatch, capsys):
    in_shell(monkeypatch, "sbatch-gpus-per-node4.batch/task0.env", ERAY_HEAD=head)
    assert main(["up", "--dry-run"]) == 3
    words = (
        f"ERAY_HEAD='{head}': is no node of the job (node[01-02]) and no address of the first of them, node01 ({found})"
    )
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("head", ["node02", "127.0.0.1"])
def test_head_of_the_job_is_taken(head, monkeypatch, capsys):
    in_shell(monkeypatch, "sbatch-gpus-per-node4.batch/task0.env", ERAY_HEAD=head)
    assert main(["up", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("srun ")
