# SPDX-License-Identifier: Apache-2.0
"""Some random designs in other formats than fixed point, and of convolutions (random_formats.py)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from random_formats import trials  # noqa: E402

trials(range(14))
