"""Ray Train's workers are the processes of a world."""

import json
import os
from pathlib import Path

import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

import eray


def train(config):
    context = ray.train.get_context()
    place = {"process_count": context.get_world_size(), "process_index": context.get_world_rank()}
    with eray.connect(world="trained", **place) as conn:
        import jax
        from jax.experimental import multihost_utils

        gathered = multihost_utils.process_allgather(jax.numpy.array([conn.process_index + config["first"]]))
        found = {"gathered": gathered.ravel().tolist(), "count": jax.process_count()}
        (Path(config["results"]) / str(conn.process_index)).write_text(json.dumps(found))
        ray.train.report({})


if __name__ == "__main__":
    cluster, results = eray.attach(), Path(os.environ["STORAGE"]) / "results"
    results.mkdir(parents=True)
    trainer = DataParallelTrainer(
        train,
        train_loop_config={"first": 10, "results": str(results)},
        scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
        run_config=ray.train.RunConfig(name="run", storage_path=os.environ["STORAGE"]),
    )
    trainer.fit()
    found = [json.loads((results / str(index)).read_text()) for index in range(2)]
    print("result:", json.dumps([str(cluster.topology().world("trained").phase), *found]), flush=True)
