# SPDX-License-Identifier: Apache-2.0
"""Some random designs against a model that shares nothing with the library (random_designs.py)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from random_designs import trials  # noqa: E402

# The last two: pipelined designs whose outputs are all constant.
trials([*range(16), 1276, 1824])
