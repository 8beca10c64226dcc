#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page of a search has its figures and leads to each best configuration; --plot draws in the
# terminal; ch search compare puts samplers side by side and finds with all of them what an
# exhaustive search finds.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export MASE_DATA=$scratch/data
fail() { echo "$1"; tail -n 40 "$scratch"/*.log; exit 1; }
common=(jsc-toy jsc-sim --sim-rows 1000 --rows 100)

"$MASE_CH" search "${common[@]}" --space bits=2,4 --objective accuracy,bitops --plot --ascii --project one >one.log 2>&1 || fail "search"
grep -q "best accuracy so far" one.log || fail "--plot draws nothing"
"$MASE_CH" report mase_output/one >report.log 2>&1 || fail "report"
page=mase_output/one/report.html
for part in progress front widths trials importance sensitivity best; do
  grep -q "id=\"$part\"" $page || fail "the page has no part '$part'"
done
first=$(python3 -c 'import json; print(json.load(open("mase_output/one/software/search_ckpts/best.json"))["0"]["number"])')
grep -q "id=\"trial-$first\"" $page || fail "the best trial is not on the page"
grep -q "href=\"#trial-$first\"" $page || fail "no way from the front to the best trial"
grep -q "Measured on 80 validation rows" $page || fail "the page does not say what it was measured on"

"$MASE_CH" search compare "${common[@]}" --space bits=2,4 --objective loss --samplers brute-force,random,tpe --seeds 3 \
  --n-trials 64 --project two >two.log 2>&1 || fail "compare"
for sampler in brute-force random tpe; do
  # 64 trials are the whole space: every seed ends with the best.
  grep -Eq "\| +$sampler .*\| 3/3 " two.log || fail "$sampler did not find the best"
done
"$MASE_CH" report mase_output/two >>report.log 2>&1 || fail "report of a comparison"
grep -q 'id="samplers"' mase_output/two/report.html || fail "no figure of the samplers"
code=0
"$MASE_CH" search "${common[@]}" --space bits=2,4 --objective loss --seeds 3 >three.log 2>&1 || code=$?
[[ $code == 2 ]] || fail "--seeds without compare: exit code $code"
