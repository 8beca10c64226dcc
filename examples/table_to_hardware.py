# SPDX-License-Identifier: Apache-2.0
"""From a table of measurements to an estimate in hardware: a CSV file, a small network, fixed point
numbers, look-up tables. Run it with `ch python examples/table_to_hardware.py`."""
from __future__ import annotations

import os
import random
import tempfile

import mase


def write_measurements(path: str) -> None:
    """Three sensors, two kinds of particle."""
    draw = random.Random(7)
    with open(path, "w") as file:
        file.write("energy,width,time,kind\n")
        for _ in range(2000):
            signal = draw.random() < 0.5
            energy, width = draw.gauss(40 if signal else 30, 6), draw.gauss(1.2 if signal else 1.8, 0.3)
            file.write(f"{energy:.3f},{width:.3f},{draw.gauss(5, 1):.3f},{'signal' if signal else 'background'}\n")


NETWORK = """
name = "trigger"
[[seq_blocks]]
type = "Linear"
out_features = 8
[[seq_blocks]]
type = "ReLU"
[[seq_blocks]]
type = "Linear"
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, network = os.path.join(folder, "events.csv"), os.path.join(folder, "trigger.toml")
        write_measurements(table)
        with open(network, "w") as file:
            file.write(NETWORK)
        run = mase.train(network, table, target="kind", max_epochs=20, batch_size=32, learning_rate=1e-2,
                         project_dir=folder, progress=False)
        quantized = run.graph.quantize(linear=mase.formats.integer(8, 4), relu=mase.formats.integer(8, 4))
        accuracy = mase.test(quantized, table, target="kind", progress=False).accuracy
        print(f"accuracy {run.test.accuracy:.3f} in float, {accuracy:.3f} in 8 bits")
        design = mase.emit(quantized, os.path.join(folder, "design"), rows=200, prove=False)
        print(design.estimate)
        print(f"engine and integers are equal on {design.compared}: {design.equal}")
        assert design.equal and accuracy > 0.8


if __name__ == "__main__":
    main()
