# SPDX-License-Identifier: Apache-2.0
"""The logger "chop": lines as MASE's look ("INFO     text"), through sys.stdout, so that they stand in
their place among what a script prints, in a terminal, a file or a notebook."""
from __future__ import annotations

import logging
import sys


class _Stdout(logging.Handler):
    """Writes to what sys.stdout is at that moment: notebooks and tests replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stdout.write(self.format(record) + "\n")


root_logger = logging.getLogger("chop")
if not root_logger.handlers:
    _handler = _Stdout()
    _handler.setFormatter(logging.Formatter("%(levelname)-8s %(message)s"))
    root_logger.addHandler(_handler)
    root_logger.propagate = False
    root_logger.setLevel(logging.INFO)


def set_logging_verbosity(level: str = "info") -> None:
    """debug, info, warning, error or critical."""
    number = getattr(logging, str(level).upper(), None)
    if not isinstance(number, int):
        from mase._native import Error

        raise Error(f"level: expected debug, info, warning, error or critical, got {level!r}")
    root_logger.info(f"Set logging level to {level}")
    root_logger.setLevel(number)


def get_logger(name: str) -> logging.Logger:
    """A logger below "chop"."""
    return logging.getLogger(name if name.partition(".")[0] == "chop" else f"chop.{name}")


def getLogger(name: str = "chop") -> logging.Logger:
    return get_logger(name)
