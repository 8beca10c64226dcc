# SPDX-License-Identifier: Apache-2.0
"""What the library says about a thing, as attributes."""
from __future__ import annotations

from typing import Any, Mapping, Sequence


class Record:
    """Has the attributes its class declares, from a dict that must have them all."""

    def __init__(self, facts: Mapping[str, Any]):
        for name in type(self).__annotations__:
            setattr(self, name, facts[name])


def dataframe(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A table of rows, with pandas."""
    try:
        import pandas
    except ImportError:
        raise ImportError("tables as DataFrames need pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows))
