# SPDX-License-Identifier: Apache-2.0
"""Small pieces of HTML for notebooks. Everything that is shown is escaped."""
from __future__ import annotations

from html import escape
from typing import Any, Iterable


def table(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    def line(cells: Iterable[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    return ("<table><thead>" + line(header, "th") + "</thead><tbody>"
            + "".join(line(row, "td") for row in rows) + "</tbody></table>")


def figures(title: str, pairs: Iterable[Iterable[Any]]) -> str:
    return f"<b>{escape(title)}</b>" + table(["Figure", "Value"], pairs)


def page(document: str, fallback: str, height: int = 480) -> str:
    """A whole page in a frame that cannot reach the notebook, with a table where frames are not."""
    return (f"<iframe sandbox='allow-scripts' style='width:100%;height:{height}px;border:0' "
            f"srcdoc=\"{escape(document, quote=True)}\">{fallback}</iframe>")
