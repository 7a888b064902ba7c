"""Let eray's calendar clock jump by ten hours, forwards and back, in each Python with this directory on its path."""

import itertools

from eray._io import clock

right, jumps_s = clock.unix, itertools.cycle((0.0, 36_000.0, -36_000.0))
clock.unix = lambda: right() + next(jumps_s)
