"""Furnish the directory that the rig's host, nodes and plain user all see: a Python, eray's tree, room for output."""

import compileall
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
COPIED = (REPOSITORY / "eray", REPOSITORY / "examples", HERE / "programs")
NEEDS = ("ray", "jax", "jaxlib", "pydantic", "filelock", "orbax")
PRIVATE = ("/tmp/", "/run/", "/dev/shm/")  # a node has its own of these
SYSTEM_PYTHON = "/usr/bin/python3"


class ShareError(RuntimeError):
    """The plain user cannot be given a Python that has what eray needs."""


@dataclass(frozen=True)
class Share:
    """The shared directory: ``bin`` (python, eray), ``tree`` (eray, examples, programs), ``out`` (all may write)."""

    root: Path
    python: str

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    def home(self, user: str) -> Path:
        """The home of a user in the tests, the same on all nodes."""
        return self.root / "home" / user

    @property
    def out(self) -> Path:
        return self.root / "out"


def furnish(root: Path, users: Sequence[str]) -> Share:
    """Fill ``root`` for plain ``users`` and return what is where.

    Raises:
        ShareError: they can run neither this interpreter nor one made from Debian's.
    """
    root.chmod(0o755)
    share = Share(root, sys.executable if runs_for(users[0], sys.executable) else _environment(root / "env", users[0]))
    share.out.mkdir()
    share.out.chmod(0o1777)
    for name in ("root", *users):  # homes of their own: the users' real ones stay as they are
        share.home(name).mkdir(parents=True, mode=0o700)
        shutil.chown(share.home(name), name)
    for source in COPIED:
        shutil.copytree(source, share.tree / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(share.tree, quiet=1)
    (root / "bin").mkdir()
    start = "import sys\nfrom eray._cli.main import main\nsys.exit(main())\n"
    _script(root / "bin" / "python", f'#!/bin/sh\nexec {share.python} "$@"\n')
    _script(root / "bin" / "eray", f"#!{share.python}\n{start}")
    return share


def runs_for(user: str, python: str) -> bool:
    """Tell whether ``user`` can run ``python`` with eray's dependencies, at a path that the nodes see."""
    if python.startswith(PRIVATE) or sys.prefix.startswith(PRIVATE):
        return False
    code = f"import importlib.util as u; raise SystemExit(not all(map(u.find_spec, {NEEDS!r})))"
    try:
        done = subprocess.run([python, "-I", "-c", code], user=user, group=user, extra_groups=[], cwd="/", timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _environment(path: Path, user: str) -> str:
    """Make an environment on Debian's Python with the files of this one, hard-linked: the same versions, at once."""
    advice = "run the tests in an environment outside of root's home, made from a Python that every user can run"
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not Path(SYSTEM_PYTHON).exists() or not os.path.realpath(SYSTEM_PYTHON).endswith(here):
        raise ShareError(f"user {user} cannot run {sys.executable}, and {SYSTEM_PYTHON} is no {here}; {advice}")
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", path], check=True, timeout=120)
    target = path / "lib" / here / "site-packages"
    for source in dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib")):
        shutil.copytree(source, target, copy_function=_link, dirs_exist_ok=True)
    python = str(path / "bin" / "python")
    if not runs_for(user, python):
        missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
        raise ShareError(f"user {user} cannot run {python} with {', '.join(missing or NEEDS)}; {advice}")
    return python


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
