#!/bin/bash
# `ray symmetric-run` over all nodes of an allocation, then two processes on each. Variables: PYTHON, PORT, JAX_PORT.
here=$(dirname "$0")
echo "stamp start - $EPOCHREALTIME"
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
read -r ip _ < <(getent hosts "${nodes[0]}")
exec srun --overlap -N"${#nodes[@]}" -n"${#nodes[@]}" --ntasks-per-node=1 \
    "$PYTHON" -m ray.scripts.scripts symmetric-run --address="$ip:$PORT" --min-nodes="${#nodes[@]}" -- \
    bash "$here/processes_slurm.sh" "$ip" "${#nodes[@]}"
