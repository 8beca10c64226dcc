#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The launcher where nothing can be written: a checkout that was built, then made read-only (and whose
# times say that the sources are newer), in a path with quotes and without HOME, still runs.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree="$scratch/it's a \"quoted\" tree"
mkdir -p "$tree/src" "$tree/cmake" "$tree/scripts" "$tree/build/release/bin"
cp "$MASE_SOURCE/ch" "$tree/"
cp "$MASE_SOURCE/scripts/instruction_set.sh" "$tree/scripts/"
touch "$tree"/{CMakeLists.txt,CMakePresets.json} "$tree/build/release/.ch-built"
printf '#!/bin/bash\necho "ran $*"\n' >"$tree/build/release/bin/ch"
chmod +x "$tree/build/release/bin/ch"
touch -d "1 minute" "$tree/src/newer.cpp"

read_only='mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec env -u HOME "$1/ch" a b'
if [[ $(id -u) == 0 ]]; then  # root may write everywhere but on a read-only mount
  unshare -m true 2>/dev/null || exit 77
  output=$(unshare -m bash -c "$read_only" bash "$tree" 2>"$scratch/err") || { cat "$scratch/err"; exit 1; }
else
  chmod -R a-w "$tree"
  output=$(env -u HOME "$tree/ch" a b 2>"$scratch/err") || { cat "$scratch/err"; exit 1; }
  chmod -R u+w "$tree"
fi
[[ $output == "ran a b" ]] || { echo "printed: $output"; exit 1; }
grep -q "cannot be written: running it as it is" "$scratch/err" || { cat "$scratch/err"; exit 1; }
