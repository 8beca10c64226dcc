# SPDX-License-Identifier: Apache-2.0
# For tests of studies, to be sourced: a scratch folder to work in, questions to an SQLite file, and a
# real PostgreSQL server on loopback. Folder and server are gone at the end.
set -euo pipefail
scratch=$(mktemp -d)
chmod 755 "$scratch"
tools=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1 || true)
as_server=()

clean_up() {
  if [[ -d $scratch/server ]]; then
    (cd / && "${as_server[@]}" "$tools/pg_ctl" -D "$scratch/server/data" -m immediate stop) >/dev/null 2>&1 || true
  fi
  rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch"
export MASE_DATA=$scratch/data

fail() { echo "$1"; tail -n 20 "$scratch"/*.log; exit 1; }

query() {  # file, SQL: the first column of all rows
  python3 - "$1" "$2" <<'PY'
import sqlite3, sys
print(*[row[0] for row in sqlite3.connect(sys.argv[1], timeout=30).execute(sys.argv[2])])
PY
}

# Sets $port and $server, the address without a database; false, with a word, where it cannot.
start_server() {
  [[ -x $tools/initdb ]] || { echo "skipped: PostgreSQL is not installed"; return 1; }
  if [[ $(id -u) == 0 ]]; then  # the server refuses to run as root
    id postgres >/dev/null 2>&1 || { echo "skipped: no user to run PostgreSQL as"; return 1; }
    as_server=(runuser -u postgres --)
  fi
  mkdir "$scratch/server"
  [[ $(id -u) != 0 ]] || chown postgres "$scratch/server"
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  server=postgresql://mase@127.0.0.1:$port
  (cd / && "${as_server[@]}" "$tools/initdb" -D "$scratch/server/data" -A trust -U mase >/dev/null) || fail "initdb"
  (cd / && "${as_server[@]}" "$tools/pg_ctl" -D "$scratch/server/data" -w -l "$scratch/server/log" \
    -o "-p $port -c listen_addresses=127.0.0.1 -k $scratch/server" start >/dev/null) || fail "the server does not start"
  "$tools/createdb" -h 127.0.0.1 -p "$port" -U mase studies || fail "createdb"
}
rows() { "$tools/psql" -h 127.0.0.1 -p "$port" -U mase -At -c "$1" studies; }
