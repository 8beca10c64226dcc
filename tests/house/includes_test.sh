#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The include directions hold, and the check notices when they do not.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "$MASE_SOURCE/scripts/check_includes.py" "$MASE_SOURCE"

mkdir -p "$scratch/src/mase/base"
spdx="// SPDX-License-Identifier: Apache-2.0"
printf '%s\n#include "mase/ir/graph.h"\n' "$spdx" >"$scratch/src/mase/base/wrong.cpp"
if python3 "$MASE_SOURCE/scripts/check_includes.py" "$scratch" >"$scratch/out"; then
  echo "base including ir was not noticed"
  exit 1
fi
grep -q "wrong.cpp:2: base must not include ir" "$scratch/out"
