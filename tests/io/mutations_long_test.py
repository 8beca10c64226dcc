# SPDX-License-Identifier: Apache-2.0
"""mutations_test.py with 10,000 mutations of each format: an hour or two."""
import os
import runpy

os.environ.setdefault("MASE_MUTATIONS", "10000")
runpy.run_path(os.path.join(os.environ["MASE_SOURCE"], "tests/io/mutations_test.py"),
               run_name="__main__")
