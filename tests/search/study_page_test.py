# SPDX-License-Identifier: Apache-2.0
# Pages of studies: one that Optuna made, in a database and in a journal, and one of ours in a storage of its own. What
# the page says is compared with what SQLite itself finds in the file.
import os
import re
import shutil
import sqlite3
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from commands import ch, check, end  # noqa: E402

SOURCE = os.environ["MASE_SOURCE"]


def found_by_sqlite(path, study):
    """Trials, complete ones, the best of the first objective, parameters."""
    rows = sqlite3.connect(path)
    key, = rows.execute("SELECT study_id FROM studies WHERE study_name = ?", (study,)).fetchone()
    total, = rows.execute("SELECT count(*) FROM trials WHERE study_id = ?", (key,)).fetchone()
    direction, = rows.execute("SELECT direction FROM study_directions WHERE study_id = ? AND objective = 0", (key,)).fetchone()
    values = [v for v, in rows.execute("SELECT v.value FROM trial_values v JOIN trials t ON t.trial_id = v.trial_id WHERE "
                                       "t.study_id = ? AND t.state = 'COMPLETE' AND v.objective = 0 AND v.value IS NOT NULL", (key,))]
    complete, = rows.execute("SELECT count(*) FROM trials WHERE study_id = ? AND state = 'COMPLETE'", (key,)).fetchone()
    names = {n for n, in rows.execute("SELECT DISTINCT p.param_name FROM trial_params p JOIN trials t ON t.trial_id = p.trial_id "
                                      "WHERE t.study_id = ? AND t.state = 'COMPLETE'", (key,))}
    return total, complete, (max if direction == "MAXIMIZE" else min)(values, default=None), names


with tempfile.TemporaryDirectory() as folder:
    golden = os.path.join(SOURCE, "tests", "golden", "search")
    shutil.copy(f"{golden}/reference.db", f"{folder}/theirs.db")
    shutil.copy(f"{golden}/reference_journal.log", f"{folder}/theirs.log")
    studies = [name for name, in sqlite3.connect(f"{folder}/theirs.db").execute("SELECT study_name FROM studies")]
    check(len(studies) > 0, "the reference has studies")
    for study in studies:
        total, complete, best, names = found_by_sqlite(f"{folder}/theirs.db", study)
        if complete == 0:
            continue
        said = ch("report", "sqlite:///theirs.db", "--study", study, "--output", "a.html", folder=folder)
        check(f"study '{study}', {total} trials" in said, "what was written", said)
        page = open(f"{folder}/a.html").read()
        check(f"{total} trials, {complete} of them complete" in page, f"trials of {study}", page[:2000])
        check(all(name in page for name in names), f"parameters of {study}: {names}")
        check(f"{best:.6g}" in page, f"the best of {study} is {best}")
        # A file's name is enough, where it has one study.
    if len(studies) > 1:
        said = ch("report", "theirs.db", folder=folder, code=2)
        check("name one with --study" in said and studies[0] in said, "several studies", said)
        said = ch("report", "theirs.db", "--study", studies[0][:-1] + "x", folder=folder, code=2)
        check("has no study" in said, "a study that is not there", said)
    said = ch("report", "journal:theirs.log", "--output", "b.html", folder=folder, code=2)
    names = re.findall(r"--study: (.*)", said)
    for study in (names[0].strip().split(", ") if names else []):
        ch("report", "journal:theirs.log", "--study", study, "--output", "b.html", folder=folder)
        check("complete" in open(f"{folder}/b.html").read(), f"the journal's {study}")

    # One of ours.
    ch("search", "jsc-tiny", "jsc-sim", "--sim-rows", "500", "--space", "bits=3,4,5", "--objective", "accuracy,bitops",
       "--storage", "sqlite:///ours.db", "--study", "mine", folder=folder)
    said = ch("report", "ours.db", folder=folder)
    total, complete, best, names = found_by_sqlite(f"{folder}/ours.db", "mine")
    page = open(f"{folder}/study.html").read()
    check(f"{total} trials, {complete} of them complete" in page and "bitops" in page and "Front" in page, "our own study", page[:2000])

    # What is not there is not made.
    said = ch("report", "sqlite:///none.db", folder=folder, code=2)
    check("no such file" in said and not os.path.exists(f"{folder}/none.db"), "a missing file", said)
    said = ch("report", "x", "--study", "mine", folder=folder, code=2)
    check("--study" in said, "a study of a folder", said)

end()
