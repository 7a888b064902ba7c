"""A Ray that eray did not start: join a world in its actors, or be told that it is not the run's own."""

import ast
import re
import shutil
from pathlib import Path

import pytest
from laptop import PLAIN_RAY, Laptop

from eray._core.picture import Picture

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAMS = Path(__file__).parent / "programs"


def test_actors_join_a_world_and_its_next_life(laptop: Laptop, plain_ray: str) -> None:
    result = laptop.python(PROGRAMS / "ray_actors.py", **PLAIN_RAY, RAY_ADDRESS=plain_ray).wait(90).check()
    lines = [ast.literal_eval(line) for line in result.stdout.splitlines() if line.startswith("[{'index'")]
    assert lines == [
        [{"index": [i, i], "count": [2, 2], "devices": 4, "generation": [life, life], "node": True} for i in range(2)]
        for life in (1, 2)
    ]
    assert "('w', 'closed')" in result.stdout
    seen = laptop.eray("status", "--json", **PLAIN_RAY, RAY_ADDRESS=plain_ray).wait(60).check()
    picture = Picture.model_validate_json(seen.stdout)
    assert (picture.purpose, picture.key) == ("foreign", plain_ray)
    assert picture.topology is not None
    assert picture.topology.world("w").generation == 2
    lives = {(track.world, track.generation, track.process_index) for track in picture.tracks}
    assert lives >= {("w", life, index) for life in (1, 2) for index in (0, 1)}
    assert {"import jax", "join", "initialise", "all running"} <= {span.name for span in picture.tracks[0].spans}


def test_actors_hear_of_a_preemption_and_save_together(laptop: Laptop, plain_ray: str) -> None:
    result = laptop.python(PROGRAMS / "warned_actors.py", **PLAIN_RAY, RAY_ADDRESS=plain_ray).wait(90).check()
    (first, second), left = (ast.literal_eval(line.removeprefix("left:")) for line in result.stdout.splitlines()[-2:])
    assert first == second, "both saved at one step, for one reason"
    step, noticed, reason = first
    assert step > 20
    assert noticed
    assert re.fullmatch(r"the reclaim notice at process 1 on \S+", reason)
    assert left == [[], []], "threads that outlive the connection"


CONNECT_ALONE = """
import eray
with eray.connect(jax=False) as conn:
    print(conn.process_count, eray.attach().address, flush=True)
"""


def test_ray_address_is_used(laptop: Laptop, plain_ray: str) -> None:
    result = laptop.python("-c", CONNECT_ALONE, **PLAIN_RAY, RAY_ADDRESS=plain_ray).wait().check()
    assert result.stdout == f"1 {plain_ray}\n"


OTHER_CLUSTER = """
import os, ray, eray
ray.init(address=os.environ["PLAIN"])
eray.connect(jax=False)
"""

OWN_LOCAL_RAY = """
import os, ray, eray
ray.init(num_cpus=1, include_dashboard=False, _temp_dir=os.environ["RAY_FILES"])
with eray.connect(jax=False) as conn:
    print(conn.process_count, eray.attach().address == ray.get_runtime_context().gcs_address, flush=True)
"""


@pytest.mark.full
def test_ray_that_the_program_started_is_used(laptop: Laptop) -> None:
    files = laptop.root / "r"
    result = laptop.python("-c", OWN_LOCAL_RAY, **PLAIN_RAY, RAY_FILES=str(files)).wait().check()
    assert result.stdout == "1 True\n"
    shutil.rmtree(files)  # the user's, not eray's


SAME_CLUSTER = """
import ray, eray
address = eray.attach().address
ray.shutdown()
ray.init(address, namespace="eray")
eray.connect(jax=False)
assert ray.get_runtime_context().namespace == "eray"
print("taken", flush=True)
"""

OTHER_NAMESPACE = """
import ray, eray
address = eray.attach().address
ray.shutdown()
ray.init(address, namespace="mine")
eray.connect(jax=False)
"""


def test_ray_init_to_the_same_cluster_is_used(laptop: Laptop, plain_ray: str) -> None:
    """It is, while another Ray runs here."""
    assert laptop.eray("run", "-n", "1", "--", "python", "-c", SAME_CLUSTER).wait().check().stdout == "[0] taken\n"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (OTHER_CLUSTER, r"attached to the Ray at {plain}, its cluster is at \S+:\d+; remove the ray.init\(\) before"),
        pytest.param(
            OTHER_NAMESPACE,
            r"in Ray's namespace 'mine', eray needs 'eray'; call ray.init\(namespace=\"eray\"\)",
            marks=pytest.mark.full,
        ),
    ],
    ids=["cluster", "namespace"],
)
def test_ray_init_elsewhere_is_refused(laptop: Laptop, plain_ray: str, program: str, words: str) -> None:
    result = laptop.eray("run", "-n", "1", "--", "python", "-c", program, PLAIN=plain_ray).wait()
    assert result.returncode == 4, result.output
    error = words.format(plain=re.escape(plain_ray))
    assert re.search(rf"RayAttachError: node \S+: this process is {error}", result.stderr), result.output
