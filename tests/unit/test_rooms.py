"""The rooms keep to themselves: who imports what, who reads the environment, and what `import eray` costs."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "eray"
MODULES = sorted(PACKAGE.rglob("*.py"))

CORE = {"_core", "_settings", "errors"}
VENDORS = {"_ray", "_jax", "_slurm"}
DOORS = {"_door", "_connect", "_attach", "_launch", "cluster_util"}
WIRING = {
    "_bringup",
    "_clusters",
    "_identity",
    "_reach",
    "_start_jax",
    "_join",
    "_exit_hooks",
    "_facts",
    "_driver_cluster",
    "_own_cluster",
    "_auto_ray",
    "_look",
    "_unseen",
    "_job_files",
    "_queue",
    "_begun",
    "_starting",
    "_distributed",
    "_asking",
    "_beside",
}  # between the doors and the rooms
MAY_IMPORT = {  # room -> rooms of eray; a package may always import from itself
    "errors": set(),
    "_settings": {"errors"},
    "_core": {"_settings", "errors"},
    "_show": CORE | {"_slurm"},
    "_io": CORE,
    "_slurm": CORE,
    "_ray": CORE | {"_io"},
    "_jax": CORE | {"_io"},
    "_watch": CORE | {"_io"} | VENDORS,
    "_preemption": CORE | {"_io"} | VENDORS,
    "_connection": CORE | {"_io", "_preemption"} | VENDORS,
    **{wire: CORE | {"_io", "_connection", "_preemption", "_watch"} | VENDORS | WIRING for wire in WIRING},
    **{door: CORE | {"_io", "_connection", "_show"} | VENDORS | WIRING | DOORS for door in DOORS},
    "_cli": CORE | {"_io", "_connection", "_show", "__init__"} | VENDORS | WIRING | DOORS,
    "__init__": CORE | {"_io", "_connection"} | VENDORS | DOORS,
    "__main__": {"_cli"},
}
PURE = {"_core", "_slurm", "_show"}
IMPURE = {"os", "time", "socket", "subprocess", "logging", "ray", "jax", "asyncio"}
HOME = {"ray": "_ray", "jax": "_jax", "jaxlib": "_jax"}
READ_THE_ENVIRONMENT = DOORS | {"_cli"}
TELLS_THE_TIME = {"_io/clock.py", "_io/guard.py"}  # the guard stands alone, and only sleeps
NEVER = re.compile(r"\bray stop\b|\bpkill\b|\bkillall\b|/tmp/ray\b|address=[\"']auto[\"']")  # in eray
ENVIRONMENT = {"environ", "environb", "getenv"}
CALENDAR, CALENDARS = {"now", "utcnow", "today"}, re.compile(r"\bdate(time)?$")
HEAVY = {"ray", "jax", "numpy", "pydantic", "asyncio"}


def room_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(nodes: Iterable[ast.AST], module: Path) -> Iterator[tuple[str, int]]:
    """Yield each imported module's full name and line; imports inside functions and by a literal name count too."""
    package = ("eray", *module.relative_to(PACKAGE).parts[:-1])
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join([*above, *filter(None, [node.module])])
            yield from ((f"{name}.{alias.name}" if name == "eray" else name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield from (
                (a.value, node.lineno) for a in node.args if isinstance(a, ast.Constant) and type(a.value) is str
            )


def faults(source: str, module: Path) -> list[str]:
    """Return what a module's imports and its use of the environment do against the rules."""
    nodes, room, found = list(ast.walk(ast.parse(source))), room_of(module), []
    for name, line in imports_of(nodes, module):
        top, _, rest = name.partition(".")
        target = rest.split(".")[0]
        if top == "eray":
            target = target if target in MAY_IMPORT else "__init__"
            if target != room and target not in MAY_IMPORT[room]:
                found.append(f"line {line}: {room} imports eray.{target}")
        elif top in HOME and HOME[top] != room:
            found.append(f"line {line}: {top} is imported in {HOME[top]} only")
        elif top == "time" and relative(module) not in TELLS_THE_TIME:
            found.append(f"line {line}: time is told in eray._io.clock only")
        elif room in PURE and top in IMPURE:
            found.append(f"line {line}: {room} is pure and imports {top}")
    if room not in READ_THE_ENVIRONMENT:
        found += [f"line {line}: {room} reads the environment" for line in reads_of_the_environment(nodes)]
    return found + [f"line {line}: time is told in eray._io.clock only" for line in reads_of_a_calendar(nodes)]


def reads_of_a_calendar(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in CALENDAR and CALENDARS.search(ast.unparse(node.value)):
            yield node.lineno


def reads_of_the_environment(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT and ast.unparse(node.value) == "os":
            yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (node.lineno for alias in node.names if alias.name in ENVIRONMENT)


def relative(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_module_keeps_to_its_room(module: Path) -> None:
    assert room_of(module) in MAY_IMPORT, "a new room: give it its place in MAY_IMPORT and in the design"
    assert faults(module.read_text(), module) == []


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_module_is_short(module: Path) -> None:
    most = 450 if module.name == "errors.py" else 250  # the tree of errors is one table
    assert len(module.read_text().splitlines()) <= most


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_module_never_hurts_other_peoples_ray(module: Path) -> None:
    assert NEVER.findall(module.read_text()) == []


@pytest.mark.parametrize(
    ("module", "source", "count"),
    [
        ("_core/devices.py", "import eray._settings, dataclasses", 0),
        ("_core/devices.py", "import os", 1),
        ("_core/devices.py", "from os import path", 1),
        ("_core/devices.py", "from eray._io import net", 1),
        ("_core/devices.py", "from .._io import net", 1),
        ("_core/devices.py", "from . import naming", 0),
        ("_core/devices.py", "from eray import errors", 0),
        ("_core/devices.py", "from eray import connect", 1),
        ("_slurm/srun.py", "from eray._io.net import address", 1),
        ("_slurm/srun.py", "def f():\n    import logging", 1),
        ("_ray/client.py", "import ray, jax", 1),
        ("_ray/client.py", "import eray._jax.runtime", 1),
        ("_ray/client.py", "from eray._slurm import hostlist", 1),
        ("_io/net.py", "import importlib\nimportlib.import_module('jax.numpy')", 1),
        ("_io/net.py", "import os\nos.environ['A']", 1),
        ("_io/net.py", "from os import getenv", 1),
        ("_io/net.py", "from time import monotonic", 1),
        ("_io/clock.py", "import time", 0),
        ("_cli/logs.py", "import datetime\ndatetime.datetime.now()", 1),
        ("_cli/logs.py", "from datetime import datetime\ndatetime.fromtimestamp(0)", 0),
        ("_connect.py", "import os\nos.environ\nfrom eray._ray import client\nfrom eray._jax import runtime", 0),
        ("_connection.py", "from eray._connect import connect", 1),
        ("__main__.py", "from eray._cli.main import main", 0),
    ],
)
def test_faults_finds_what_breaks_the_rules(module: str, source: str, count: int) -> None:
    assert len(faults(source, PACKAGE / module)) == count


def in_fresh_interpreter(code: str) -> list[str]:
    """Run code that prints a JSON list in a new Python and return it."""
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_import_eray_loads_nothing_heavy() -> None:
    loaded = in_fresh_interpreter("import json, sys, eray; print(json.dumps(list(sys.modules)))")
    assert HEAVY & set(loaded) == set()


def test_all_is_what_is_exported() -> None:
    code = """
import json, types, eray
values = {name: getattr(eray, name) for name in eray.__all__}
public = {name for name, value in vars(eray).items() if name[0] != "_" and not isinstance(value, types.ModuleType)}
assert len(values) == len(eray.__all__), "a name stands twice"
assert public <= set(values), f"not in __all__: {public - set(values)}"
assert set(values) <= set(dir(eray)), f"not in dir(): {set(values) - set(dir(eray))}"
print(json.dumps(eray.__all__))
"""
    exported = set(in_fresh_interpreter(code))
    assert {"connect", "attach", "coordinator", "expand_hostlist", "fold_hostlist", "NAMESPACE"} <= exported
    assert "COORDINATOR_NAME" in exported
