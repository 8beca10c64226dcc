# SPDX-License-Identifier: Apache-2.0
"""Lab 3 in Python: search over widths of data and weights. Run it with `ch python examples/lab3.py`."""
from __future__ import annotations

import mase

SEARCH = {
    "search_space": {"name": "graph/quantize/mixed_precision_ptq", "setup": {"by": "type"}, "seed": {
        "default": {"config": {"name": ["NA"]}},
        "linear": {"config": {"name": ["integer"], "data_in_width": [4, 8, 16], "data_in_frac_width": ["NA"],
                              "weight_width": [2, 4, 8], "weight_frac_width": ["NA"], "bias_width": [8],
                              "bias_frac_width": ["NA"]}}}},
    "strategy": {"name": "optuna", "setup": {"sampler": "brute-force"},
                 "metrics": {"accuracy": {"scale": 1.0, "direction": "maximize"},
                             "average_bitwidth": {"scale": 0.2, "direction": "minimize"}}},
}


def main() -> None:
    run = mase.train("jsc-tiny", "jsc", sim_rows=4000, max_epochs=3, batch_size=64, learning_rate=1e-2, save=False,
                     progress=False)
    found = mase.search(run.graph, "jsc", sim_rows=4000, search=SEARCH, progress=False)
    print(found)
    for number, graph in zip((entry["number"] for entry in found.configurations), found.networks):
        print(f"trial {number}: {graph.cost().average_weight_bits:.0f} bits per weight")
    assert len(found.trials) == 9


if __name__ == "__main__":
    main()
