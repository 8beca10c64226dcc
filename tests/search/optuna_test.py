# SPDX-License-Identifier: Apache-2.0
# Studies of ch search are opened and continued by Optuna, and Optuna's by ch search, in SQLite and in
# a journal. Needs Optuna: in a virtual environment beside the build folder (build/venv) or in the
# system's Python; without it the test is skipped.
import os
import random
import subprocess
import sys
import tempfile

SCRIPT = """
import sys, warnings
import optuna
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
address, add = sys.argv[1], int(sys.argv[2])
if address.startswith("journal:"):
    backend = optuna.storages.journal.JournalFileBackend(
        address[8:], lock_obj=optuna.storages.journal.JournalFileOpenLock(address[8:]))
    storage = optuna.storages.JournalStorage(backend)
else:
    storage = address
study = optuna.load_study(study_name="lab", storage=storage)
assert study.metric_names == ["accuracy", "average_bitwidth"], study.metric_names
distributions = study.trials[0].distributions
for _ in range(add):
    trial = study.ask(distributions)
    study.tell(trial, [0.5, 1.0])
assert [trial.number for trial in study.trials] == list(range(len(study.trials)))
assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)
for trial in study.trials:
    for name, value in trial.params.items():
        assert value in distributions[name].choices
print(len(study.trials), len(study.best_trials))
"""


def python_with_optuna(build):
    for python in (os.path.join(os.path.dirname(build), "venv", "bin", "python"), sys.executable):
        if os.path.exists(python) and not subprocess.run([python, "-c", "import optuna"], capture_output=True).returncode:
            return python
    print("skipped: Optuna is not installed (scripts/optuna_environment.sh)")
    sys.exit(77)


def main():
    source, ch = os.environ["MASE_SOURCE"], os.environ["MASE_CH"]
    python = python_with_optuna(os.environ["MASE_BUILD"])
    with tempfile.TemporaryDirectory() as folder:
        dice = random.Random(1)
        with open(folder + "/table.csv", "w") as out:
            out.write(",".join([f"f{i}" for i in range(16)] + ["kind"]) + "\n")
            for _ in range(300):
                out.write(",".join([f"{dice.gauss(0, 1):.4f}" for _ in range(16)] + [f"c{dice.randrange(5)}"]) + "\n")

        def search(address, trials):
            done = subprocess.run([ch, "search", "jsc-tiny", "table.csv", "--target", "kind", "--config",
                                   source + "/configs/examples/search_jsc_tiny.toml", "--storage", address, "--study",
                                   "lab", "--sampler", "tpe", "--n-trials", str(trials)],
                                  cwd=folder, text=True, capture_output=True, env=dict(os.environ, MASE_DATA=folder))
            assert done.returncode == 0, done.stderr + done.stdout

        def optuna(address, add):
            done = subprocess.run([python, "-c", SCRIPT, address, str(add)], cwd=folder, text=True, capture_output=True)
            assert done.returncode == 0, done.stderr
            return int(done.stdout.split()[0])

        for address in (f"sqlite:///{folder}/study.db", f"journal:{folder}/study.log"):
            search(address, 6)
            assert optuna(address, 3) == 9  # repeats of ours among them: Optuna does not mind
            search(address, 13)
            assert optuna(address, 0) == 13, address


if __name__ == "__main__":
    main()
