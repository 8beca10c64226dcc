#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one more trial costs Optuna and Rustuna with n trials in the study (milliseconds of processor time), and how
many trials a second Optuna's processes make in one database: beside `bench_search overhead` and `bench_search storage`.

    python3 -m venv venv && venv/bin/pip install optuna rustuna psycopg2-binary
    venv/bin/python bench/search_peers.py [--storage sqlite:////tmp/x.db] [--processes 4]
"""
import argparse
import multiprocessing
import random
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
    try:
        import rustuna as module
    except ImportError:
        return None
    try:
        study = module.create_study(sampler=module.samplers.TPESampler(seed=1))
        start, mark = time.process_time(), 0
        def measure(trial):
            return objective({f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(dimensions)})
        study.optimize(measure, n_trials=count)
        mark = time.process_time()
        study.optimize(measure, n_trials=50)
        return 1e3 * (time.process_time() - mark) / 50, mark - start
    except Exception as error:  # its interface is young
        print("rustuna:", error)
        return None


def work(address, name, trials):
    study = optuna.load_study(study_name=name, storage=address, sampler=optuna.samplers.TPESampler())
    study.optimize(lambda t: objective({f"x{i}": t.suggest_float(f"x{i}", 0, 1) for i in range(10)}), n_trials=trials)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", help="trials/s in this database instead")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--largest", type=int, default=1000, help="trials in the study")
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
        for count in (100, 1000, 10000):
            if count > options.largest:
                continue
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
            study.add_trials(list(history(count, dimensions)))
            print(f"Optuna TPE, {dimensions} parameters, n = {count}: {one_more(study, dimensions, 15):.2f} ms",
                  flush=True)
        result = rustuna(dimensions, min(1000, options.largest))
        if result:
            print(f"Rustuna TPE, {dimensions} parameters, n = {min(1000, options.largest)}: {result[0]:.2f} ms",
                  flush=True)


if __name__ == "__main__":
    main()
