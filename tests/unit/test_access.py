"""How a cluster is reached, read and derived; and what a shell makes of it."""

import subprocess
from dataclasses import asdict, replace

import pytest

from eray._core import naming
from eray._core.access import BY_EXPORTS, BY_OPTION, Access, derive_token, no_such_cluster, the_only_one
from eray._ray.commands import export_lines
from eray.errors import RayAttachError, UsageError

HOME = b"h" * 32
ACCESS = Access(
    key="42",
    job="42",
    cluster="rig",
    restart=1,
    purpose="up",
    node="n1",
    auth="token",
    gcs_address="10.0.0.1:6",
    dashboard="10.0.0.1:8",
    session="s",
)


def started_with(secret: bytes) -> Access:
    return replace(ACCESS, fingerprint=naming.secret_fingerprint(secret))


def test_access_survives_json():
    assert Access.from_json(asdict(ACCESS)) == ACCESS
    assert Access.from_json(asdict(ACCESS) | {"versions": {}, "pid": 7}) == ACCESS


@pytest.mark.parametrize(
    "wrong",
    [{"key": None}, {"gcs_address": 7}, {"restart": "1"}, {"dashboard": 8265}, {"job": 42}, {"token_path": []}],
    ids=str,
)
def test_access_that_is_none_is_not_read(wrong):
    assert Access.from_json(asdict(ACCESS) | wrong) is None


def test_launch_secret_is_not_the_homes_and_differs_by_job_and_life():
    lives = [("rig", "42", 0), ("rig", "42", 1), ("rig", "43", 0), ("", "42", 0)]
    secrets = {naming.launch_secret(HOME, *life) for life in lives}
    assert len(secrets) == 4
    assert all(len(secret) == 64 and HOME.hex() not in secret for secret in secrets)


@pytest.mark.parametrize(
    "secret",
    [
        naming.launch_secret(HOME, "rig", "42", 1).encode(),
        naming.launch_secret(HOME, "", "42", 1).encode(),
        HOME,
        b"g" * 32,
    ],
    ids=["eray up", "shell without the cluster's name", "srun eray up", "ERAY_SECRET"],
)
def test_token_follows_from_the_secret_that_the_cluster_was_started_with(secret):
    token = naming.cluster_token(secret, "rig", "42", 1)
    assert derive_token(started_with(secret), "g" * 32, HOME) == token


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, HOME), ("g" * 32, None), (None, None)],
)
def test_token_of_another_secret_is_not_guessed(given, kept):
    assert derive_token(started_with(b"random"), given, kept) is None
    assert derive_token(started_with(naming.launch_secret(HOME, "rig", "42", 0).encode()), given, kept) is None


@pytest.mark.parametrize(
    ("choose", "words"),
    [
        (BY_OPTION, "choose one with `--job local-1`"),
        (
            BY_EXPORTS,
            'choose one with `( eval "$(eray env --job local-1)"; python … )`, which sets RAY_ADDRESS, '
            "or end the others",
        ),
    ],
    ids=["a command", "a program"],
)
def test_several_clusters_are_described_with_what_chooses_there(choose, words):
    found = [replace(ACCESS, key=key, job=None, began_at=800.0) for key in ("local-2", "local-1")]
    with pytest.raises(UsageError) as caught:
        the_only_one(found, choose, 1000.0)
    each = "(`eray up`, for 3 min 20 s)"
    assert str(caught.value) == f"several clusters run on this machine: local-1 {each}, local-2 {each}; {words}"
    assert the_only_one(found[:1], choose, 1000.0) == found[0]
    assert the_only_one([], choose, 1000.0) is None


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, "42 (`eray up`)"),
        ({"purpose": "tasks", "key": "42.0", "began_at": 999.0}, "42.0 (`eray.connect()`, for 1 s)"),
        (
            {"purpose": "run", "program": ("python", "my train.py\n\x1b[0m"), "began_at": 1000.0},
            "42 (`eray run -- python 'my train.py  [0m'`)",
        ),
        ({"purpose": "run", "program": ("python", "x" * 80)}, f"42 (`eray run -- python {'x' * 52}…`)"),
        (
            {"purpose": "run", "program": ("python", "a.py"), "processes": 4, "began_at": 1000.0},
            "42 (`eray run -n 4 -- python a.py`)",
        ),
        ({"purpose": "run", "program": ("python", "a.py"), "processes": 1}, "42 (`eray run -- python a.py`)"),
        ({"began_at": 2000.0}, "42 (`eray up`)"),  # the clock was set back
    ],
    ids=["no age", "tasks", "program", "long program", "processes", "one process", "clock"],
)
def test_a_cluster_is_told_from_others_by_what_it_is(about, expected):
    assert replace(ACCESS, **about).summary(1000.0) == expected


@pytest.mark.parametrize("here", [[], [replace(ACCESS, key="local-1a", job=None)]], ids=["none", "one"])
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("nope", UsageError, "--job nope: is no job's id; give a Slurm job's number such as 4711"),
        ("4711_3", UsageError, "--job 4711_3: is no job's id"),
        ("9", RayAttachError, "node n1: no cluster of job 9 on this machine or in /home/jobs; {here}; do it; where"),
        ("9.0", RayAttachError, "node n1: no cluster of job 9.0 on this machine"),
        ("rig-9", RayAttachError, "node n1: no cluster of job rig-9 on this machine"),
        ("local-9f", RayAttachError, "node n1: no cluster of job local-9f on this machine"),
    ],
)
def test_a_name_that_leads_nowhere_says_what_there_is(name, kind, words, here):
    running = "on this machine runs local-1a (`eray up`)" if here else "no cluster of yours runs on this machine"
    error = no_such_cluster(name, here, 1000.0, node="n1", where="/home/jobs", remedy="do it")
    assert type(error) is kind
    assert str(error).startswith(words.format(here=running))
    assert running in str(error)


@pytest.mark.parametrize(
    ("access", "token", "expected"),
    [
        (
            replace(ACCESS, token_path="/a dir/token"),
            None,
            {
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN_PATH": "/a dir/token",
                "RAY_API_SERVER_ADDRESS": "http://10.0.0.1:8",
            },
        ),
        (
            ACCESS,
            "t" * 64,
            {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 64, "RAY_API_SERVER_ADDRESS": "http://10.0.0.1:8"},
        ),
        (replace(ACCESS, auth="disabled", dashboard=None), None, {"RAY_AUTH_MODE": "disabled"}),
    ],
    ids=["on a node", "elsewhere", "without tokens and dashboard"],
)
def test_exports_lead_a_shell_to_this_cluster_whatever_it_had_before(access, token, expected):
    lines = export_lines(access.gcs_address, access.dashboard, access.auth, access.token_path, token)
    before = {
        "RAY_ADDRESS": "b:1",
        "RAY_API_SERVER_ADDRESS": "http://b:2",
        "RAY_AUTH_TOKEN": "b",
        "PATH": "/usr/bin:/bin",
    }
    shell = subprocess.run(["sh", "-c", 'eval "$0"; env', "\n".join(lines)], env=before, capture_output=True, text=True)
    found = dict(line.split("=", 1) for line in shell.stdout.splitlines())
    found = {name: value for name, value in found.items() if name.startswith("RAY_")}
    assert found == expected | {"RAY_ADDRESS": "10.0.0.1:6", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
