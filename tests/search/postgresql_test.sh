#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A study in a real PostgreSQL server, started here on loopback and stopped after: kept, continued
# without trying anything twice, and an unreachable or unknown database is one line, exit code 2.
source "$MASE_SOURCE/tests/support/studies.sh"
start_server || exit 77
"$MASE_CH" train jsc-tiny jsc-sim --sim-rows 1000 --max-epochs 1 --project tiny >log.log 2>&1 || fail "train"
search() {
  "$MASE_CH" search jsc-tiny jsc-sim --sim-rows 1000 --load mase_output/tiny/software/training_ckpts/best.ckpt \
    --objective accuracy,bitops --storage "$server/$1" --space "bits=$2" >log.log 2>&1
}
search studies 2..4 || fail "search"
[[ $(rows "select count(*) from trials where state = 'COMPLETE'") == 9 ]] || fail "trials"
[[ $(rows "select count(*) from trial_values") == 18 ]] || fail "values"
# 16 inputs, 5 outputs, 2 to 4 bits on either side: the largest figure by hand.
[[ $(rows "select max(value) from trial_values where objective = 1") == $((16 * 5 * 4 * 4)) ]] || fail "bitops"
search studies 2..4 || fail "continued"
[[ $(rows "select count(*), max(number) from trials") == "9|8" ]] || fail "something was tried twice"

# What the storages are held to without a server.
for test in TrialsComeBackAsTheyWere WhatAStudyIsMeasuredWithIsSaidOnce WhatWasLostIsTriedAgainAndALateResultIsKept AStudyGoesOnWhereItWas \
  SeveralProcessesWithBriefTrialsMakeTheTrialsOfOne; do
  "$tools/createdb" -h 127.0.0.1 -p "$port" -U mase "test_${test,,}" || fail "createdb"
  MASE_STUDIES=$server/test_${test,,} "$MASE_BUILD/tests/test_search" --gtest_filter="SearchStorage.$test" \
    >log.log 2>&1 || fail "$test"
  grep -q "PASSED  . 1 test" log.log || fail "there is no test $test"
done

code=0
search no_such_database 2..4 || code=$?
[[ $code == 2 && $(grep -c '^ch: ' log.log) == 1 ]] || fail "unknown database: exit code $code"
# A user whose password is asked for: the right one, a wrong one, which is never shown, and none.
rows "create role guarded login password 'right' superuser" >log.log 2>&1 || fail "role"
lines=$(printf 'host all guarded all scram-sha-256\n%s' "$(cat "$scratch/server/data/pg_hba.conf")")
echo "$lines" >"$scratch/server/data/pg_hba.conf"
rows "select pg_reload_conf()" >log.log
sleep 1
own=$server
server=${own/mase@/guarded:right@}
search studies 2..4 || fail "the right password"
server=${own/mase@/guarded@}
PGPASSWORD=right search studies 2..4 || fail "the password of the environment"
printf '*:*:*:guarded:right\n' >pass && chmod 600 pass
PGPASSFILE=$PWD/pass search studies 2..4 || fail "the password of a file"
for password in guarded:unheard-of@ guarded@; do
  server=${own/mase@/$password} code=0
  search studies 2..4 || code=$?
  [[ $code == 2 && $(grep -c '^ch: ' log.log) == 1 ]] || fail "wrong password: exit code $code"
  grep -q "password" log.log || fail "does not speak of the password"
  ! grep -q "unheard-of" log.log || fail "shows a password"
done
! grep -rqs "guarded:right" mase_output || fail "keeps a password"
server=postgresql://mase@127.0.0.1:1 code=0
search studies 2..4 || code=$?
[[ $code == 2 && $(grep -c '^ch: ' log.log) == 1 ]] || fail "unreachable server: exit code $code"
