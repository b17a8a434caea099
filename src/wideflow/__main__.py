"""`python -m wideflow` is the shell command `wideflow`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
