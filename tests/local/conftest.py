"""Each test has a laptop of its own, which is as empty after it as before."""

from collections.abc import Iterator

import pytest
from laptop import Laptop


@pytest.fixture
def laptop() -> Iterator[Laptop]:
    """A place for one test; afterwards no process and no file of it may be left."""
    here = Laptop.make()
    try:
        yield here
        here.require_clean()
    finally:
        here.clear()
