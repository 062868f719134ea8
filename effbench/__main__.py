"""`python -m effbench` is the same as `effbench`."""

import sys

from effbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
