#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules of includes and namespaces hold, and the check notices when they do not.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "$MASE_SOURCE/scripts/check_includes.py" "$MASE_SOURCE"

mkdir -p "$scratch/src/mase/base"
spdx="// SPDX-License-Identifier: Apache-2.0"
printf '%s\n#include "mase/ir/graph.h"\n' "$spdx" >"$scratch/src/mase/base/wrong.cpp"
printf '%s\n#include <map>\nstd::vector<int> list;  // std::set\n' "$spdx" >"$scratch/src/mase/base/missing.cpp"
printf '%s\nstruct Table {};\n' "$spdx" >"$scratch/src/mase/base/table.h"
printf '%s\nTable table();\n' "$spdx" >"$scratch/src/mase/base/user.cpp"
printf '%s\nconst Register<Thing> registered{};\n' "$spdx" >"$scratch/src/mase/base/shared_name.cpp"
if python3 "$MASE_SOURCE/scripts/check_includes.py" "$scratch" >"$scratch/out"; then
  echo "the faults were not noticed"
  exit 1
fi
grep -q "wrong.cpp:2: base must not include ir" "$scratch/out"
grep -q "missing.cpp: std::vector is used without #include <vector>" "$scratch/out"
grep -q "shared_name.cpp: keep what it registers in a namespace mase::shared_name_" "$scratch/out"
grep -q 'user.cpp: Table is used without #include "mase/base/table.h"' "$scratch/out"
[[ $(wc -l <"$scratch/out") == 4 ]]
