#!/bin/bash
# Ray by hand on all nodes of an allocation, then two processes on each. Variables: PYTHON, PORT, JAX_PORT.
here=$(dirname "$0")
echo "stamp start - $EPOCHREALTIME"
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
read -r ip _ < <(getent hosts "${nodes[0]}")
ray=("$PYTHON" -m ray.scripts.scripts start --block)
srun --overlap -N1 -n1 -w "${nodes[0]}" "${ray[@]}" --head --node-ip-address="$ip" --port="$PORT" >/dev/null &
until (exec 3<>"/dev/tcp/$ip/$PORT") 2>/dev/null; do sleep 0.05; done
echo "stamp gcs - $EPOCHREALTIME"
for node in "${nodes[@]:1}"; do
    srun --overlap -N1 -n1 -w "$node" "${ray[@]}" --address="$ip:$PORT" >/dev/null &
done
exec bash "$here/processes_slurm.sh" "$ip" "${#nodes[@]}"
