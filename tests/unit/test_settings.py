import pytest

from eray._settings import Settings, settings_table
from eray.errors import SettingError

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
