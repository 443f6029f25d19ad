"""`python -m multiadvisor`."""

import sys

from multiadvisor.cli import main

sys.exit(main())
