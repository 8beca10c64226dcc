#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel around a libmase that a build made, and installs it into an environment:
#
#   scripts/python_wheel.sh BUILD [ENVIRONMENT]      (build/release, build/python)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$1" && pwd)
environment=${2:-$root/build/python}
tools=$root/build/python-tools
log=$root/build/python-wheel.log
mkdir -p "$root/build/wheels"
fail() {
  echo "ch: $1 failed; the end of $log:" >&2
  tail -n 20 "$log" >&2
  exit 1
}
# One wheel at a time: both scripts build in one folder, and pip gives each call places of its own.
exec 8>"$build/wheel.lock"
flock 8
"$tools/bin/pip" wheel "$root" --no-deps --no-build-isolation --disable-pip-version-check --quiet \
  --wheel-dir "$root/build/wheels" --config-settings cmake.define.MASE_PREBUILT="$build" \
  --config-settings build-dir="$build/wheel" >"$log" 2>&1 || fail "building the wheel"
[[ -x $environment/bin/python ]] || /usr/bin/python3 -m venv --system-site-packages "$environment" >>"$log" 2>&1 ||
  fail "making $environment"
wheel=$(ls -t "$root"/build/wheels/mase-*.whl | head -n 1)
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel" \
  >>"$log" 2>&1 || fail "installing the wheel"
echo "installed $(basename "$wheel"); start $environment/bin/python"
