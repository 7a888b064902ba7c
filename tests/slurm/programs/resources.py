"""Join, and print what Ray has on each node, as JSON; process 0 prints."""

import json

import ray

import eray

with eray.connect(jax=False) as conn:
    if conn.process_index == 0:
        resources = {node["Labels"]["eray.node-rank"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        print(f"resources {json.dumps(resources)}", flush=True)
    conn.barrier("printed", timeout_s=30)
