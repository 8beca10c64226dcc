#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Eight processes on one study in a real PostgreSQL server (started here on loopback, stopped after),
# four of them killed with -9 at moments that the dice say: no trial is lost, none is counted twice,
# numbers are dense, what was lost is tried again with Optuna's own attributes, and the trials are
# those of one process alone. Then the same with two processes and a killed one in SQLite, where a
# search that is started again at once takes over what the dead one had begun.
source "$MASE_SOURCE/tests/support/studies.sh"
start_server || exit 77
export OMP_NUM_THREADS=1
# Long enough for a process to be met while it trains, also where sanitizers make it slow.
epochs=150
grep -q '^MASE_SANITIZE:STRING=.' "$MASE_BUILD/CMakeCache.txt" && epochs=15
cat >space.toml <<TOML
seed = 3
[search.search_space.train]
learning_rate = {low = 1e-4, high = 1e-1, log = true}
batch_size = [32, 64, 128]
[search.strategy.sw_runner.basic_train]
max_epochs = $epochs
[search.strategy.setup]
sampler = "tpe"
n_trials = 40
[search.strategy.metrics]
loss.direction = "minimize"
TOML
# Not a function: kill has to meet the program, not a shell around it.
search=("$MASE_CH" search jsc-tiny jsc-sim --sim-rows 4000 --config space.toml --heartbeat 1)
server=$server/studies
"${search[@]}" --storage "$server" --study alone --project alone >alone.log 2>&1 || fail "alone"

RANDOM=7
workers=()
for i in $(seq 8); do
  "${search[@]}" --storage "$server" --study together --worker >"worker$i.log" 2>&1 &
  workers+=($!)
done
for _ in $(seq 600); do  # until the work has begun
  sleep 0.05
  (($(rows "select count(*) from trials where state = 'COMPLETE'") > 43)) && break
done
for i in 0 2 4 6; do
  sleep "0.$((RANDOM % 10))"
  kill -9 "${workers[i]}" 2>/dev/null || true
done
for i in 1 3 5 7; do wait "${workers[i]}" || fail "worker $((i + 1)) ended with $?"; done

of="study_id = (select study_id from studies where study_name = 'together')"
[[ $(rows "select count(*) from trials where $of and state = 'COMPLETE'") == 40 ]] || fail "trials are lost, or there are more"
[[ $(rows "select count(*) from trials where $of and state not in ('COMPLETE', 'FAIL')") == 0 ]] || fail "a trial is left open"
[[ $(rows "select count(*) = max(number) + 1 and count(distinct number) = count(*) from trials where $of") == t ]] || fail "numbers"
lost=$(rows "select count(*) from trials where $of and state = 'FAIL'")
retried=$(rows "select count(*) from trials join trial_system_attributes using (trial_id) where $of and key = 'retry_history'")
[[ $lost == "$retried" ]] || fail "$lost trials were lost and $retried tried again"
((lost > 0)) || echo "no trial was running in a process that was killed"
set_of() {
  rows "select string_agg(v::text, ' ' order by v::text) from (select (array_agg(param_value order by param_name), max(value)) v
        from trials join trial_params using (trial_id) join trial_values using (trial_id)
        where state = 'COMPLETE' and study_id = (select study_id from studies where study_name = '$1') group by trial_id) x"
}
[[ $(set_of alone) == "$(set_of together)" ]] || fail "one seed gave two sets of trials"

# A search that ends at once finds nothing left to do, and writes the results.
"${search[@]}" --storage "$server" --study together --project results >results.log 2>&1 || fail "results"
[[ -s mase_output/results/software/search_ckpts/best.json ]] || fail "no results"

# SQLite: killed, and started again at once.
study=sqlite:///$scratch/one.db
"${search[@]}" --storage "$study" --project first >first.log 2>&1 &
first=$!
count() { query one.db "$1"; }
for _ in $(seq 600); do
  sleep 0.05
  [[ -s one.db ]] && (($(count "select count(*) from trials where state = 'COMPLETE'" 2>/dev/null || echo 0) >= 3)) && break
done
kill -9 "$first" 2>/dev/null || true
wait "$first" 2>/dev/null || true
"${search[@]}" --storage "$study" --worker >second.log 2>&1 &
second=$!
"${search[@]}" --storage "$study" --project third >third.log 2>&1 || fail "SQLite"
wait "$second" || fail "SQLite's worker"
[[ $(count "select count(*) from trials where state = 'COMPLETE'") == 40 ]] || fail "SQLite: trials"
[[ $(count "select count(*) from trials where state in ('RUNNING', 'WAITING')") == 0 ]] || fail "SQLite: a trial is left open"
[[ $(count "select count(*) = max(number) + 1 and count(distinct number) = count(*) from trials") == 1 ]] || fail "SQLite: numbers"
echo "$lost trials of killed processes were taken over"
