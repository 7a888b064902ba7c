"""The tables of the page on GPUs are what eray makes of real environments of Slurm, and so cannot grow old."""

from collections.abc import Mapping, Sequence
from functools import cache

import pytest
from case_files import CASES
from doc_pages import DOCS, table_rows

from eray._cli.plan import read_environ_file
from eray._slurm.allocation import read_allocation
from eray._slurm.plan import Plan, make_plan

PAGE = DOCS / "gpus-and-slurm.md"
STEPS = (
    "gpus-per-node4",
    "gpus-per-node4-tpn4",
    "gres-gpu4",
    "gpus-per-task1",
    "gpus-per-task2",
    "gres-gpu4-bind-closest",
    "gres-gpu4-bind-single1",
    "gres-gpu4-bind-per-task1",
    "gres-gpu4-bind-map",
    "gres-gpu4-bind-mask",
    "gres-gpu4-bind-none",
    "gpus-6-N2",
    "gpus-0",
)
JOBS = ("sbatch-gpus-per-node4", "sbatch-gpus-per-task1", "sbatch-gres2")
BOUND = "-constrained"


@cache
def environments(case: str) -> tuple[Mapping[str, str], ...]:
    """Return the environments of a case's tasks, by process index; none where there is no such case."""
    files = sorted((CASES / "slurm-env" / case).glob("task*.env"), key=lambda path: int(path.stem[4:]))
    return tuple(read_environ_file(str(path)) for path in files)


def command(case: str) -> str:
    first = (CASES / "slurm-env" / case / "task0.env").read_text().partition("\n")[0]
    return first.removeprefix("# command: ").partition(" ./dump")[0]


def seen(plan: Plan) -> str:
    """Return what the tasks of the first node see."""
    lists = [process.visible for process in plan.processes if process.node_rank == 0]
    words = ["unset" if each is None else f"`{','.join(each)}`" for each in lists]
    return words[0] + (" in each" if len(words) > 1 else "") if len(set(words)) == 1 else " ".join(words)


def given(environs: Sequence[Mapping[str, str]]) -> str:
    """Return the devices that the tasks of the first node get, and by which rule."""
    plan = make_plan(environs)
    if plan.problems:
        (settled,) = {process.device_rule for process in make_plan(environs, hardware_count=4).processes}
        return f"error `{plan.problems[0].code}`; `{settled}` where the node has no more GPUs than these"
    mine = [process for process in plan.processes if process.node_rank == 0]
    ids = [",".join(map(str, process.local_device_ids or ())) or "none" for process in mine]
    (rule,) = {process.device_rule for process in mine}
    each = f"`{ids[0]}`{' in each' if len(ids) > 1 else ''}" if len(set(ids)) == 1 else " ".join(f"`{i}`" for i in ids)
    return f"{each}, rule `{rule}`".replace("`none`, rule", "none, rule")


def step_row(case: str) -> str:
    """Return the row of a launch command: what each task sees without and with cgroups, and what eray gives it."""
    cells = []
    for name in (f"{case}.step0", f"{case}{BOUND}.step0"):
        cells += [(seen(make_plan(environments(name))), given(environments(name)))] if environments(name) else [None]
    plain, bound = cells
    what = command(f"{case}.step0" if plain else f"{case}{BOUND}.step0")
    known = [cell for cell in cells if cell]
    sight = "—" if plain is None else plain[0]
    sight_bound = "—" if bound is None else "the same" if bound[0] == sight else bound[0]
    answers = list(dict.fromkeys(cell[1] for cell in known))
    return f"| `{what}` | {sight} | {sight_bound} | {'; bound: '.join(answers)} |"


def job_row(case: str) -> str:
    """Return the row of a job: what the one step of `eray run` in it asks for, and so each node's processes share."""
    options = command(f"{case}.batch").removeprefix("sbatch -W ").rpartition(" ")[0]
    (environ,) = environments(f"{case}.batch")
    return f"| `{options}` | {read_allocation(environ).gpus_per_node} |"


def test_table_of_steps() -> None:
    """The table under the heading is this one; replace it where they differ."""
    assert table_rows(PAGE, "## `srun` and its options") == [step_row(case) for case in STEPS]


def test_table_of_jobs() -> None:
    assert table_rows(PAGE, "## `eray run` in a job") == [job_row(case) for case in JOBS]


@pytest.mark.parametrize("rule", ["none", "all", "own", "own-bound", "split", "ordinals"])
def test_every_rule_is_explained(rule: str) -> None:
    assert [row for row in table_rows(PAGE, "## The rules") if row.startswith(f"| `{rule}` |")] != []
