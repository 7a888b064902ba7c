import pytest
from case_files import case_id, read_cases

from eray._slurm.counts import expand_counts
from eray._slurm.environment import read_environment
from eray.errors import SlurmContradictionError, SlurmFormatError

COUNTS = read_cases("tasks_per_node.jsonl")
PLAIN = [case for case in COUNTS if case["class"] != "consistency"]
CONSISTENCY = [case for case in COUNTS if case["class"] == "consistency"]


@pytest.mark.parametrize("case", PLAIN, ids=case_id)
def test_expand_counts_case_as_slurm_means_it(case):
    if case.get("expected") == "error":
        with pytest.raises(SlurmFormatError) as caught:
            expand_counts(case["input"], "SLURM_STEP_TASKS_PER_NODE")
        assert "SLURM_STEP_TASKS_PER_NODE" in str(caught.value)
        return
    counts = expand_counts(case["input"])
    if "expected" in case:
        assert list(counts) == case["expected"]
    else:
        assert (len(counts), counts[0], counts[-1]) == (case["count"], case["first"], case["last"])
        assert sum(counts) == case["total"]


@pytest.mark.parametrize("case", CONSISTENCY, ids=case_id)
def test_step_counts_case_agree_with_nodes_and_tasks(case):
    environ = {
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": f"n[1-{case['node_count']}]",
        "SLURM_STEP_TASKS_PER_NODE": case["input"],
        "SLURM_PROCID": "0",
        "SLURM_NODEID": "0",
        "SLURM_LOCALID": "0",
    }
    if "num_tasks" in case:
        environ["SLURM_STEP_NUM_TASKS"] = str(case["num_tasks"])
    if case["expected"] == "error":
        with pytest.raises(SlurmContradictionError, match="SLURM_STEP_TASKS_PER_NODE"):
            read_environment(environ)
    else:
        assert list(read_environment(environ).task.tasks_per_node) == case["expected"]


@pytest.mark.parametrize("text", ["", "2(x65537)", "1(x65536),1", "9" * 5000, "٣"])
def test_expand_counts_impossible_text_is_refused(text):
    with pytest.raises(SlurmFormatError) as caught:
        expand_counts(text)
    assert len(caught.value.value) < 250
