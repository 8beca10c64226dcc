#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lab 2's passes from Python on jsc-10x, torch's own share taken off.

    ch python bench/python_passes.py

The original's times are those of its Python passes on the same network (torch 1.13), measured beside a
torch forward pass of its own. What torch takes (tracing, running the network, making modules) is
measured by itself and subtracted."""
import copy
import time

import torch

from chop.dataset import MaseDataModule
from chop.ir.graph.mase_graph import MaseGraph
from chop.models import get_model, get_model_info
from chop.passes.graph import (add_common_metadata_analysis_pass, add_software_metadata_analysis_pass,
                               init_metadata_analysis_pass, profile_statistics_analysis_pass, quantize_transform_pass,
                               summarize_quantization_analysis_pass)
from chop.tools.get_input import InputGenerator
from chop.tools.logger import set_logging_verbosity
from mase.torch_layers import class_named, quantized_class

torch.set_num_threads(1)
set_logging_verbosity("warning")
ORIGINAL = {"MaseGraph": 2.5, "add_common_metadata": 0.58, "profile_statistics": 4.1, "quantize": 0.86,
            "summarize_quantization": 11.3}
CONFIG = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
    "bias_width": 8, "bias_frac_width": 4}}}


def best(function, repeats=300):
    """Milliseconds of the quickest of many."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main():
    data = MaseDataModule(name="jsc", batch_size=8, num_workers=0, sim_rows=2000)
    model = get_model("jsc-10x", task="cls", dataset_info=data.dataset_info, pretrained=False)
    generator = InputGenerator(data_module=data, model_info=get_model_info("jsc-10x"), task="cls", which_dataloader="train")
    batches = [next(generator) for _ in range(4)]
    dummy = batches[0]

    def graph():
        mg, _ = init_metadata_analysis_pass(MaseGraph(model), None)
        mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy})
        return add_software_metadata_analysis_pass(mg, None)[0]

    mg, original = graph(), graph()
    statistics = {"by": "type", "target_weight_nodes": ["linear"], "target_activation_nodes": ["relu"],
                  "weight_statistics": {"variance_precise": {"device": "cpu", "dims": "all"}},
                  "activation_statistics": {"range_quantile": {"device": "cpu", "dims": "all", "quantile": 0.97}},
                  "input_generator": batches, "num_samples": 32}
    layers = [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
    whole = torch.cat([batch["x"] for batch in batches])
    modules = [(m, getattr(m, "inplace", False)) for m in copy.deepcopy(mg.model).eval().modules() if not list(m.children())]

    def torch_forward(x):
        with torch.no_grad():
            for module, inplace in modules:
                x = module(x.clone()) if inplace else module(x)

    def torch_modules():
        for layer in layers:
            new = torch.nn.Linear.__new__(torch.nn.Linear)
            torch.nn.Module.__init__(new)
            new.weight, new.bias = (torch.nn.Parameter(p.detach().clone()) for p in (layer.weight, layer.bias))

    quantized_class("linear", "integer")
    class_named("LinearInteger")
    from mase.torch_trace import Tracer

    def trace():
        torch.fx.GraphModule(model, Tracer().trace(model))

    rows = [("MaseGraph", best(lambda: MaseGraph(model), 50), best(trace, 50)),
            ("add_common_metadata", best(lambda: add_common_metadata_analysis_pass(mg, {"dummy_in": dummy})),
             best(lambda: torch_forward(dummy["x"]))),
            ("profile_statistics", best(lambda: profile_statistics_analysis_pass(mg, statistics)),
             best(lambda: torch_forward(whole))),
            ("quantize", best(lambda: quantize_transform_pass(mg, CONFIG)), best(torch_modules)),
            ("summarize_quantization", best(lambda: summarize_quantization_analysis_pass(original, mg)), 0.0)]
    print(f"{'pass':24}{'all ms':>9}{'torch ms':>10}{'ours ms':>9}{'original':>10}{'ratio':>8}")
    for name, all_ms, torch_ms in rows:
        ours = max(all_ms - torch_ms, 1e-3)
        print(f"{name:24}{all_ms:9.3f}{torch_ms:10.3f}{ours:9.3f}{ORIGINAL[name]:10.2f}{ORIGINAL[name] / ours:8.1f}")


if __name__ == "__main__":
    main()
