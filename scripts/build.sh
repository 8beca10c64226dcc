#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages, configures and builds. Chatter goes to a log; the terminal gets one
# progress line, and the end of the log if something fails.
#
#   scripts/build.sh [--preset NAME] [--build-dir DIR] [--packages "build test"] [--stamp FILE]
#                    [--native] [-DOPTION=VALUE ...] TARGET...
#
# With --native a new build has kernels for the instruction sets of this machine only: the best one and
# SSE4, which portable results are computed with. On another machine its best is added, so a folder that
# machines of several kinds share comes to rest.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ $root == *[\"\\]* ]]; then
  echo "ch: $root: CMake cannot build in a path with a double quote or a backslash; move the folder" >&2
  exit 2
fi
preset=release build="" packages=build stamp="" native="" options=() targets=()
while (($#)); do
  case $1 in
    --preset) preset=$2; shift 2 ;;
    --build-dir) build=$2; shift 2 ;;
    --packages) packages=$2; shift 2 ;;
    --stamp) stamp=$2; shift 2 ;;
    --native) native=1; shift ;;
    -D*) options+=("$1"); shift ;;
    *) targets+=("$1"); shift ;;
  esac
done
build=${build:-$root/build/$preset}
mkdir -p "$build"
build=$(cd "$build" && pwd)
log=$build/build.log

# One build at a time; whoever waited finds it done.
exec 9>"$build/.lock"
if ! flock -n 9; then
  echo "ch: another build is running; waiting for it" >&2
  flock 9
fi

# The sources as they are now decide: what changes during the build is built next time.
[[ -n $stamp ]] && : >"$stamp.started"

"$root/scripts/install_packages.sh" --log "$log" $packages

fail() {
  printf '\r\033[K' >&2
  echo "ch: $1 failed; the end of $log:" >&2
  tail -n 25 "$log" >&2
  exit 1
}

show() {  # one line that is rewritten on a terminal; whole lines now and then elsewhere
  if [[ -t 2 ]]; then printf '\r\033[K%s' "$1" >&2; else echo "$1" >&2; fi
}

# A copied or moved checkout brings a cache that names the old places: building from it would compile
# the original's sources.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null; }
fresh=()
if [[ -e $build/CMakeCache.txt ]] &&
  [[ ! $(cached CMAKE_HOME_DIRECTORY) -ef $root || ! $(cached CMAKE_CACHEFILE_DIR) -ef $build ]]; then
  fresh=(--fresh)
  rm -f "$build/build.ninja"
fi
if [[ $native ]]; then
  # shellcheck source=scripts/instruction_set.sh
  source "$root/scripts/instruction_set.sh"
  had=""
  if [[ -e $build/CMakeCache.txt && ${#fresh[@]} == 0 ]]; then
    had=$(cached MASE_INSTRUCTION_SETS)
    had=${had:-all}
  fi
  if [[ $best && $had != all && ";$had;" != *";$best;"* ]]; then
    sets=SSE4
    for set in AVX2 AVX3; do
      [[ $set == "$best" || ";$had;" == *";$set;"* ]] && sets+=";$set"
    done
    options+=("-DMASE_INSTRUCTION_SETS=$sets")
  fi
fi
# Whoever runs CI knows the compiler: there a warning is an error.
[[ ${CI:-} == true ]] && options+=(-DMASE_WERROR=ON)
if [[ ! -e $build/build.ninja || ${#options[@]} -gt 0 ]]; then
  first=()
  # GoogleTest is needed only for the tests; `make test` turns them on.
  [[ (! -e $build/CMakeCache.txt || ${#fresh[@]} -gt 0) && " ${options[*]} " != *MASE_TESTS* &&
    $packages == build ]] && first=(-DMASE_TESTS=OFF)
  show "ch: configuring"
  (cd "$root" && cmake "${fresh[@]}" --preset "$preset" -B "$build" "${first[@]}" "${options[@]}") \
    >"$log" 2>&1 || fail configuring
fi

# What is left, by how long what is done took; nothing before there is something to go by.
left() {  # DONE ALL
  local passed=$((SECONDS - began))
  ((passed >= 10 && $1 > 1)) || return 0
  echo ", about $(told_time $((passed * ($2 - $1) / $1))) left"
}

told_time() {  # SECONDS
  if (($1 >= 90)); then echo "$((($1 + 30) / 60)) min"; else echo "$1 s"; fi
}

# Units (cmake/units.cmake) are compiled first and take three times as long as other parts.
units=("$build"/units/*/*.cpp)
last=-1 told=0 began=$SECONDS ahead=0
ninja -C "$build" "${targets[@]}" 2>&1 | {
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      share=$((100 * done / all))
      if ((! told && all > 50)); then  # the first call
        told=1
        [[ -t 2 ]] && printf '\r\033[K' >&2
        echo "ch: building $all parts, about $(told_time $(((all * 2 + ${#units[@]} * 3) / $(nproc)))); later calls start at once" >&2
      fi
      [[ $line == */units/* ]] && ahead=$((ahead + 2))
      if [[ -t 2 ]] || ((share / 10 != last / 10)); then
        weight=$all
        ((told)) && weight=$((all + 2 * ${#units[@]}))
        show "ch: building $done of $all ($share %)$(left "$((done + told * ahead))" "$weight")"
      fi
      last=$share
    fi
  done
} || fail building
[[ -t 2 ]] && printf '\r\033[K' >&2
if [[ -n $stamp ]]; then  # as old as the sources were looked at; the launcher compares what it says
  sets=$(cached MASE_INSTRUCTION_SETS)
  echo "${sets:-all}" >"$stamp.new"
  touch -r "$stamp.started" "$stamp.new"
  mv "$stamp.new" "$stamp"
  rm "$stamp.started"
fi
exit 0
