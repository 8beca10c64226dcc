#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Storages that cannot be used: one line, exit code 2, no run folder before anything was measured,
# and what was there stays as it was.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export MASE_DATA=$scratch/data
search() {
  "$MASE_CH" search jsc-tiny jsc-sim --sim-rows 500 --rows 50 --project-dir "$1" --space "bits=${4:-2,4}" --storage "$2" \
    --objective "$3" >log 2>&1
}
fail() { echo "$1"; cat log; exit 1; }
refused() {  # what, folder, storage, objectives, the cause it must name, widths
  local code=0
  search "$2" "$3" "$4" "${6:-2,4}" || code=$?
  [[ $code == 2 ]] || fail "$1: exit code $code"
  [[ $(grep -c '^ch: ' log) == 1 ]] || fail "$1: not one line"
  grep -q "$5" log || fail "$1: does not say '$5'"
}

# A file that is no database, and one that was damaged in the middle.
head -c 20000 /dev/urandom >noise.db
before=$(sha256sum noise.db)
refused "noise" none sqlite:///noise.db loss "not a database"
[[ $(sha256sum noise.db) == "$before" ]] || fail "a file that is no database was changed"
[[ ! -e none ]] || fail "a run folder was made for nothing"
search whole sqlite:///study.db accuracy,bitops || fail "search"
python3 - <<'PY'
data = bytearray(open("study.db", "rb").read())
for at in range(4096, len(data), 97):
    data[at] ^= 0xFF
open("broken.db", "wb").write(data)
PY
refused "damaged" none sqlite:///broken.db accuracy,bitops "broken.db"

# A study of another shape.
refused "directions" other sqlite:///study.db loss "directions"
trials="import sqlite3; print(sqlite3.connect('study.db').execute('select count(*) from trials').fetchone()[0])"
[[ $(python3 -c "$trials") == 4 ]] || fail "the study of other directions was written to"

refused "values" other "sqlite:///study.db" accuracy,bitops "not in this search space" 1,3
[[ $(python3 -c "$trials") == 4 ]] || fail "the study of other values was written to"

# A journal that holds something else.
echo "this is no journal" >words.log
refused "journal" none journal:words.log loss "words.log:1"

# A place that cannot be written, and a disk that is full.
refused "no folder" none sqlite:////proc/no/such.db loss "/proc/no"
code=0
(ulimit -f 16 && search full sqlite:///full.db loss) || code=$?
[[ $code == 2 && $(grep -c '^ch: ' log) == 1 ]] || fail "full disk: exit code $code"
