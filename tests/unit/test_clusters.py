"""Which cluster a command means, by what lies on this machine and in the job directory."""

import json
import os
import re
import socket
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from test_access import ACCESS, HOME, started_with

from eray._clusters import find, living, require_alive, token_of
from eray._core import naming
from eray._identity import read_site
from eray._io import process
from eray._own_cluster import find_node_file
from eray.errors import ClusterLostError, RayAttachError, SecretError, UsageError

JOB = {"SLURM_JOB_ID": "42", "SLURM_CLUSTER_NAME": "rig", "SLURM_JOB_NODELIST": "n[1-2]"}
LOCAL = replace(ACCESS, key="local-1a", job=None, cluster="", restart=0, node="here", at_head=True)


class Place:
    """A machine with run directories, and a home with job directories."""

    def __init__(self, root: Path) -> None:
        self.tmp, self.state = root / "tmp", root / "state"
        self.tmp.mkdir()
        self.state.mkdir(mode=0o700)

    def site(self, **more: str):
        return read_site({"ERAY_TMPDIR": str(self.tmp), "ERAY_STATE_DIR": str(self.state)} | more)

    def runs(self, access, pid: int | None = None):
        """Let a supervisor serve a cluster here: this process, unless another is given."""
        run_dir = Path(naming.run_directory(str(self.tmp), os.getuid(), access.key, access.restart))
        run_dir.mkdir(parents=True)
        run_dir.parent.chmod(0o700)
        access = replace(access, token_path=str(run_dir / "token"))
        (run_dir / "token").write_text("t" * 64)
        pid = pid or os.getpid()
        about = asdict(access) | {"pid": pid, "started": process.start_time(os.getpid())}
        (run_dir / "node.json").write_text(json.dumps(about))
        return access

    def published(self, access, name: str | None = None):
        """Let a head have written a cluster into the home."""
        directory = self.state / "jobs" / (name or f"{access.cluster}-{access.job}")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / naming.job_file("cluster", access.key)).write_text(json.dumps(asdict(access)))
        return access


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_only_cluster_of_this_machine_is_found_and_a_dead_one_is_not(place):
    with pytest.raises(RayAttachError, match="no cluster of yours that takes Ray Jobs runs on this machine"):
        find(place.site(), None)
    place.runs(replace(LOCAL, key="local-dead"), pid=2**22 + 1)
    place.runs(replace(LOCAL, key="local-jobless", dashboard=None))
    there = place.runs(LOCAL)
    assert find(place.site(), None) == there
    assert {access.key for access in living(place.site())} == {"local-1a", "local-jobless"}
    place.runs(replace(LOCAL, key="local-2b"))
    with pytest.raises(UsageError, match=r"local-1a \(`eray up`\), local-2b \(`eray up`\)"):
        find(place.site(), None)
    assert find(place.site(), "local-1a") == there


def test_driver_takes_a_cluster_that_stays_and_never_a_programs_own(place):
    place.runs(replace(LOCAL, key="local-own", purpose="run"))
    assert find_node_file(place.site()) is None
    there = place.runs(LOCAL)
    assert find_node_file(place.site())["key"] == there.key


def test_the_jobs_own_cluster_is_found_beside_others(place):
    place.runs(LOCAL)
    place.runs(replace(ACCESS, key="42.0"))
    place.runs(replace(ACCESS, key="43", job="43"))
    own = place.runs(ACCESS)
    assert find(place.site(**JOB, SLURM_RESTART_COUNT="1"), None) == own
    assert find(place.site(), "42") == own
    with pytest.raises(RayAttachError, match="no cluster of job 42 on this machine"):
        find(place.site(**JOB, SLURM_RESTART_COUNT="2"), None)


def test_a_job_without_a_cluster_gets_none_of_this_machine(place):
    place.runs(LOCAL)
    words = (
        f"no cluster of job 42 on this machine or in {place.state}/jobs; on this machine runs local-1a (`eray up`); "
        "start one by"
    )
    with pytest.raises(RayAttachError, match=re.escape(words)):
        find(place.site(**JOB), None)


def test_a_published_cluster_is_found_by_its_job_and_only_in_its_life(place):
    there = place.published(ACCESS)
    place.published(replace(ACCESS, key="42.0"), "rig-9")
    assert find(place.site(), "42") == find(place.site(**JOB, SLURM_RESTART_COUNT="1"), None) == there
    with pytest.raises(RayAttachError, match=r"is of an earlier life of job 42 \(restart 1, this is 2\)"):
        find(place.site(**JOB, SLURM_RESTART_COUNT="2"), None)
    with pytest.raises(RayAttachError, match="no cluster of job 9"):
        find(place.site(), "9")  # a step's own cluster is not its job's


def test_jobs_of_two_slurm_clusters_with_one_number_are_told_apart(place):
    place.published(ACCESS)
    other = place.published(replace(ACCESS, cluster="other"))
    with pytest.raises(UsageError, match="choose one of other-42, rig-42 with `--job`"):
        find(place.site(), "42")
    assert find(place.site(), "other-42") == other
    assert find(place.site(**JOB, SLURM_RESTART_COUNT="1"), None).cluster == "rig"


def test_a_file_that_nobody_of_eray_wrote_is_no_cluster(place):
    place.published(ACCESS)
    (place.state / "jobs" / "rig-42" / "cluster.json").write_text('{"key": "42"}')
    with pytest.raises(RayAttachError, match="no cluster of job 42"):
        find(place.site(), "42")


def test_token_is_read_on_a_node_and_derived_elsewhere(place):
    (place.state / "secret").write_text(HOME.hex() + "\n")
    (place.state / "secret").chmod(0o600)
    assert token_of(place.site(), place.runs(ACCESS)) == "t" * 64
    secret = naming.launch_secret(HOME, "rig", "42", 1).encode()
    assert token_of(place.site(), started_with(secret)) == naming.cluster_token(secret, "rig", "42", 1)
    assert token_of(place.site(), replace(ACCESS, auth="disabled")) is None


def test_token_that_cannot_be_derived_names_the_secret_and_the_remedy(place):
    words = r"secret: this is not the secret that the cluster of job 42 was started with.*; set ERAY_SECRET here as it"
    with pytest.raises(SecretError, match=words):
        token_of(place.site(), started_with(b"random"))
    with pytest.raises(SecretError, match="ERAY_SECRET here is not the secret"):
        token_of(place.site(ERAY_SECRET="o" * 32), started_with(b"random"))


def test_cluster_that_is_gone_or_listens_to_its_node_only_says_so():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        require_alive(replace(ACCESS, at_head=True), address)
        with pytest.raises(
            RayAttachError, match=r"node n1: the cluster of job 42 listens at .* only that node reaches"
        ):
            require_alive(ACCESS, address)
    gone = r"node n1: the cluster of job 42 is gone: nothing answers at .*; `eray status --job 42` .* job 42 while that"
    with pytest.raises(ClusterLostError, match=gone):
        require_alive(replace(ACCESS, at_head=True), address)
    with pytest.raises(ClusterLostError, match=r"the cluster local-1a is gone: .*; start another by `eray up`$"):
        require_alive(LOCAL, address)


@pytest.mark.parametrize(
    ("environ", "name", "remedy"),
    [
        (JOB, None, "; start one by `eray up` in the job;"),
        (JOB, "42", "; start one by `eray up` in the job;"),
        (JOB, "9", r"; `eray status --job 9` .* in job 9 while that runs \(`squeue -j 9`\), else in a new job;"),
        ({}, "rig-9", r"; `eray status --job rig-9` .* in job 9 while that runs \(`squeue -j 9`\), else in a new job;"),
        ({}, "local-1a", "; start another by `eray up`;"),
    ],
    ids=str,
)
def test_job_without_a_cluster_is_told_what_is_right_there(environ, name, remedy, place):
    with pytest.raises(RayAttachError, match=remedy):
        find(place.site(**environ), name)
