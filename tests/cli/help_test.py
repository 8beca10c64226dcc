# SPDX-License-Identifier: Apache-2.0
"""What the program says of itself: ch --version, ch doctor, the manual page, and a help that begins with examples."""
import os
import re
import subprocess
import sys

CH = os.environ["MASE_CH"]
# Commands of which there is one thing to type.
FEW = {"verify": 1, "completion": 1, "doctor": 1, "notebook": 1, "python": 2, "reference": 2}


def say(*words, **variables):
    done = subprocess.run([CH, *words], capture_output=True, text=True, env={**os.environ, **variables})
    assert done.returncode == 0 and not done.stderr, (words, done)
    return done.stdout


version = say("--version")
assert re.fullmatch(r"ch [0-9.]+\n"
                    r"commit {14}([0-9a-f]{10}(-dirty)?|unknown)\n"
                    r"compiler {12}(g\+\+|clang) [0-9.]+, \w+\n"
                    r"instruction sets {4}\w+(, \w+)*; in use: \w+\n"
                    r"optional libraries {2}libcurl( \(not here\))?, libpq( \(not here\))?, MPI( \(not here\))?\n", version), version

doctor = say("doctor")
assert doctor.startswith(version) and "as it should be" in doctor, doctor
rows = re.findall(r"^(\S+) +(yes|no) {2,}(.*)$", doctor, re.M)
assert {"libcurl", "yosys", "numpy"} <= {name for name, _, _ in rows}, rows
# With nothing on the path every program is missing, and the line says how to get it.
bare = say("doctor", PATH="/nowhere")
assert re.search(r"^yosys +no .*apt-get install yosys$", bare, re.M), bare

manual = say("reference", "--manual")
assert manual.startswith('.TH CH 1 "" "ch '), manual[:80]
commands = re.findall(r"^  ([a-z]+) +[A-Z]", say("--help"), re.M)
assert len(commands) > 25, commands
for command in commands:
    assert f".SS ch {command}" in manual, command
    lines = say(command, "--help").split("\n")
    examples = [line for line in lines if re.match(rf"  (eval .*)?(mpirun -n \d+ )?\S*ch {command}\b", line)]
    assert len(examples) >= FEW.get(command, 3), (command, examples)
    assert lines[2] == "Examples:", (command, lines[:4])
sys.exit(0)
