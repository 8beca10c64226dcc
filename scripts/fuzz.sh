#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets that `make fuzz` built, one after the other. New inputs are kept below
# build/fuzz/corpus, a finding below build/fuzz/findings; the seeds in tests/fuzz/corpus stay as
# they are.
#
#   scripts/fuzz.sh SECONDS [NAME...]     all targets by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$1
shift
names=("$@")
((${#names[@]})) || mapfile -t names < <(find build/fuzz/bin -name 'fuzz_*' -printf '%f\n' | sed s/^fuzz_// | sort)
mkdir -p build/fuzz/findings
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  echo "== $name"
  # Ten seconds for one input, or an allocation of 512 MB, is a finding too.
  "build/fuzz/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=512 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
