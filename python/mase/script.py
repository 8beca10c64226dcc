# SPDX-License-Identifier: Apache-2.0
"""python -m mase.script SCRIPT ARGUMENTS: runs a script with this package's mase and chop first in line.

Scripts of MASE's users begin by looking for a folder "machop" above them, assert that it is there and
add it to sys.path. Here it need not be there: the folder counts as present, and adding it changes
nothing, because ours stand before it.
"""
from __future__ import annotations

import os
import pathlib
import runpy
import sys


def _accept_machop() -> None:
    """Path(...)/"machop" exists, wherever a script expects it."""
    exists = pathlib.Path.exists

    def exists_or_machop(self: pathlib.Path, *args: object, **keys: object) -> bool:
        return self.name == "machop" or exists(self, *args, **keys)  # type: ignore[arg-type]

    pathlib.Path.exists = exists_or_machop  # type: ignore[method-assign,assignment]


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m mase.script SCRIPT [ARGUMENTS]")
    script = sys.argv[1]
    if not os.path.isfile(script):
        print(f"ch: {script}: there is no such script", file=sys.stderr)
        sys.exit(2)
    ours = str(pathlib.Path(__file__).resolve().parent.parent)
    folder = os.path.dirname(os.path.abspath(script))
    # As Python does it, the script's own folder comes first for its own modules, but not for ours.
    sys.path[:] = [ours, folder] + [entry for entry in sys.path if entry not in ("", ours, folder)]
    import chop  # noqa: F401 - found here, it stays this one whatever is added to sys.path

    sys.argv = sys.argv[1:]
    _accept_machop()
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        trace = error.__traceback__  # from the script on, as Python shows it
        while trace is not None and trace.tb_frame.f_code.co_filename != script:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


if __name__ == "__main__":
    main()
