#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of COCO (bbob, bbob-mixint; instance 1) for `bench_search coco`, which starts this and asks over a pipe.

    python3 -m venv venv && venv/bin/pip install coco-experiment
    build/release/bin/bench_search coco venv/bin/python bench/search_coco.py 30

`SUITE FUNCTION DIMENSIONS` is answered by the parameters, `low high integer` for each; then each line of numbers by the
function's value.
"""
import sys

import cocoex


def main():
    problem = None
    for line in sys.stdin:
        words = line.split()
        if words[0].startswith("bbob"):
            suite = cocoex.Suite(words[0], "instances:1", f"function_indices:{words[1]} dimensions:{words[2]}")
            problem = suite[0]
            whole = problem.number_of_integer_variables
            print(*[f"{low!r} {high!r} {int(i < whole)}" for i, (low, high) in
                    enumerate(zip(map(float, problem.lower_bounds), map(float, problem.upper_bounds)))], flush=True)
        else:
            print(repr(float(problem([float(word) for word in words]))), flush=True)


if __name__ == "__main__":
    main()
