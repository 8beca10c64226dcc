#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ch sweep as a user meets it: a small grid, finished runs kept, a failure survived, Ctrl-C survived.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "FAILED: $1"; shift; for file in "$@"; do echo "--- $file"; cat "$file"; done; exit 1; }
common=(train jsc-tiny jsc-sim --sim-rows 400 --max-epochs 1)

"$MASE_CH" sweep "${common[@]}" --vary batch_size=64,128 --seeds 2 > out 2> err || fail "a sweep" out err
grep -q '^4 runs in mase_output/sweep_train_jsc-tiny_jsc-sim' out || fail "the first line" out
[ "$(grep -c val_acc out)" -ge 5 ] || fail "a line per run and the table" out
grep -q '±' out || fail "means and deviations" out
sweep=mase_output/sweep_train_jsc-tiny_jsc-sim
[ "$(wc -l < $sweep/results.csv)" = 5 ] || fail "results.csv" $sweep/results.csv
grep -q 'id="run-table"' $sweep/comparison.html || fail "comparison.html"
[ "$(ls $sweep/runs | wc -l)" = 4 ] || fail "four run folders"

stamp=$(stat -c %Y.%i "$sweep/runs/batch_size=64,seed=0/run.json")
"$MASE_CH" sweep "${common[@]}" --vary batch_size=64,128,256 --seeds 2 > out 2> err || fail "an extended sweep" out err
grep -q '(4 of them done before)' out || fail "finished runs are not run again" out
[ "$stamp" = "$(stat -c %Y.%i "$sweep/runs/batch_size=64,seed=0/run.json")" ] || fail "a finished run was touched"

# A run that fails is one row; the others go on.
"$MASE_CH" sweep "${common[@]}" --vary val_split=0.2,nonsense --project bad > out 2> err
[ $? = 1 ] || fail "exit code 1 after a failure" out err
grep -q 'failed' out || fail "the failure is named" out
grep -q 'failed' mase_output/bad/results.csv || fail "the failure is in results.csv"
[ -f mase_output/bad/comparison.html ] || fail "a page of what finished"

# Mistakes are one line and exit code 2, before anything runs.
for words in "--vary batch_sise=1" "--vary batch_size=x" "--vary training_optimizer=adan" "--vary batch_size" "" "--max-epoch 1 --seeds 2"; do
  # shellcheck disable=SC2086
  "$MASE_CH" sweep train jsc-tiny jsc-sim $words > out 2> err
  [ $? = 2 ] || fail "exit code 2 for '$words'" out err
  [ "$(wc -l < err)" = 1 ] || fail "one line for '$words'" err
done
"$MASE_CH" sweep train jsc-tiny jsc-sim --vary batch_sise=1 2> err
grep -q batch_size err || fail "the nearest option" err

# Ctrl-C: children stop too, and the same command goes on.
long=(sweep train jsc-tiny jsc-sim --sim-rows 2000 --max-epochs 100000 --vary batch_size=16,32 --project long --jobs 1)
"$MASE_CH" "${long[@]}" > out 2> err &
pid=$!
for _ in $(seq 200); do [ -s mase_output/long/runs/batch_size=16/software/metrics.csv ] && break; sleep 0.05; done
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "exit code 130 after Ctrl-C" out err
grep -q 'goes on' out || fail "what to do next" out
pgrep -f -- "--project-dir=mase_output/long/runs" > /dev/null && fail "a child outlived the sweep"
grep -q '"status": "finished"' mase_output/long/sweep.json && fail "an interrupted run counts as finished" mase_output/long/sweep.json
echo ok
