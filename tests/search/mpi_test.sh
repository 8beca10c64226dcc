#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three processes of mpirun on one study: dense numbers, nothing tried twice, results written once,
# and the trials of one process with the same window. A mistake is one line, exit code 2.
set -euo pipefail
command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed"; exit 77; }
export ASAN_OPTIONS=detect_leaks=0  # OpenMPI keeps memory to its end by design
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export MASE_DATA=$scratch/data OMPI_MCA_btl_vader_single_copy_mechanism=none
fail() { echo "$1"; tail -n 20 "$scratch"/*.log; exit 1; }
"$MASE_CH" train jsc-tiny jsc-sim --sim-rows 1000 --max-epochs 1 --project tiny >train.log 2>&1 || fail "train"
search=("$MASE_CH" search jsc-tiny jsc-sim --sim-rows 1000 --load mase_output/tiny/software/training_ckpts/best.ckpt
  --space bits=2..9 --objective accuracy,bitops --sampler tpe --n-trials 30)
together=(mpirun --allow-run-as-root --oversubscribe -n 3)
timeout 120 "${together[@]}" "${search[@]}" --project together >together.log 2>&1 || fail "mpirun: $?"
"${search[@]}" --project alone --window 16 >alone.log 2>&1 || fail "alone"
points() {
  python3 - "mase_output/$1/software/search_ckpts/study.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
numbers = [row[0] for row in db.execute("select number from trials order by number")]
assert numbers == list(range(30)), numbers
assert not db.execute("select count(*) from trials where state != 'COMPLETE'").fetchone()[0]
trials = {}
for trial, name, value in db.execute("select trial_id, param_name, param_value from trial_params"):
    trials.setdefault(trial, {})[name] = value
points = sorted(tuple(sorted(one.items())) for one in trials.values())
assert len(set(points)) == 30
print(points)
PY
}
[[ $(points together) == "$(points alone)" ]] || fail "the processes tried something else"
[[ $(find mase_output -name best.json | wc -l) == 2 ]] || fail "results"
code=0
timeout 60 "${together[@]}" "${search[@]}" --sampler no_such_sampler >wrong.log 2>&1 || code=$?
[[ $code == 2 && $(grep -c '^ch: ' wrong.log) -ge 1 ]] || fail "a mistake: exit code $code"
