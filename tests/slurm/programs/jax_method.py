"""JAX itself starts from Slurm's variables as eray reads them, because it is asked to; Ray comes after it."""

import jax
import ray

import eray
from eray.cluster_util import auto_ray_cluster, eSlurmCluster

jax.distributed.initialize(cluster_detection_method=eSlurmCluster.register_with_jax())
address = eSlurmCluster.get_coordinator_address()
print(f"jax {jax.process_index()} of {jax.process_count()} by {address}", flush=True)
auto_ray_cluster()
names = sorted(node["name"] for node in ray.get(eray.coordinator().topology.remote())["nodes"])
print(f"ray {ray.get_runtime_context().gcs_address} {ray.get_runtime_context().namespace} {names}", flush=True)
