import random
import time

import pytest
from case_files import case_id, read_cases

from eray._slurm.hostlist import expand_hostlist, fold_hostlist
from eray.errors import SlurmFormatError

HOSTLISTS = read_cases("hostlists.jsonl")
GOOD = [case for case in HOSTLISTS if case.get("expected") != "error"]


@pytest.mark.parametrize("case", HOSTLISTS, ids=case_id)
def test_expand_hostlist_case_as_slurm_expands_it(case):
    if case.get("expected") == "error":
        with pytest.raises(SlurmFormatError) as caught:
            expand_hostlist(case["input"], "SLURM_JOB_NODELIST")
        assert "SLURM_JOB_NODELIST" in str(caught.value)
        return
    names = expand_hostlist(case["input"])
    assert len(names) == case["count"]
    if "expected" in case:
        order = list if case["order"] == "exact" else sorted
        assert order(names) == order(case["expected"])
    else:
        assert (names[0], names[-1]) == (case["first"], case["last"])
    assert names[:1] == ([case["first_host"]] if case["first_host"] else [])


@pytest.mark.parametrize("case", GOOD, ids=case_id)
def test_fold_hostlist_case_round_trips(case):
    names = expand_hostlist(case["input"])
    assert expand_hostlist(fold_hostlist(names)) == names


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n1", "n2", "n3", "m01-ib", "m02-ib"], "n[1-3],m[01-02]-ib"),
        (["g098", "g099", "g100"], "g[098-100]"),
        (["n9", "n10", "n1", "n01", "n001"], "n[9-10,1,01,001]"),
        (["n3", "n1", "n3", "n3"], "n[3,1,3,3]"),
        (["login", "login"], "login,login"),
        (["rack0node00", "rack0node01", "rack1node00"], "rack0node[00-01],rack1node00"),
        (["n999999999999999999", "n1000000000000000000"], None),
        ([f"n{number}" for number in range(70_000)], "n[0-65535,65536-69999]"),
    ],
)
def test_fold_hostlist_names_to_ranges(names, folded):
    assert folded in (None, fold_hostlist(names))
    assert expand_hostlist(fold_hostlist(names)) == names


def test_fold_hostlist_random_names_round_trip():
    draw = random.Random(7)
    for _ in range(200):
        names = [
            draw.choice(["n", "gpu-", "r1c", ""])
            + str(draw.randrange(12)).zfill(draw.randrange(1, 4))
            + draw.choice(["", "-ib"])
            for _ in range(draw.randrange(12))
        ]
        assert expand_hostlist(fold_hostlist(names)) == names


@pytest.mark.parametrize("name", ["", "a,b", "n[1]", "n 1", "nöde"])
def test_fold_hostlist_impossible_name_is_refused(name):
    with pytest.raises(SlurmFormatError):
        fold_hostlist(["n1", name])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("n[1-2],m[3", "'m[3'"),
        ("a1,n[2-x],b", "'2-x' in 'n[2-x]'"),
        ("n[5-3]", "'5-3'"),
        ("ok1,n[0-65536]", "'0-65536'"),
        ("ok,n(1)", "'('"),
        ("n1]", "'n1]'"),
        ("n[１]", "'１'"),
        ("n[1-1000][1-1000][1-2]", "1048576"),
    ],
)
def test_expand_hostlist_error_names_the_faulty_part(text, part):
    with pytest.raises(SlurmFormatError) as caught:
        expand_hostlist(text)
    assert part in caught.value.reason


def test_expand_hostlist_counts_all_parts_against_the_limit():
    most = ",".join(f"r{rack}n[0-65535]" for rack in range(16))
    start = time.process_time()
    with pytest.raises(SlurmFormatError, match="1048576"):
        expand_hostlist(most + ",one-more")
    with pytest.raises(SlurmFormatError, match="1048576"):
        expand_hostlist(most + ",n[1-2]")
    assert time.process_time() - start < 0.1  # refused before a name is made
    assert len(expand_hostlist(most)) == 1_048_576


@pytest.mark.parametrize(
    "text",
    [
        "n[0-49999],m[0-49999]",
        ",".join(f"node{number:06d}" for number in range(100_000)),
        ",".join(f"r{rack}n[1-10]" for rack in range(10_000)),
        "n[" + ",".join(str(number) for number in range(100_000)) + "]",
    ],
    ids=["ranges", "names", "racks", "one-bracket"],
)
def test_expand_hostlist_hundred_thousand_names_is_quick(text):
    start = time.process_time()
    names = expand_hostlist(text)
    assert time.process_time() - start < 1.0
    assert len(names) == 100_000


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "n[" * 100_000, "n" * 200_000 + "[", "]" * 200_000, "n[1-" * 50_000, "n[" + "x," * 90_000 + "]"],
)
def test_expand_hostlist_long_nonsense_is_refused_at_once(text):
    start = time.process_time()
    with pytest.raises(SlurmFormatError) as caught:
        expand_hostlist(text)
    assert time.process_time() - start < 0.5
    assert len(str(caught.value)) < 600
