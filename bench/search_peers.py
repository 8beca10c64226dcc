#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one more trial costs Optuna and Rustuna with n trials in the study (milliseconds of processor time), and how
many trials a second Optuna's processes make in one database: beside `bench_search overhead` and `bench_search storage`.

    python3 -m venv venv && venv/bin/pip install optuna rustuna psycopg2-binary
    venv/bin/python bench/search_peers.py [--here build/release/bin/bench_search] [--largest 10000]
    venv/bin/python bench/search_peers.py --storage sqlite:////tmp/x.db [--processes 4]
"""
import argparse
import multiprocessing
import random
import re
import subprocess
import time
import warnings

import optuna

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(params):
    return sum((value - 0.3) ** 2 for value in params.values())


def history(count, dimensions):
    dice = random.Random(1)
    distributions = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(dimensions)}
    for _ in range(count):
        params = {name: dice.random() for name in distributions}
        yield optuna.trial.create_trial(params=params, distributions=distributions, value=objective(params))


def one_more(study, dimensions, repeats):
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        trial = study.ask()
        study.tell(trial, objective({f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(dimensions)}))
        spent.append(1e3 * (time.process_time() - start))
    return sorted(spent)[repeats // 2]


def rustuna(dimensions, count):
    """With a history of its own up to 1,000 trials; beyond, where that takes minutes, with a random one."""
    try:
        import rustuna as module
    except ImportError:
        return None
    try:
        study = module.create_study(sampler=module.samplers.TPESampler(seed=1))
        own = count if count <= 1000 else 0
        ranges = {f"x{i}": module.distributions.FloatDistribution(0, 1) for i in range(dimensions)}
        dice = random.Random(1)
        for _ in range(count - own):
            params = {name: dice.random() for name in ranges}
            study.add_trial(module.create_trial(params=params, distributions=ranges, value=objective(params)))
        def measure(trial):
            return objective({f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(dimensions)})
        if own:
            study.optimize(measure, n_trials=own)
        spent = []
        for _ in range(5):
            mark = time.process_time()
            study.optimize(measure, n_trials=10)
            spent.append(1e3 * (time.process_time() - mark) / 10)
        return sorted(spent)[2]
    except Exception as error:  # its interface is young
        print("rustuna:", error)
        return None


def here(program, dimensions):
    """{trials: milliseconds} of bench_search overhead for TPE with one objective."""
    text = subprocess.run([program, "overhead", "tpe", "1"], capture_output=True, text=True, check=True).stdout
    line = next(one for one in text.splitlines() if f" {dimensions} parameters" in one)
    return {int(n): float(ms) for n, ms in re.findall(r"n = (\d+): ([\d.]+) ms", line)}


def work(address, name, trials):
    study = optuna.load_study(study_name=name, storage=address, sampler=optuna.samplers.TPESampler())
    study.optimize(lambda t: objective({f"x{i}": t.suggest_float(f"x{i}", 0, 1) for i in range(10)}), n_trials=trials)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", help="trials/s in this database instead")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--largest", type=int, default=1000, help="trials in the study")
    parser.add_argument("--here", help="bench_search: measured in the same run")
    options = parser.parse_args()
    if options.storage:
        name = f"peers {time.time()}"
        optuna.create_study(study_name=name, storage=options.storage)
        share = options.trials // options.processes
        start = time.time()
        workers = [multiprocessing.Process(target=work, args=(options.storage, name, share))
                   for _ in range(options.processes)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.time() - start
        print(f"Optuna, {options.processes} processes: {share * options.processes} trials in {seconds:.1f} s, "
              f"{share * options.processes / seconds:.1f} trials/s")
        return
    for dimensions in (10, 50):
        ours = here(options.here, dimensions) if options.here else {}
        for count in (100, 1000, 10000):
            if count > options.largest:
                continue
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
            study.add_trials(list(history(count, dimensions)))
            figures = {"Optuna": one_more(study, dimensions, 15), "Rustuna": rustuna(dimensions, count)}
            text = f"{dimensions} parameters, n = {count}:"
            if count in ours:
                text += f" here {ours[count]:.4f} ms"
            for name, milliseconds in figures.items():
                if milliseconds is not None:
                    text += f", {name} {milliseconds:.2f} ms"
                    if count in ours:
                        text += f" ({milliseconds / ours[count]:.0f} times)"
            print(text, flush=True)


if __name__ == "__main__":
    main()
