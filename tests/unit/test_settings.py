import json
import pickle

import pytest

from eray._settings import Settings, misspelled, settings_table
from eray._slurm.membership import misspellings
from eray.errors import SettingError, error_data, error_of

BAD = [
    ("ERAY_PORT_RANGE", "24000"),
    ("ERAY_PORT_RANGE", "24000-24005"),
    ("ERAY_PORT_RANGE", "80-30000"),
    ("ERAY_PORT_RANGE", "30000-24000"),
    ("ERAY_AUTH", "maybe"),
    ("ERAY_DASHBOARD", "2"),
    ("ERAY_RAY_GPUS", "-1"),
    ("ERAY_RAY_GPUS", "²"),
    ("ERAY_JOIN_TIMEOUT_S", "0"),
    ("ERAY_JOIN_TIMEOUT_S", "nan"),
    ("ERAY_JOIN_TIMEOUT_S", "inf"),
    ("ERAY_JOIN_TIMEOUT_S", "1m"),
    ("ERAY_LOG", "loud"),
    ("ERAY_TMPDIR", "scratch"),
    ("ERAY_TMPDIR", "~/scratch"),
    ("ERAY_DEVICES", "some"),
    ("ERAY_PREEMPTION_SIGNAL", "KILL"),
    ("ERAY_PREEMPTION_SIGNAL", "USR1,"),
    ("ERAY_PREEMPTION_SIGNAL", "USR1,none"),
    ("ERAY_PREEMPTION_SIGNAL", "10"),
    ("ERAY_DEVICES", "0,"),
    ("ERAY_DEVICES", "0,-1"),
]


@pytest.mark.parametrize(("variable", "value"), BAD)
def test_malformed_setting_is_named_with_its_value(variable, value):
    with pytest.raises(SettingError) as caught:
        Settings.from_environ({variable: value})
    assert (caught.value.variable, caught.value.value) == (variable, value)


def test_all_malformed_settings_are_named_in_one_error():
    with pytest.raises(SettingError) as caught:
        Settings.from_environ({"ERAY_AUTH": "maybe", "ERAY_LOG": "info", "ERAY_TMPDIR": "here", "ERAY_SECRET": "short"})
    one_by_one = [str(error) for error in caught.value.each()]
    assert str(caught.value) == "; and ".join(one_by_one)
    assert [words.partition("=")[0] for words in one_by_one] == ["ERAY_TMPDIR", "ERAY_SECRET", "ERAY_AUTH"]
    assert "short" not in str(caught.value)
    assert str(error_of(json.loads(json.dumps(error_data(caught.value))))) == str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).more == caught.value.more


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ERAY_DEVICES_PER_PROCES", "ERAY_DEVICES_PER_PROCESS"),
        ("ERAY_PORTRANGE", "ERAY_PORT_RANGE"),
        ("ERAY_TMP_DIR", "ERAY_TMPDIR"),
        ("ERAY_LOG_LEVEL", "ERAY_LOG"),
        ("ERAY_LOG", None),
        ("ERAY_TEST_LOG", None),
        ("ERAY_ROOT", None),
        ("ERAY_DIR", None),
        ("RAY_ADDRESS", None),
        ("ERAY_LGO", "ERAY_LOG"),
    ],
)
def test_misspelled_variable_is_told_with_the_one_that_is_meant(name, meant):
    told = f"{name} is set, and eray reads no such variable; did you mean {meant}?"
    assert misspelled([name, "ERAY_AUTH"]) == ([] if meant is None else [told])


def test_settings_absent_and_empty_have_the_defaults():
    empty = {setting.variable: " " for _, setting in settings_table()}
    assert Settings.from_environ(empty) == Settings.from_environ({}) == Settings()


@pytest.mark.parametrize("devices", ["all", "split", "own", "none", "0", "0, 2", "7,6,5"])
def test_devices_setting_is_kept_as_it_is(devices):
    assert Settings.from_environ({"ERAY_DEVICES": devices}).devices == devices


@pytest.mark.parametrize(
    ("text", "names"),
    [("USR1", ("USR1",)), ("sigterm, SIGUSR1", ("TERM", "USR1")), ("none", ()), ("USR2,USR2", ("USR2",))],
)
def test_preemption_signals_are_read(text, names):
    assert Settings.from_environ({"ERAY_PREEMPTION_SIGNAL": text}).preemption_signals == names


def test_settings_are_read():
    environ = {"ERAY_PORT_RANGE": "30000-30100", "ERAY_DASHBOARD": "yes", "ERAY_AUTH": "Disabled", "ERAY_RAY_GPUS": "0"}
    settings = Settings.from_environ(environ)
    assert (settings.port_range, settings.dashboard, settings.auth) == ((30000, 30100), True, "disabled")
    assert settings.ray_gpus == 0


@pytest.mark.parametrize(
    ("around", "speaks"),
    [
        ({}, True),
        ({"SLURM_PROCID": "0"}, True),
        ({"SLURM_PROCID": "3"}, False),
        ({"ERAY_PROCESS_INDEX": "0", "SLURM_PROCID": "3"}, True),
        ({"ERAY_PROCESS_INDEX": "0", "ERAY_RUN_DIR": "/tmp/eray-0/7"}, False),
        ({"RAY_RAYLET_PID": "7"}, False),
    ],
    ids=str,
)
def test_misspellings_are_told_by_one_process_for_all(around, speaks):
    assert bool(misspellings({"ERAY_TMP_DIR": "/x"} | around)) == speaks
