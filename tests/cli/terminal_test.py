#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Training on a terminal: the progress line is redrawn at most ten times a second, every epoch leaves
one finished line, and no line is wider than the terminal."""
import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time

EPOCHS, COLUMNS = 12, 100


def run_on_terminal(command, environment):
    """What the program wrote to its terminal, and for how long it ran."""
    start = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        written += piece
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit("%s failed:\n%s" % (" ".join(command), written.decode(errors="replace")))
    return written.decode().replace("\r\n", "\n"), time.monotonic() - start


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, MASE_DATA=os.path.join(folder, "data"), TERM="xterm",
                           COLUMNS=str(COLUMNS))
        command = [os.environ["MASE_CH"], "train", "jsc-tiny", "jsc-sim", "--sim-rows", "20000",
                   "--max-epochs", str(EPOCHS), "--project-dir", folder]
        text, seconds = run_on_terminal(command, environment)
    finished = re.findall(r"^(?:.*\r)?(Epoch (\d+): 100%.*?)(?:\x1b\[K)?$", text, re.MULTILINE)
    assert [int(epoch) for _, epoch in finished] == list(range(EPOCHS)), text
    redraws = sum(line.count("\x1b[K") for line in text.split("\n"))
    allowed = 10 * seconds + EPOCHS + 1  # the finished line may replace a drawn one
    assert redraws <= allowed, "%d redraws in %.1f s" % (redraws, seconds)
    for line, _ in finished:
        assert len(line) <= COLUMNS, line
        assert "val_loss_epoch" in line or len(line) > COLUMNS - 30, line


main()
