"""A driver that knows Ray and the coordinator's name only: prints the topology as JSON, made of JSON's own types."""

import json
import sys

sys.modules["eray"] = None  # any import of it fails

import ray  # noqa: E402


def require_json_types(value):
    assert type(value) in (dict, list, str, int, float, bool, type(None)), f"{value!r} is a {type(value)}"
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            require_json_types(each)


ray.init(log_to_driver=False)
topology = ray.get(ray.get_actor("eray-coordinator", namespace="eray").topology.remote(), timeout=30)
require_json_types(topology)
print(json.dumps(topology))
