# SPDX-License-Identifier: Apache-2.0
"""Pages of runs, as `ch report` writes them."""
from __future__ import annotations

import os
from typing import Any, List, Optional, Union

from mase import _native
from mase.arrays import path_text

PathLike = Union[str, "os.PathLike[str]"]


class Page:
    """One self-contained document: `html`, with its figures as plain tables in `plain`.

    A notebook shows it in a frame that cannot reach the notebook; where frames are not shown, the tables are.
    """

    def __init__(self, html: str, plain: str, folders: List[str]):
        self.html, self.plain, self.folders = html, plain, folders

    def save(self, path: PathLike) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        runs = "1 run" if len(self.folders) == 1 else f"{len(self.folders)} runs"
        return f"<page of {runs}, {len(self.html) // 1024} KB>"

    def _repr_html_(self) -> str:
        from mase.html import page

        return page(self.html, self.plain, 640)


def report(*runs: Any, title: Optional[str] = None) -> Page:
    """The page of a run or a search, or of several compared: results of mase.train and mase.search, or folders."""
    if not runs:
        raise _native.Error("report: give a run, or a folder that holds some")
    folders = []
    for run in runs:
        folder = run if isinstance(run, (str, os.PathLike)) else getattr(run, "folder", None)
        if not folder:
            raise _native.Error(f"report: {run!r} left no folder; run it with save=True")
        folders.append(path_text(folder))
    html, plain, found = _native.run_page(folders, title or "")
    return Page(html, plain, found)
