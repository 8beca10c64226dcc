#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every kind of record is in ch --info, in completion and on a page of docs/reference, which is current.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$1"; exit 1; }
"$MASE_CH" reference --output "$scratch/reference"
diff -r "$MASE_SOURCE/docs/reference" "$scratch/reference" || fail "docs/reference is not current: make reference"
"$MASE_CH" completion bash >"$scratch/completion"
kinds=$("$MASE_CH" --info nonsense 2>&1 | sed -n 's/.*known: //p' | tr -d ,) || true
[[ -n $kinds ]] || fail "no kinds"
for kind in sampler pruner figure space storage crossover importance style importer table normalizer decoder $kinds; do
  [[ $kind == all ]] && continue
  "$MASE_CH" --info "$kind" >"$scratch/info" || fail "--info $kind"
  [[ $(wc -l <"$scratch/info") -gt 3 ]] || fail "--info $kind is empty"
  [[ -s $scratch/reference/$kind.md ]] || fail "no page of $kind"
  grep -qw -- "$kind" "$scratch/completion" || fail "completion does not know $kind"
done
# Options stand there with their defaults, which no other document has to repeat.
grep -q 'n_startup_trials' "$scratch/reference/sampler.md" || fail "options of samplers"
"$MASE_CH" --info sampler >"$scratch/info"
grep -q 'n_startup_trials = 10' "$scratch/info" || fail "defaults of samplers"
