#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of scripts/packages.txt that serve the given purposes and are missing: as
# root, or through sudo. Without either it prints the line to type and stops.
#
#   scripts/install_packages.sh [--log FILE] PURPOSE...
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log=/dev/null
if [[ ${1:-} == --log ]]; then
  log=$2
  shift 2
fi
command -v dpkg-query >/dev/null || exit 0  # not Debian: the compiler will say what is missing

wanted=()
while read -r purpose package _; do
  [[ -z $purpose || $purpose == \#* ]] && continue
  for chosen in "$@"; do
    [[ $purpose == "$chosen" ]] && wanted+=("$package")
  done
done <"$root/scripts/packages.txt"
((${#wanted[@]})) || exit 0

declare -A installed=()
while read -r name status; do
  [[ $status == installed ]] && installed[${name%%:*}]=1
done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for package in "${wanted[@]}"; do
  [[ -n ${installed[$package]:-} ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

line="apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if [[ $(id -u) != 0 ]]; then
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
    as_root=(sudo)
  else
    echo "ch: Debian packages are missing and this is not root. Type:" >&2
    echo "    sudo $line" >&2
    exit 1
  fi
fi
echo "ch: installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $line; } \
  >>"$log" 2>&1; then
  echo "ch: installing packages failed; type: ${as_root[*]} apt-get update && ${as_root[*]} $line" >&2
  [[ $log != /dev/null ]] && tail -n 15 "$log" >&2
  exit 1
fi
