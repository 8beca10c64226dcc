#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A study in a real PostgreSQL server, started here on loopback and stopped after: kept, continued
# without trying anything twice, and an unreachable or unknown database is one line, exit code 2.
set -euo pipefail
tools=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
[[ -x $tools/initdb ]] || { echo "skipped: PostgreSQL is not installed"; exit 77; }
as_server=()
if [[ $(id -u) == 0 ]]; then  # the server refuses to run as root
  id postgres >/dev/null 2>&1 || { echo "skipped: no user to run PostgreSQL as"; exit 77; }
  as_server=(runuser -u postgres --)
fi
scratch=$(mktemp -d)
chmod 755 "$scratch"
mkdir "$scratch/server"
[[ $(id -u) == 0 ]] && chown postgres "$scratch/server"
stop() {
  (cd / && "${as_server[@]}" "$tools/pg_ctl" -D "$scratch/server/data" -m immediate stop) >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap stop EXIT
fail() { echo "$1"; cat "$scratch/log"; exit 1; }

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cd /
"${as_server[@]}" "$tools/initdb" -D "$scratch/server/data" -A trust -U mase >/dev/null
"${as_server[@]}" "$tools/pg_ctl" -D "$scratch/server/data" -w -l "$scratch/server/log" \
  -o "-p $port -c listen_addresses=127.0.0.1 -k $scratch/server" start >/dev/null
"$tools/createdb" -h 127.0.0.1 -p "$port" -U mase studies

cd "$scratch"
export MASE_DATA=$scratch/data
"$MASE_CH" train jsc-tiny jsc-sim --sim-rows 1000 --max-epochs 1 --project tiny >log 2>&1 || fail "train"
search() {
  "$MASE_CH" search jsc-tiny jsc-sim --sim-rows 1000 --load mase_output/tiny/software/training_ckpts/best.ckpt \
    --objective accuracy,bitops --storage "postgresql://mase@127.0.0.1:$port/$1" --space "bits=$2" >log 2>&1
}
rows() { "$tools/psql" -h 127.0.0.1 -p "$port" -U mase -At -c "$1" studies; }

search studies 2..4 || fail "search"
[[ $(rows "select count(*) from trials where state = 'COMPLETE'") == 9 ]] || fail "trials"
[[ $(rows "select count(*) from trial_values") == 18 ]] || fail "values"
# 16 inputs, 5 outputs, 2 to 4 bits on either side: the largest figure by hand.
[[ $(rows "select max(value) from trial_values where objective = 1") == $((16 * 5 * 4 * 4)) ]] || fail "bitops"
search studies 2..4 || fail "continued"
[[ $(rows "select count(*), max(number) from trials") == "9|8" ]] || fail "something was tried twice"

code=0
search no_such_database 2..4 || code=$?
[[ $code == 2 && $(grep -c '^ch: ' log) == 1 ]] || fail "unknown database: exit code $code"
port=1 code=0
search studies 2..4 || code=$?
[[ $code == 2 && $(grep -c '^ch: ' log) == 1 ]] || fail "unreachable server: exit code $code"
