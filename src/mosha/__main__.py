"""`python -m mosha` is the command `mosha`."""

import sys

from mosha.cli import main

if __name__ == "__main__":
    sys.exit(main())
