#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./ch ARGUMENTS: runs the program. The first call installs what is missing from Debian's packages
# and builds a release; later calls start at once and rebuild only when sources changed.
set -euo pipefail

here=${BASH_SOURCE[0]}
[[ -L $here ]] && here=$(readlink -f "$here")
root=${here%/*}
[[ $root == "$here" ]] && root=.
build=${MASE_BUILD_DIR:-$root/build/release}
binary=$build/bin/ch
stamp=$build/.ch-built

# Folders are looked at too: their times change when a file is added or removed.
changed() {
  [[ ! -x $binary || ! -e $stamp ]] && return 0
  [[ -n $(find "$root/src" "$root/cmake" "$root/CMakeLists.txt" "$root/CMakePresets.json" \
    -newer "$stamp" -print -quit) ]]
}

if changed && [[ -x $binary && ! -w $build ]]; then
  echo "ch: the sources are newer than the program, but $build cannot be written: running it as it is" >&2
elif changed; then
  "$root/scripts/build.sh" --packages build --build-dir "$build" --stamp "$stamp" ch || exit $?
fi

# Hardware tools are large: only those who use them get them. Without them the program says so.
case "${1:-} $*" in
  "emit "* | "simulate "* | "synth "* | "shrink "*" --designs"*)
    for tool in yosys iverilog verilator; do
      command -v $tool >/dev/null && continue
      "$root/scripts/install_packages.sh" hardware || true
      break
    done
    ;;
esac
if [[ ${1:-} == synth && " $* " == *" --place"?"ice40 "* ]] && ! command -v nextpnr-ice40 >/dev/null; then
  "$root/scripts/install_packages.sh" place || true
fi
# Python with our packages first in line.
case ${1:-} in
  python | notebook)
    # shellcheck source=scripts/python.sh
    source "$root/scripts/python.sh"
    ;;
esac
exec "$binary" "$@"
