# SPDX-License-Identifier: Apache-2.0
"""Lab 1 in Python: train a network, test its best weights, vary an option. Run it with
`ch python examples/lab1.py`."""
from __future__ import annotations

import tempfile

import mase


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for rate in (1e-4, 1e-2):
            run = mase.train("jsc-tiny", "jsc", sim_rows=4000, max_epochs=3, batch_size=256, learning_rate=rate,
                             project_dir=folder, progress=False)
            print(f"learning rate {rate:g}: {run.steps} steps, test accuracy {run.test.accuracy:.3f}")
        again = mase.test(run.best_checkpoint, "jsc", sim_rows=4000, progress=False)
        print("the best checkpoint, tested on its own:", round(again.accuracy, 3))
        assert again.accuracy == run.test.accuracy


if __name__ == "__main__":
    main()
