"""`python -m auxmod` runs the `auxmod` command."""

import sys

from auxmod.cli import main

sys.exit(main())
