"""A program that cannot be started: the codes that a shell has for it, and what to do."""

import os
import subprocess
from pathlib import Path

import pytest

from eray._core.exec_failure import exec_failure


def failure_of(program: str, path: str) -> OSError:
    with pytest.raises(OSError) as caught:  # noqa: PT011
        subprocess.run([program], env={"PATH": path}, timeout=10, check=False)
    return caught.value


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("a directory", 0o700, "it is a directory; name the program in it"),
        (None, 0, "there is no such file"),
        ("#!/bin/sh\n", 0o600, "it may not be executed; `chmod +x` it"),
        ("#!/no/such/interpreter\n", 0o700, "the interpreter of its first line is not there"),
        ("echo hi\n", 0o700, "neither a program of this machine nor a script whose first line names its interpreter"),
    ],
    ids=["directory", "missing", "not executable", "no interpreter", "no first line"],
)
def test_program_that_the_kernel_refuses_has_the_code_of_a_shell(content, mode, words, tmp_path: Path):
    program = tmp_path / "program"
    if content == "a directory":
        program.mkdir(mode)
    elif content is not None:
        program.write_text(content)
        program.chmod(mode)
    error = failure_of(str(program), os.defpath)
    facts = {"on_path": content is not None, "is_directory": program.is_dir()}
    found = exec_failure(str(program), error.errno, str(error.strerror), **facts)
    assert found.code == (127 if isinstance(error, FileNotFoundError) else 126)
    assert words in found.reason


def test_bare_name_is_not_found_whatever_the_kernel_says_of_a_directory_of_path():
    found = exec_failure("trian", 13, "Permission denied", on_path=False, is_directory=True)
    assert (found.code, found.reason) == (127, "no directory of that node's PATH has 'trian'; give its whole path")


def test_error_that_is_not_known_keeps_the_kernels_words():
    found = exec_failure("/bin/true", 12, "Cannot allocate memory", on_path=True, is_directory=False)
    assert (found.code, found.reason) == (126, "Cannot allocate memory")
