#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A search whose results cannot be written, after all trials are measured, is told and kept as one
# that failed: no run.json says "running" for a process that is gone.
source "$MASE_SOURCE/tests/support/studies.sh"

cat >space.toml <<'TOML'
model = "jsc-toy"
seed = 5
[search.search_space.train]
learning_rate = {low = 1e-4, high = 1e-1, log = true}
[search.strategy.sw_runner.basic_train]
max_epochs = 100
[search.strategy.setup]
sampler = "tpe"
n_trials = 8
[search.strategy.metrics]
loss.direction = "minimize"
TOML
"$MASE_CH" search jsc-toy jsc-sim --sim-rows 4000 --config space.toml --project-dir out --project run >search.log 2>&1 &
child=$!
results=out/run/software/search_ckpts
for _ in $(seq 6000); do  # the file's place is taken while the first trials train
  [[ -d $results ]] && mkdir "$results/best.json" && break
  sleep 0.01
done
code=0
wait "$child" || code=$?
[[ $code != 0 ]] || fail "exit code 0 though best.json could not be written"
[[ $(query "$results/study.db" "select count(*) from trials where state = 'COMPLETE'") == 8 ]] || fail "trials"
grep -q best.json search.log || fail "the file is not named"
grep -q '"status": "failed"' out/run/run.json || fail "run.json: $(grep status out/run/run.json)"
