#!/bin/bash
# Two processes on each node of an allocation: processes_slurm.sh IP NODES. Variables: PYTHON, PORT, JAX_PORT.
here=$(dirname "$0")
count=$(($2 * 2))
srun --overlap -N"$2" -n"$count" --ntasks-per-node=2 bash -c \
    'exec "$PYTHON" "$0/by_hand.py" "$1:$PORT" "$2" "$1:$JAX_PORT" "$3" "$SLURM_PROCID"' "$here" "$1" "$2" "$count"
