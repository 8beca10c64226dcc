#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C in the middle of a search that trains its networks: exit code 130, everything that was
# measured is kept, and the same command with the study's storage goes on: numbers are dense, the
# trial that was cut off is run again, and the trials are those of a search that was never stopped.
source "$MASE_SOURCE/tests/support/studies.sh"
set -m  # jobs are process groups

cat >space.toml <<'TOML'
model = "jsc-toy"
seed = 5
[search.search_space.train]
learning_rate = {low = 1e-4, high = 1e-1, log = true}
batch_size = [64, 128, 256]
[search.strategy.sw_runner.basic_train]
max_epochs = 300
[search.strategy.setup]
sampler = "tpe"
n_trials = 8
[search.strategy.metrics]
loss.direction = "minimize"
TOML
search() {
  "$MASE_CH" search jsc-toy jsc-sim --sim-rows 4000 --config space.toml --project-dir "$1" --project run "${@:2}"
}
search whole >whole.log 2>&1 || fail "search"
search cut >cut.log 2>&1 &
child=$!
study=cut/run/software/search_ckpts/study.db
for _ in $(seq 600); do
  sleep 0.05
  [[ -s $study ]] && (($(query "$study" "select count(*) from trials where state = 'COMPLETE'" 2>/dev/null || echo 0) >= 2)) && break
done
kill -INT -- "-$child"  # to all of the job, as a terminal does
code=0
wait "$child" || code=$?
if [[ $code == 0 ]]; then
  echo "skipped: the search was over before it was stopped"
  exit 77
fi
[[ $code == 130 ]] || fail "exit code $code after Ctrl-C"
grep -q '"status": "interrupted"' cut/run/run.json || fail "run.json: $(grep status cut/run/run.json)"
[[ -s cut/run/software/search_ckpts/log.json ]] || fail "no log.json"
done_before=$(query "$study" "select count(*) from trials where state = 'COMPLETE'")
((done_before >= 2 && done_before < 8)) || fail "$done_before trials were kept"
[[ $(query "$study" "select count(*) from trials where state = 'RUNNING'") == 0 ]] || fail "a trial is left running"
search on --storage "sqlite:///$PWD/$study" >on.log 2>&1 || fail "gone on with"
[[ $(query "$study" "select count(*) from trials where state = 'COMPLETE'") == 8 ]] || fail "trials"
[[ $(query "$study" "select number from trials order by number") == "$(seq -s ' ' 0 7)" ]] || fail "numbers"
values="select value from trial_values join trials using (trial_id) order by number"
[[ $(query "$study" "$values") == "$(query whole/run/software/search_ckpts/study.db "$values")" ]] ||
  fail "other trials than without the interruption"
