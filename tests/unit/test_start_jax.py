import sys

import pytest

from eray import _start_jax
from eray._core.tracks import Recorder
from eray._io import clock
from eray.errors import ConfigurationError


def test_python_without_jax_is_named_before_anything_waits(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(_start_jax, "find_spec", lambda name: None)
    environ = {}
    with pytest.raises(ConfigurationError, match=f"{sys.executable}, which runs this process, has no jax; install"):
        _start_jax.JaxStart(environ, Recorder(clock.unix))
