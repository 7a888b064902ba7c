#!/bin/bash
# Ray by hand on one machine, then the processes. Variables: PYTHON, COUNT, IP, PORT, JAX_PORT, RAY_OPTIONS.
here=$(dirname "$0")
"$PYTHON" -m ray.scripts.scripts start --head --block --node-ip-address="$IP" --port="$PORT" $RAY_OPTIONS >/dev/null &
ray=$!
trap 'kill -KILL $ray' EXIT
until (exec 3<>"/dev/tcp/$IP/$PORT") 2>/dev/null; do sleep 0.05; done
echo "stamp gcs - $EPOCHREALTIME"
for ((index = 0; index < COUNT; index++)); do
    "$PYTHON" "$here/by_hand.py" "$IP:$PORT" 1 "$IP:$JAX_PORT" "$COUNT" "$index" &
    processes+=($!)
done
wait "${processes[@]}"
