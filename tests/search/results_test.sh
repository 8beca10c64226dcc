#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a search leaves: measured on all rows unless told otherwise, each network once and the cheapest
# first, every one of them saved, hardware figures that are those of ch estimate on the file, failed
# trials with a reason, and a study that is not mixed up with another network or other rows. No
# password is written anywhere.
source "$MASE_SOURCE/tests/support/studies.sh"
data=(jsc-sim --sim-rows 4000)
json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($2)" "$1"; }

# The network has batch norms, and hardware has none: the search folds them.
"$MASE_CH" train jsc-toy "${data[@]}" --max-epochs 3 --project net >train.log 2>&1 || fail "train"
net=mase_output/net/software/training_ckpts/best.ckpt
"$MASE_CH" search jsc-toy "${data[@]}" --load $net --space bits=6,7 --objective accuracy,area_luts,latency --n-trials 24 \
  --sampler grid --project luts >luts.log 2>&1 || fail "search for LUTs"
grep -q "Batch norms are folded first" luts.log || fail "folding is not told"
results=mase_output/luts/software/search_ckpts
[[ $(json $results/search.json 'd["rows"] == d["split_rows"]') == True ]] || fail "not all rows"
python3 - $results <<'PY' || fail "front"
import json, os, sys
results = sys.argv[1]
best = list(json.load(open(results + "/best.json")).values())
luts = [row["hardware_metrics"]["area_luts"] for row in best]
assert luts == sorted(luts), luts
assert len({json.dumps([row["value"], row["software_metrics"]]) for row in best}) == len(best), "a network twice"
for row in best:
    for kind in ("toml", "mz"):
        assert os.path.exists(f"{results}/best_{row['number']}.{kind}"), (row["number"], kind)
PY
number=$(json $results/best.json 'd["0"]["number"]')
"$MASE_CH" estimate $results/best_"$number".mz >estimate.log 2>&1 || "$MASE_CH" estimate --load $results/best_"$number".mz >estimate.log 2>&1 || fail "estimate"
luts=$(json $results/best.json 'int(round(d["0"]["hardware_metrics"]["area_luts"]))')
tr -d ',' <estimate.log | grep -Eq "(^|[^0-9.])$luts([^0-9]|$)" || fail "ch estimate has other LUTs than $luts"
delay=$(json $results/best.json '"%.2f" % d["0"]["hardware_metrics"]["latency"]')
grep -q "${delay%?}" estimate.log || fail "ch estimate has another delay than $delay"
"$MASE_CH" transform jsc-toy "${data[@]}" --load $net --config $results/best_"$number".toml --project again >again.log 2>&1 ||
  fail "the configuration does not lead to the network"

# Configurations that figure cannot measure are failed trials, and the search goes on.
cat >holes.toml <<'TOML'
[search.search_space.setup]
by = "type"
[search.search_space.seed.default.config]
name = ["NA"]
[search.search_space.seed.linear.config]
name = ["integer", "NA"]
data_in_width = [8]
data_in_frac_width = [4]
weight_width = [6]
weight_frac_width = [3]
bias_width = [8]
bias_frac_width = [4]
[search.strategy.setup]
sampler = "brute-force"
[search.strategy.metrics]
accuracy.direction = "maximize"
area_luts.direction = "minimize"
TOML
"$MASE_CH" search jsc-toy "${data[@]}" --load $net --config holes.toml --project holes >holes.log 2>&1 || fail "a hole ends the search"
study=mase_output/holes/software/search_ckpts/study.db
[[ $(query $study "select count(*) from trials where state = 'COMPLETE'") == 1 ]] || fail "what can be measured"
(($(query $study "select count(*) from trials where state = 'FAIL'") >= 1)) || fail "no failed trial"
grep -q "is not quantised" holes.log || fail "the reason is not told"

# A study belongs to a network, rows and settings.
study() {
  "$MASE_CH" search jsc-toy jsc-sim --sim-rows "$1" --load "$2" --space bits=4,8 --objective "$3" --n-trials "$4" \
    --sampler random --storage sqlite:///shared.db --study a --project-dir shared "${@:5}" >study.log 2>&1
}
study 4000 $net accuracy,bitops 4 || fail "a study"
study 4000 $net accuracy,bitops 6 || fail "a study that goes on"
"$MASE_CH" train jsc-toy "${data[@]}" --max-epochs 4 --seed 3 --project other >train.log 2>&1 || fail "train"
other=mase_output/other/software/training_ckpts/best.ckpt
refused() {  # cause, arguments
  local code=0
  study "${@:2}" || code=$?
  [[ $code == 2 && $(grep -c '^ch: ' study.log) == 1 ]] || fail "$1: exit code $code"
  grep -q "$1" study.log || fail "does not say '$1'"
}
refused "another network" 4000 $other accuracy,bitops 8
refused "other rows" 3000 $net accuracy,bitops 8
refused "other rows" 4000 $net accuracy,bitops 8 --rows 100
[[ $(query shared.db "select count(*) from trials") == 6 ]] || fail "a refused study was written to"
study 4000 $other accuracy,bitops 8 --accept-differences || fail "--accept-differences"
grep -q "another network" study.log || fail "an accepted difference is not told"

# A trial that was lost and tried again has one number everywhere.
lost() {
  "$MASE_CH" search jsc-toy "${data[@]}" --load $net --space bits=4,8 --objective accuracy,bitops --n-trials 8 --sampler random \
    --storage sqlite:///lost.db --project "$1" >lost.log 2>&1 || fail "search $1"
}
lost first
python3 - <<'PY'
import json, sqlite3
front = [row["number"] for row in json.load(open("mase_output/first/software/search_ckpts/best.json")).values()]
study = sqlite3.connect("lost.db")
for number in front:
    (trial,) = study.execute("select trial_id from trials where number = ?", (number,)).fetchone()
    study.execute("update trials set state = 'RUNNING', datetime_complete = null where trial_id = ?", (trial,))
    study.execute("delete from trial_values where trial_id = ?", (trial,))
    study.execute("insert or replace into trial_heartbeats (trial_id, heartbeat) values (?, '2020-01-01 00:00:00')", (trial,))
study.commit()
PY
lost second
python3 - <<'PY' || fail "several numbers for one trial"
import json, os, re
results = "mase_output/second/software/search_ckpts"
best = [row["number"] for row in json.load(open(results + "/best.json")).values()]
page = json.load(open(results + "/search.json"))
assert max(best) >= 8, best  # tried again under a new number
assert sorted(page["best"]) == sorted(best), (page["best"], best)
assert [row["number"] for row in page["test"]] == best
assert set(best) <= {row["number"] for row in page["trials"]}
assert {int(n) for n in re.findall(r"best_(\d+)\.mz", " ".join(os.listdir(results)))} == set(best)
PY

# Passwords.
for address in "sqlite://ev:PW@/x.db" "mysql://ev:PW@h/d" "POSTGRESQL://ev:PW@h/d" "host=h password=PW" "postgresql://ev:PW@[::1/d" \
  "postgresql://ev:PW%@127.0.0.1:1/d" "postgresql://ev:PW@127.0.0.1:1/d?sslpassword=a&password=PW"; do
  code=0
  "$MASE_CH" search jsc-toy "${data[@]}" --load $net --space bits=4,8 --objective loss --storage "$address" >word.log 2>&1 || code=$?
  [[ $code == 2 ]] || fail "$address: exit code $code"
  ! grep -q PW word.log || fail "the password of $address is shown"
done
[[ ! -e sqlite: ]] || fail "a folder named after a password"
"$MASE_CH" search jsc-toy "${data[@]}" --load $net --space bits=4,8 --objective loss --n-trials 2 --project secret \
  --set 'storage="sqlite:///s.db?password=PW"' >secret.log 2>&1 || fail "search with --set"
! grep -rq PW mase_output/secret*/run.json mase_output/secret*/software/config.toml secret.log || fail "a password in the run folder"
