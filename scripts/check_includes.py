#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the include directions of src/mase (ARCHITECTURE.md): who may include whom."""
import pathlib
import re
import sys

# Each folder may include itself and these.
ALLOWED = {
    "base": set(),
    "formats": {"base"},
    "ir": {"base", "formats"},
    "ops": {"base", "formats", "ir"},
    "engine": {"base", "formats", "ir", "ops"},
    "passes": {"base", "formats", "ir", "ops", "engine"},
    "io": {"base", "formats", "ir", "ops", "data"},
    "models": {"base", "formats", "ir", "ops"},
    "data": {"base", "io"},
    "train": {"base", "formats", "ir", "ops", "engine", "data", "io"},
    "report": {"base"},
    "search": {"base", "formats", "ir", "ops", "engine", "passes", "models", "data", "train"},
    "cli": {"base", "formats", "ir", "ops", "engine", "passes", "io", "models", "data", "train",
            "report", "search"},
}
# Headers that only the file's own folder and the named ones may see: heavy to compile.
HEAVY = re.compile(r"#include <(toml\+\+/|nlohmann/json\.hpp|CLI/|httplib|rapidcheck)")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    source = root / "src" / "mase"
    faults = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        folder = path.relative_to(source).parts[0]
        if folder not in ALLOWED:
            faults.append(f"{path}: folder '{folder}' has no rule; add one to {__file__}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if path.suffix == ".h" and HEAVY.match(line):
                faults.append(f"{path}:{number}: a header includes a heavy library: {line}")
            match = re.match(r'#include "mase/(\w+)/', line)
            if match and match[1] != folder and match[1] not in ALLOWED[folder]:
                faults.append(f"{path}:{number}: {folder} must not include {match[1]}")
            if line.startswith('#include "') and not re.match(r'#include "(mase|hwy|support)/', line):
                faults.append(f"{path}:{number}: write the path from src: {line}")
        if not path.read_text().startswith("// SPDX-License-Identifier: Apache-2.0"):
            faults.append(f"{path}:1: the SPDX line is missing")
    print("\n".join(faults) if faults else "include directions hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
