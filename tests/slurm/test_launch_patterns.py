"""The batch scripts of the documentation, submitted as they stand, with programs of these tests for the reader's."""

import re

import pytest
from doc_pages import Block, blocks, pages
from slurm_rig import Rig
from worlds import WHO, expect_nothing_left, read_world

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax, pytest.mark.full]
SCRIPTS = [block for page in pages() for block in blocks(page) if block.kind == "run" and "slurm" in block.marks]
DRIVER = "programs/spread.py"
PROGRAMS = {"train.py": WHO, "driver.py": DRIVER, "pipeline.py": DRIVER, "launch.py": "examples/launch.py"}
HERE = ("--cpus-per-task=1", "--mem=4000")
"""The rig's nodes are smaller than those that the pages speak of."""
GPUS = 4
WORLDS = {  # the script's line with its program: processes a node, their rule, their devices
    "eray run --processes-per-node 4 -- python train.py": (4, "split", [[0], [1], [2], [3]]),
    "srun python train.py": (4, "split", [[0], [1], [2], [3]]),
    "eray run -- python train.py": (1, "all", [list(range(GPUS))]),
}


def line_of(block: Block) -> str:
    """Return the line with the reader's program."""
    (line,) = (line for line in block.text.splitlines() if any(f"python {name}" in line for name in PROGRAMS))
    return line


def submitted(rig: Rig, block: Block) -> str:
    """Run a script in the rig, where nothing can open the GPUs, and return what it printed."""
    script = block.text
    for name, program in PROGRAMS.items():
        script = script.replace(f"python {name}", f"python {rig.tree / program}")
    job = rig.sbatch(script, *HERE, env={"JAX_PLATFORMS": "cpu"}).wait()
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    return job.output


@pytest.mark.parametrize(
    "block", [each for each in SCRIPTS if "train.py" in line_of(each)], ids=lambda each: each.place
)
def test_script_of_a_world(rig: Rig, block: Block) -> None:
    """Each process has the node and the devices that the page promises."""
    per_node, rule, ids = WORLDS[line_of(block)]
    if "--gpus-per-task" in block.text:
        per_node, rule, ids = 1, "all", [list(range(GPUS))]
    world = read_world(submitted(rig, block))
    assert world.places == [(node, local) for node in ("node01", "node02") for local in range(per_node)]
    assert world.devices == [(rule, each) for each in ids] * 2


@pytest.mark.parametrize(
    "block", [each for each in SCRIPTS if "train.py" not in line_of(each)], ids=lambda each: each.place
)
def test_script_of_a_driver(rig: Rig, block: Block) -> None:
    """The driver reaches both nodes."""
    output = submitted(rig, block)
    if "launch.py" in block.text:
        assert "the sum over 2 processes and 2 devices is right: 3" in output
    else:
        (per_node,) = re.findall(r"ERAY_RAY_GPUS=(\d)", block.text)
        assert f"tasks ran on 2 nodes, Ray has {2 * int(per_node)} GPUs" in output


def test_every_script_is_of_a_known_kind() -> None:
    assert len(SCRIPTS) >= 8
    assert all(line_of(block) for block in SCRIPTS)
