"""python -m sluice_trainer"""

import sys

from sluice_trainer.cli import main

sys.exit(main())
