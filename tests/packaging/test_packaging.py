"""The two archives that people install: what is in them, what they say of themselves, and that they work installed.

The source archive is built here, the wheel from the source archive, as an installer does; nothing asks a network.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "eray"
TYPED = """
import eray

conn = eray.connect()
reveal_type(conn)
reveal_type(conn.process_index)
reveal_type(conn.topology().nodes)
reveal_type(eray.launch(len, ([1],)))
reveal_type(eray.expand_hostlist("n[1-2]"))
conn.barrier("checkpoint", timeout_s="soon")
eray.conect()
"""
LIBRARIES_LEFT_OUT = "[mypy-ray.*,jax.*,jaxlib.*,numpy.*]\nfollow_imports = skip\n"
"""Ray and JAX are read by no type that eray gives, and to read them takes mypy 20 s."""


@dataclass(frozen=True)
class Built:
    """The archives, and a directory for what is made of them."""

    sdist: Path
    wheel: Path
    tree: Path


@dataclass(frozen=True)
class Installed:
    """A virtual environment that holds the wheel alone, and sees the libraries of the tests' own."""

    bin_dir: Path
    site_packages: Path

    def run(self, *words: str | Path, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment, elsewhere than in the source tree."""
        return command(self.bin_dir / words[0], *words[1:], cwd=self.site_packages, **env)


def command(*words: str | Path, cwd: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SLURM", "ERAY"))}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=clean | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def build(target: str, source: Path, directory: Path) -> Path:
    done = command(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", directory, cwd=source)
    assert done.returncode == 0, done.stderr
    (archive,) = directory.iterdir()
    return archive


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    place = tmp_path_factory.mktemp("built")
    sdist = build("sdist", ROOT, place / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it
        archive.extractall(place / "tree")
    (tree,) = (place / "tree").iterdir()
    return Built(sdist, build("wheel", tree, place / "wheel"), tree)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    place = tmp_path_factory.mktemp("venv")
    made = command(sys.executable, "-m", "venv", "--without-pip", place, cwd=place)
    assert made.returncode == 0, made.stderr
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        place / "bin" / "python",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    done = command(*pip, built.wheel, cwd=place)
    assert done.returncode == 0, done.stderr
    (site_packages,) = place.glob("lib/python*/site-packages")
    libraries = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (site_packages / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    return Installed(place / "bin", site_packages)


def files_of(directory: Path) -> set[str]:
    found = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(directory).as_posix() for path in found}


def test_wheel_has_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    package = {name for name in names if name.startswith("eray/")}
    assert package == {f"eray/{name}" for name in files_of(PACKAGE)}
    assert "eray/py.typed" in package
    assert {name.split("/")[0] for name in names - package} == {built.wheel.name.rsplit("-", 3)[0] + ".dist-info"}


def test_source_archive_has_tests_docs_and_examples(built: Built) -> None:
    for part in ("eray", "tests", "docs", "examples"):
        assert files_of(ROOT / part) - files_of(built.tree / part) == set(), part
    top = {path.name for path in built.tree.iterdir()}
    assert {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml", ".ci"} <= top
    assert {".git", "dist", "build", ".venv"} & top == set()


def test_metadata_is_complete_and_valid(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = Metadata.from_email(archive.read(name), validate=True)
        licenses = {Path(name).name for name in archive.namelist() if ".dist-info/licenses/" in name}
    assert licenses == {"LICENSE", "NOTICE"}
    assert (found.license_expression, found.description_content_type) == ("Apache-2.0", "text/markdown")
    assert str(found.requires_python) == ">=3.11"
    assert found.description == (ROOT / "README.md").read_text()
    assert "Typing :: Typed" in (found.classifiers or [])
    pythons = {text.removeprefix("Programming Language :: Python :: ") for text in found.classifiers or []}
    assert {"3.11", "3.12", "3.13", "3.14"} <= pythons
    assert found.keywords
    assert found.author == "The eray authors"
    assert {"cuda", "docs", "test"} == set(found.provides_extra or [])
    assert not found.project_urls  # it has no home yet


def test_version_stands_in_one_place(built: Built, installed: Installed) -> None:
    done = installed.run("eray", "--version")
    assert done.returncode == 0, done.stderr
    version = built.sdist.name.removeprefix("eray-").removesuffix(".tar.gz")
    assert done.stdout.startswith(f"eray {version}, Ray ")
    assert (ROOT / "pyproject.toml").read_text().count(f'"{version}"') == 0


def test_installed_package_is_imported_from_where_it_was_installed(installed: Installed) -> None:
    done = installed.run("python", "-c", "import eray; print(eray.__file__, eray.COORDINATOR_NAME)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(installed.site_packages / "eray" / "__init__.py"), "eray-coordinator"]
    assert (installed.site_packages / "eray" / "py.typed").is_file()


def test_installed_command_plans(installed: Installed) -> None:
    done = installed.run("eray", "plan", "--json", ERAY_HEAD="")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["environment"] == "none"


def test_types_are_seen_by_a_program_that_uses_the_package(installed: Installed, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TYPED)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\n{LIBRARIES_LEFT_OUT}")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", installed.bin_dir / "python"]
    options = ["--cache-dir", tmp_path / "cache", "--hide-error-context", "--no-error-summary"]
    done = command(*mypy, *options, program, cwd=tmp_path)
    lines = [line.split(":", 2)[-1].strip() for line in done.stdout.splitlines()]
    for expected in (
        'note: Revealed type is "eray._connection.Connection"',
        'note: Revealed type is "int"',
        'note: Revealed type is "tuple[eray._core.topology.Node, ...]"',
        'note: Revealed type is "list[int]"',
        'error: Argument "timeout_s" to "barrier" of "Connection" has incompatible type "str"; expected "float"',
        'error: Module has no attribute "conect"',
    ):
        assert any(line.replace("builtins.", "").startswith(expected) for line in lines), (expected, done.stdout)
