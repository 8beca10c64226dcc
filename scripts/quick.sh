#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The inner loop: builds and runs the tests of the folders that changed since a commit (default: main).
#   scripts/quick.sh [COMMIT]
set -eu
cd "$(dirname "$0")/.."
since=$(git merge-base HEAD "${1:-main}")
folders=$({ git diff --name-only "$since"; git ls-files -o --exclude-standard; } |
  sed -nE 's#^(src/mase|tests)/([a-z_]+)/.*#\2#p' | sort -u)
targets="" names=""
for folder in $folders; do
  tests=$(find "tests/$folder" -name '*_test.*' ! -name '*_long_test.*' 2>/dev/null | sort)
  [ -n "$tests" ] || continue
  names="$names${names:+|}$folder"
  case $tests in *.cpp*) targets="$targets test_$folder" ;; esac
done
if [ -z "$names" ]; then
  echo "nothing that has tests changed since ${1:-main}"
  exit 0
fi
echo "tests of: $(echo "$names" | tr '|' ' ')"
# shellcheck disable=SC2086
scripts/build.sh --packages "build test" -DMASE_TESTS=ON -DMASE_INSTRUCTION_SETS=all ch $targets
ctest --test-dir build/release -R "^($names)/" --output-on-failure -j "$(nproc)"
