# SPDX-License-Identifier: Apache-2.0
"""Lab 2 in Python: build a graph, look at it, profile it, quantise it, compare. Run it with
`ch python examples/lab2.py`; `examples/lab2.cpp` is the same in C++."""
from __future__ import annotations

import mase


def main() -> None:
    data = mase.load_dataset("jsc", sim_rows=4000, progress=False)
    graph = mase.load("jsc-tiny")
    graph.run_pass("report_graph")

    graph.run_pass("profile_statistics", by="type", target_weight_nodes=["linear"], target_activation_nodes=["relu"],
                   weight_statistics={"variance_precise": {}},
                   activation_statistics={"range_quantile": {"quantile": 0.97}}, num_samples=32, samples=data.train.x)
    graph.run_pass("report_node_meta_param", which=["software"])

    quantized = graph.quantize(linear=mase.formats.integer(8, 4))
    quantized.run_pass("summarize_quantization", original=graph)

    # The weights are stored in float and used in 8 bits.
    layer = quantized.modules["seq_blocks.2"]
    stored, used = layer["weight"], layer.used()["weight"]
    print("stored", stored[0, :4], "used", used[0, :4])
    assert (used == mase.formats.integer(8, 4)(stored)).all()
    x = data.test.x[:1000]
    print("largest change of an output:", abs(graph(x) - quantized(x)).max())


if __name__ == "__main__":
    main()
