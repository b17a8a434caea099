"""`python -m wideflow` is the shell command `wideflow`."""

import gc
import sys

from .cli import main

if __name__ == "__main__":
    # what was imported stays: looked through once more at the end it would take half a second
    gc.freeze()
    sys.exit(main())
