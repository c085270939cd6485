"""`python -m auxmod` is `auxmod`."""

import sys

from auxmod.cli import main

sys.exit(main())
