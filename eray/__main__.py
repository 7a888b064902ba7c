"""``python -m eray`` is the command ``eray``."""

import sys

from eray._cli.main import main

sys.exit(main())
