# SPDX-License-Identifier: Apache-2.0
"""A thousand of them; MASE_RANDOM_DESIGNS says another number, MASE_RANDOM_DESIGNS_FIRST another first seed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from random_formats import trials  # noqa: E402

first = int(os.environ.get("MASE_RANDOM_DESIGNS_FIRST", "1000"))
trials(range(first, first + int(os.environ.get("MASE_RANDOM_DESIGNS", "1000"))))
