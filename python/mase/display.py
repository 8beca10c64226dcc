# SPDX-License-Identifier: Apache-2.0
"""Who is told what an experiment does: the logger "mase", and a line of progress that is rewritten in
a terminal or a notebook. No widgets are needed; where neither is, nothing is shown."""
from __future__ import annotations

import logging
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Set

logger = logging.getLogger("mase")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_warned: Set[str] = set()  # in this process


def _notebook_handle() -> Any:
    """IPython's display, if a notebook runs us."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display as show

    return show


class Line:
    """One line of text that is rewritten."""

    def __init__(self) -> None:
        self._show = _notebook_handle()
        self._handle: Any = None
        self._terminal = self._show is None and sys.stderr is not None and sys.stderr.isatty()
        self._width = 0

    @property
    def visible(self) -> bool:
        return self._show is not None or self._terminal

    def write(self, text: str) -> None:
        if self._show is not None:
            data = {"text/plain": text}
            if self._handle is None:
                self._handle = self._show(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
        elif self._terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)

    def close(self) -> None:
        if self._terminal and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._width = 0


def bar(share: float, width: int = 24) -> str:
    done = int(max(0.0, min(1.0, share)) * width)
    return "█" * done + " " * (width - done)


class Display:
    """What the native experiments call. The user's own functions are called after ours."""

    def __init__(self, show: bool, on_epoch: Optional[Callable] = None, on_step: Optional[Callable] = None,
                 prints: bool = True, log: logging.Logger = logger):
        for name, function in (("on_epoch", on_epoch), ("on_step", on_step)):
            if function is not None and not callable(function):
                raise TypeError(f"{name}: expected a function, got {type(function).__name__}")
        self.line = Line() if show else None
        self.history: list = []
        self._on_epoch, self._on_step, self._prints, self._log = on_epoch, on_step, prints, log
        self._figures = ""

    def log(self, level: str, text: str) -> None:
        number = _LEVELS.get(level, logging.INFO)
        if number == logging.WARNING:  # a notebook's every cell would repeat what is said of the data
            if text in _warned:
                number = logging.INFO
            _warned.add(text)
        self._log.log(number, "%s", text)

    def print(self, text: str) -> None:
        if self._prints:
            sys.stdout.write(text)

    def progress(self, what: str, done: int, total: int, seconds: float) -> None:
        if self.line is not None and self.line.visible:
            self.line.write(f"{what}: {bar(done / total if total else 1)} {done}/{total} [{seconds:.0f} s]")

    def step(self, event: dict) -> None:
        if self.line is not None and self.line.visible:
            share = event["batch"] / event["batches"] if event["batches"] else 1
            rate = event["batch"] / event["epoch_seconds"] if event["epoch_seconds"] > 0 else 0
            self.line.write(f"Epoch {event['epoch']}: {100 * share:3.0f}%|{bar(share)}| {event['batch']}/"
                            f"{event['batches']} [{rate:,.0f}it/s, loss={event['loss']:.3f}{self._figures}]")
        if self._on_step is not None:
            self._on_step(event)

    def epoch(self, event: dict) -> None:
        row = {"epoch": event["epoch"], "step": event["step"], "seconds": event["seconds"],
               "learning_rate": event["learning_rate"], **event["figures"], "best": event["best"]}
        self.history.append(row)
        self._figures = "".join(f", {k}={v:.3f}" for k, v in event["figures"].items() if k.startswith("val_"))
        if self._on_epoch is not None:
            self._on_epoch(row)

    def trial(self, trial: dict, count: int) -> None:
        if self.line is not None and self.line.visible and time.monotonic() - getattr(self, "_shown", 0.0) > 0.05:
            self._shown = time.monotonic()
            values = ", ".join(f"{value:.4g}" for value in trial["values"])
            self.line.write(f"Trial {trial['number']}: {values} ({count} tried)")


@contextmanager
def display(progress: Optional[bool] = None, **options: Any) -> Iterator[Display]:
    """A display whose line is closed whatever happens. `progress` None: where somebody can see it."""
    shown = Display(progress is not False, **options)
    try:
        yield shown
    finally:
        if shown.line is not None:
            shown.line.close()
