# SPDX-License-Identifier: Apache-2.0
"""Small pieces of HTML for notebooks. Everything that is shown is escaped, and what is drawn is an image:
a notebook that somebody else ran is shown without its SVG elements and frames, but with its images."""
from __future__ import annotations

import base64
import re
from html import escape
from typing import Any, Iterable


def table(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    def line(cells: Iterable[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    return ("<table><thead>" + line(header, "th") + "</thead><tbody>"
            + "".join(line(row, "td") for row in rows) + "</tbody></table>")


def figures(title: str, pairs: Iterable[Iterable[Any]]) -> str:
    """What has no value is left out."""
    return f"<b>{escape(title)}</b>" + table(["Figure", "Value"], [[name, value] for name, value in pairs if value != ""])


def image(svg: str, text: str) -> str:
    """A drawing; `text` is for those who do not see it."""
    data = base64.b64encode(svg.encode()).decode()
    return f"<img alt='{escape(text, quote=True)}' style='max-width:100%' src='data:image/svg+xml;base64,{data}'>"


def page(document: str, fallback: str, height: int = 480) -> str:
    """A whole page in a frame that cannot reach the notebook, with tables and images where frames are not."""
    found = re.search(r"<style>(.*?)</style>", document, re.DOTALL)
    style_text = re.sub(r"/\*.*?\*/", "", found[1], flags=re.DOTALL) if found else ""
    rules = re.findall(r"\s*([^{}]+)(\{[^{}]*\})", style_text)

    def drawing(match: "re.Match[str]") -> str:
        """An <svg> of the page with the rules of the page that it needs."""
        classes = {f".{name}" for names in re.findall(r'class="([^"]*)"', match[0]) for name in names.split()}
        style = "".join(selector + body for selector, body in rules
                        if selector.startswith(":root") or classes & set(re.findall(r"\.[\w-]+", selector)))
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', match[0])
        extent = f'width="{size[1]}" height="{size[2]}" ' if size else ""
        label = re.search(r'aria-label="([^"]*)"', match[0])
        return image(f'<svg xmlns="http://www.w3.org/2000/svg" {extent}class="drawn" data-theme="light" '
                     f"font-family=\"sans-serif\"{match[1]}><style>{escape(style)}</style>{match[2]}</svg>",
                     label[1] if label else "")

    plain = re.sub(r"<svg\b([^>]*)>(.*?)</svg>", drawing, fallback, flags=re.DOTALL)
    return (f"<iframe sandbox='allow-scripts allow-modals' style='width:100%;height:{height}px;border:0' "
            f"srcdoc=\"{escape(document, quote=True)}\">{plain}</iframe>")
