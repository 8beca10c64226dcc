#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches what the Python package is built with (nanobind, scikit-build-core: they are on PyPI only)
# into build/python-tools, an environment of its own. Without a network, or without python3-venv, it
# says so and the package is left out: exit code 0 all the same unless --needed is given.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/python-tools
wanted=("nanobind>=3.1,<4" "scikit-build-core>=1")
needed=0
[[ ${1:-} == --needed ]] && needed=1

[[ -e $tools/complete && $tools/complete -nt ${BASH_SOURCE[0]} ]] && exit 0
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3 || true)
give_up() {
  echo "ch: $1; the Python package is left out" >&2
  exit "$needed"
}
[[ -n $python ]] || give_up "there is no python3"
rm -rf "$tools"
mkdir -p "$root/build"
"$python" -m venv "$tools" >"$root/build/python-tools.log" 2>&1 || give_up "python3-venv is not installed"
"$tools/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 "${wanted[@]}" \
  >>"$root/build/python-tools.log" 2>&1 || { rm -rf "$tools"; give_up "PyPI cannot be reached"; }
touch "$tools/complete"
