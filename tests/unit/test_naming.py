import re

import pytest

from eray._core import naming
from eray.errors import DirectoryError

RANGE = (24000, 29999)


def test_candidate_ports_are_eight_distinct_and_in_range():
    for job in ("1", "67108871", "4294967295"):
        ports = naming.candidate_ports("rig", job, 0, RANGE)
        assert len(set(ports)) == 8
        assert all(RANGE[0] <= port <= RANGE[1] for port in ports)
    assert len(set(naming.candidate_ports("rig", "1", 0, (30000, 30007)))) == 8


def test_candidate_ports_are_the_same_everywhere_and_differ_by_identity():
    here = naming.candidate_ports("rig", "1", 0, RANGE)
    assert here == naming.candidate_ports("rig", "1", 0, RANGE)
    others = [("rig", "1.0", 0), ("rig", "1", 1), ("rig2", "1", 0), ("", "1", 0), ("rig", "4097", 0)]
    assert all(naming.candidate_ports(*other, RANGE) != here for other in others)


def test_cluster_token_differs_by_secret_and_identity():
    secret = b"s" * 32
    tokens = {
        naming.cluster_token(secret, "rig", "1", 0),
        naming.cluster_token(b"t" * 32, "rig", "1", 0),
        naming.cluster_token(secret, "rig", "1", 1),
        naming.cluster_token(secret, "rig", "1.0", 0),
        naming.cluster_token(secret, "rig1", "", 0),
    }
    assert len(tokens) == 5
    assert all(len(token) == 64 and int(token, 16) for token in tokens)


def test_secret_fingerprint_is_short_and_no_part_of_a_token():
    secret = b"s" * 32
    fingerprint = naming.secret_fingerprint(secret)
    assert len(fingerprint) == 8
    assert fingerprint not in naming.cluster_token(secret, "rig", "1", 0)
    assert fingerprint != naming.secret_fingerprint(b"t" * 32)


@pytest.mark.parametrize(
    ("key", "restart", "path"),
    [("123", 0, "/tmp/eray-1001/123"), ("123.0", 2, "/tmp/eray-1001/123.0r2"), ("../x", 0, "/tmp/eray-1001/.._x")],
)
def test_run_directory_by_key_and_life(key, restart, path):
    assert naming.run_directory("/tmp/", 1001, key, restart) == path


def test_ray_temp_directory_short_key_is_inside():
    assert naming.ray_temp_directory("/tmp/eray-1001/123.0") == "/tmp/eray-1001/123.0/ray"


def test_ray_temp_directory_long_key_is_a_hash_beside_it():
    run_dir = naming.run_directory("/tmp", 4294967294, "4294967294.4294967289", 12)
    first = naming.ray_temp_directory(run_dir)
    assert len(first) <= 36
    assert first.startswith("/tmp/eray-4294967294/")
    assert first != naming.ray_temp_directory(run_dir + "3")


def test_ray_temp_directory_too_long_names_the_variable_and_the_length_that_is_possible():
    with pytest.raises(DirectoryError) as caught:
        naming.ray_temp_directory("/scratch/local/username/eray-1001/4711.0")
    found = re.fullmatch(
        r"ERAY_TMPDIR=/scratch/local/username: too long: it has 23 bytes, (\d+) are possible, .*; "
        r"set ERAY_TMPDIR to a shorter directory on a local disk, such as /tmp",
        str(caught.value),
    )
    assert found, str(caught.value)
    longest = "/" + "s" * (int(found[1]) - 1)
    assert len(naming.ray_temp_directory(f"{longest}/eray-1001/4711.0")) <= naming.MAX_RAY_TEMP_BYTES
    with pytest.raises(DirectoryError):
        naming.ray_temp_directory(f"{longest}s/eray-1001/4711.0")


def test_ray_temp_directory_counts_bytes():
    with pytest.raises(DirectoryError):
        naming.ray_temp_directory("/" + "ü" * 14 + "/eray-1/1")


def test_job_directory_by_cluster_and_job():
    assert naming.job_directory("/home/u/.eray", "rig", "12") == "/home/u/.eray/jobs/rig-12"
    assert naming.job_directory("/home/u/.eray", "", "12") == "/home/u/.eray/jobs/12"
    assert naming.job_directory("/s", "../../x", "12") == "/s/jobs/.._.._x-12"


def test_cluster_key_of_job_and_step():
    assert (naming.cluster_key("123", None), naming.cluster_key("123", "0")) == ("123", "123.0")
