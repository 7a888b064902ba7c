"""What is quoted of a process that failed: the exception, once, and never the middle of a traceback."""

import pytest

from eray._core.last_lines import telling_lines

FRAMES = '  File "/lib/eray/_connect.py", line 74, in _join_once\n    connection = make().run()\n           ^^^^^^^'
HEADER = "Traceback (most recent call last):"
ERROR = "eray.errors.SettingError: ERAY_JOIN_TIMEOUT_S='soon': must be a number of seconds"
MESSAGE = ERROR.partition(": ")[2]
NO_DATA = "RuntimeError: no data here"
CRASH = 'Fatal Python error: Aborted\n\nThread 0x01 (most recent call first):\n  File "t.py", line 3 in f\n\nAt 9'
SYNTAX = f'{FRAMES}\n  File "conf.py", line 1\n    a b\n      ^\nSyntaxError: invalid syntax'
RECOVERABLE = (
    "W1203 09:46:33.459480   18873 coordination_service.cc:185] [12006271489326317898] Using experimental recoverable "
    "task feature. The default shutdown barrier will only block non-recoverable tasks."
)
CAUSE = "process 1 of world 'main': raised RuntimeError: no data here (pid 7)"


@pytest.mark.parametrize(
    ("output", "said", "quoted"),
    [
        pytest.param("step 1\nstep 2", "", "step 1\nstep 2", id="no traceback"),
        pytest.param("", "", "", id="nothing"),
        pytest.param(f"step 1\n{RECOVERABLE}\nstep 2", "", "step 1\nstep 2", id="what JAX says in each world"),
        pytest.param(f"{FRAMES}\n{ERROR}\n{RECOVERABLE}", "", ERROR, id="that behind a traceback"),
        pytest.param(f"step 1\n{HEADER}\n{FRAMES}\n{ERROR}", "", ERROR, id="a traceback"),
        pytest.param(f"{FRAMES}\n{ERROR}", "", ERROR, id="a traceback whose beginning is out of reach"),
        pytest.param(f"{FRAMES}\n{ERROR}\n  a note\nbye", "", f"{ERROR}\n  a note\nbye", id="what follows"),
        pytest.param(f"{FRAMES}\nKeyError: 3\n\nDuring …:\n\n{HEADER}\n{FRAMES}\n{ERROR}", "", ERROR, id="a chain"),
        pytest.param(SYNTAX, "", "SyntaxError: invalid syntax", id="a syntax error"),
        pytest.param(FRAMES, "", FRAMES, id="a traceback without its end"),
        pytest.param(CRASH, "", CRASH, id="the stack of a crash"),
        pytest.param(f"{FRAMES}\n{ERROR}", MESSAGE, "", id="told as it is"),
        pytest.param(f"{FRAMES}\n{ERROR}", f"world 'main' failed: {MESSAGE}", "", id="told with more before it"),
        pytest.param(f"{FRAMES}\n{NO_DATA}", CAUSE, "", id="told with its kind"),
        pytest.param(f"{FRAMES}\n{ERROR}", CAUSE, ERROR, id="another is told"),
        pytest.param(f"{FRAMES}\nKeyError: 3", "process 0 ended with code 3", "KeyError: 3", id="the same number"),
        pytest.param(f"{FRAMES}\nAssertionError", "AssertionError", "AssertionError", id="without a message"),
        pytest.param("3", "process 0 ended with code: 3", "3", id="no exception"),
    ],
)
def test_quoted_lines(output: str, said: str, quoted: str) -> None:
    assert telling_lines(output.splitlines(), said) == quoted.splitlines()
