#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets that `make fuzz` built, one after the other. New inputs are kept below
# build/fuzz/corpus, a finding below build/fuzz/findings; the seeds in tests/fuzz/corpus stay as
# they are. A target that covers less than the floor its source names has lost its parser: an error.
#
#   scripts/fuzz.sh SECONDS [NAME...]     all targets by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$1
shift
names=("$@")
((${#names[@]})) || mapfile -t names < <(find build/fuzz/bin -name 'fuzz_*' -printf '%f\n' | sed s/^fuzz_// | sort)
mkdir -p build/fuzz/findings
failed=0
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  log=build/fuzz/$name.log
  # Ten seconds for one input, or an allocation of 512 MB, is a finding too.
  if ! "build/fuzz/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=512 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "$name: a finding; see $log" >&2
    failed=1
    continue
  fi
  coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  floor=$(sed -n 's/.*coverage floor: \([0-9]*\).*/\1/p' "tests/fuzz/${name}_fuzz.cpp")
  runs=$(sed -n 's/stat::number_of_executed_units: *//p' "$log")
  printf '%-12s %10s inputs, coverage %5s (floor %s); %s\n' "$name" "$runs" "${coverage:-0}" \
    "$floor" "$(grep -m1 'seeds are read' "$log")"
  if ((${coverage:-0} < floor)); then
    echo "$name: covers less than its floor" >&2
    failed=1
  fi
done
exit $failed
