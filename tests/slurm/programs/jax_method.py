"""JAX itself starts from Slurm's variables as eray reads them, because it is asked to."""

import jax

from eray.cluster_util import eSlurmCluster

jax.distributed.initialize(cluster_detection_method=eSlurmCluster.register_with_jax())
address = eSlurmCluster.get_coordinator_address()
print(f"jax {jax.process_index()} of {jax.process_count()} by {address}", flush=True)
