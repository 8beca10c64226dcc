#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Optuna and ch search on one study at the same time, in SQLite and in PostgreSQL: no trial is lost,
# none is counted twice, numbers are dense and every trial is whole. Then optuna-dashboard serves the
# study, with its objectives and constraints. Needs Optuna (and optuna-dashboard, psycopg2) in a
# virtual environment beside the build folder (build/venv) or in the system's Python.
source "$MASE_SOURCE/tests/support/studies.sh"
python=
for one in "$(dirname "$MASE_BUILD")/venv/bin/python" python3; do
  if "$one" -c "import optuna" 2>/dev/null; then python=$one && break; fi
done
[[ $python ]] || { echo "skipped: Optuna is not installed (scripts/optuna_environment.sh)"; exit 77; }

cat >space.toml <<'TOML'
seed = 3
[search.search_space.train]
learning_rate = {low = 1e-4, high = 1e-1, log = true}
batch_size = [32, 64, 128]
[search.strategy.sw_runner.basic_train]
max_epochs = 40
[search.strategy.setup]
sampler = "tpe"
[search.strategy.metrics]
loss.direction = "minimize"
parameters.upper_bound = 1000
TOML
cat >optuna_side.py <<'PY'
import sys, warnings
import optuna
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
address, what, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
study = optuna.load_study(study_name="both", storage=address)
if what == "work":
    distributions = study.trials[0].distributions
    open("begun", "w").close()
    for _ in range(count):
        trial = study.ask(distributions)
        trial.set_user_attr("by", "optuna")
        study.tell(trial, 2.0 + trial.number)
    sys.exit()
trials = study.trials
assert [trial.number for trial in trials] == list(range(len(trials))), "numbers"
assert len(trials) >= count, f"{len(trials)} trials"
theirs = [trial for trial in trials if trial.user_attrs.get("by") == "optuna"]
ours = [trial for trial in trials if "software_metrics" in trial.user_attrs]
assert len(theirs) == 20 and len(theirs) + len(ours) == len(trials), (len(theirs), len(ours), len(trials))
for trial in trials:
    assert trial.state == optuna.trial.TrialState.COMPLETE, trial
    assert set(trial.params) == {"train/learning_rate", "train/batch_size"}, trial
assert all(trial.value == 2.0 + trial.number for trial in theirs)
assert all(trial.system_attrs["constraints"] == [85 + 32 - 1000] for trial in ours), ours[0].system_attrs
assert len({tuple(trial.params.items()) for trial in ours}) == len(ours), "tried twice"
mixed = min(t.number for t in theirs) < max(t.number for t in ours) and max(t.number for t in theirs) > 2
print(f"{len(ours)} trials of ch search and {len(theirs)} of Optuna" + ("" if mixed else ", one after the other"))
PY
search() {
  "$MASE_CH" search jsc-tiny jsc-sim --sim-rows 2000 --config space.toml --storage "$1" --study both --n-trials "$2" >>search.log 2>&1
}
together() {
  rm -f begun
  search "$1" 3 || fail "begun"
  "$python" optuna_side.py "$1" work 20 >optuna.log 2>&1 &
  local other=$!
  for _ in $(seq 600); do [[ ! -e begun ]] || break; sleep 0.05; done
  search "$1" 60 || fail "$1: ch search"
  wait "$other" || fail "$1: Optuna"
  "$python" optuna_side.py "$1" check 60 2>check.log || fail "$1"
}
together "sqlite:///$scratch/both.db"
if ! "$python" -c "import psycopg2" 2>/dev/null; then
  echo "without PostgreSQL: psycopg2 is not installed"
elif start_server; then
  together "${server/postgresql:/postgresql+psycopg2:}/studies"
fi

dashboard=$(dirname "$python")/optuna-dashboard
[[ -x $dashboard ]] || { echo "without the dashboard: optuna-dashboard is not installed"; exit 0; }
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$dashboard" "sqlite:///$scratch/both.db" --host 127.0.0.1 --port "$port" >dashboard.log 2>&1 &
dashboard=$!
"$python" - "$port" <<'PY' || { kill "$dashboard"; fail "dashboard"; }
import json, sys, time, urllib.request
def get(path):
    for _ in range(100):
        try:
            return json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/api/{path}", timeout=20))
        except OSError:
            time.sleep(0.3)
    raise SystemExit("the dashboard does not answer")
(study,) = get("studies")["study_summaries"]
assert (study["study_name"], study["directions"]) == ("both", ["minimize"]), study
shown = get(f"studies/{study['study_id']}?after=0")
assert shown["objective_names"] == ["loss"], shown["objective_names"]
assert len(shown["trials"]) >= 60 and all(t["state"] == "Complete" for t in shown["trials"])
limited = [t["constraints"] for t in shown["trials"] if t["constraints"]]
assert len(limited) == len(shown["trials"]) - 20 and limited[0] == [-883.0], limited[:1]
print(f"the dashboard shows {len(shown['trials'])} trials, {len(limited)} of them with constraints")
PY
kill "$dashboard"
