"""One process on its way to a first collective with eray; prints time stamps (``stamps.py``)."""

import time

UP = time.time()

import atexit  # noqa: E402

from stamps import stamp  # noqa: E402

atexit.register(lambda: stamp("exit", "-"))  # the first one registered runs last

from collective import all_gather  # noqa: E402

import eray  # noqa: E402


def main() -> None:
    stamp("python", "-", UP)
    with eray.connect() as conn:
        stamp("connected", conn.process_index)
        all_gather()
        stamp("collective", conn.process_index)
    stamp("closed", conn.process_index)


if __name__ == "__main__":
    main()
