#!/bin/bash
# `ray symmetric-run` on one machine, then the processes. Variables as of by_hand_local.sh. Ends in `ray stop`!
here=$(dirname "$0")
if [ "$1" != processes ]; then
    exec "$PYTHON" -m ray.scripts.scripts symmetric-run --address="$IP:$PORT" -- bash "$0" processes
fi
echo "stamp gcs - $EPOCHREALTIME"
for ((index = 0; index < COUNT; index++)); do
    "$PYTHON" "$here/by_hand.py" "$IP:$PORT" 1 "$IP:$JAX_PORT" "$COUNT" "$index" &
done
wait
