#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./ch ARGUMENTS: runs the program. The first call installs what is missing from Debian's packages
# and builds a release; later calls start at once and rebuild only when sources changed.
# ./ch --install hardware: the tools of ch emit, simulate and synth; --install place: of --place.
set -euo pipefail

here=${BASH_SOURCE[0]}
[[ -L $here ]] && here=$(readlink -f "$here")
root=${here%/*}
[[ $root == "$here" ]] && root=.
build=${MASE_BUILD_DIR:-$root/build/release}
binary=$build/bin/ch
stamp=$build/.ch-built

# shellcheck source=scripts/instruction_set.sh
source "$root/scripts/instruction_set.sh"
# Folders are looked at too: their times change when a file is added or removed.
changed() {
  [[ ! -x $binary || ! -e $stamp ]] && return 0
  # The program was built for another machine, and this one can do more.
  read -r built <"$stamp" || return 0
  [[ $built != all && $best && ";$built;" != *";$best;"* ]] && return 0
  [[ -n $(find "$root/src" "$root/cmake" "$root/CMakeLists.txt" "$root/CMakePresets.json" \
    -newer "$stamp" -print -quit) ]]
}

if changed && [[ -x $binary && ! -w $build ]]; then
  echo "ch: the sources are newer than the program, but $build cannot be written: running it as it is" >&2
elif changed; then
  "$root/scripts/build.sh" --native --packages build --build-dir "$build" --stamp "$stamp" ch || exit $?
fi

# Hardware tools are large, and no command installs anything by itself: whoever wants them says so.
if [[ ${1:-} == --install ]]; then
  shift
  case "$*" in
    hardware | place | "hardware place") exec "$root/scripts/install_packages.sh" "$@" ;;
  esac
  echo "ch: --install takes hardware (yosys, iverilog, verilator) or place (nextpnr-ice40)" >&2
  exit 2
fi
# Python with our packages first in line.
case ${1:-} in
  python | notebook)
    # shellcheck source=scripts/python.sh
    source "$root/scripts/python.sh"
    ;;
esac
exec "$binary" "$@"
