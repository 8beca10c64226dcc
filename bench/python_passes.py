#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lab 2's passes from Python on jsc-10x, torch's own share taken off: build/release/python first in line.

    ch python bench/python_passes.py

The original's times are those of its Python passes on the same network (torch 1.13), measured beside a
torch forward pass of its own. What torch takes (tracing, running the network, making modules) is
measured by itself and subtracted."""
import time

import torch

from chop.dataset import MaseDataModule
from chop.ir.graph.mase_graph import MaseGraph
from chop.models import get_model, get_model_info
from chop.passes.graph import (add_common_metadata_analysis_pass, add_software_metadata_analysis_pass,
                               init_metadata_analysis_pass, profile_statistics_analysis_pass, quantize_transform_pass,
                               summarize_quantization_analysis_pass)
from chop.passes.graph.utils import evaluating
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
    modules = [m for m in mg.model.modules() if not list(m.children())]

    def forward(x):
        for module in modules:
            x = module(x.clone()) if getattr(module, "inplace", False) else module(x)

    def torch_forward(x):
        with evaluating(mg.model), torch.no_grad():
            forward(x)

    def torch_modules():
        for layer in layers:
            new = torch.nn.Linear.__new__(torch.nn.Linear)
            torch.nn.Module.__init__(new)
            new.weight, new.bias = (torch.nn.Parameter(p.detach().clone()) for p in (layer.weight, layer.bias))

    quantized_class("linear", "integer")
    class_named("LinearInteger")
    from mase.torch_bridge import Tracer

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
    layer_speed()


class Original(torch.autograd.Function):
    """The original's integer quantizer, a composition in torch."""

    @staticmethod
    def forward(ctx, x, scale, low, high):
        return torch.clamp(torch.round(x * scale), low, high) / scale

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None, None


def layer_speed():
    keys = {f"{o}_{k}": v for o in ("data_in", "weight", "bias") for k, v in (("width", 8), ("frac_width", 4))}
    layer = class_named("LinearInteger")(16, 60, config=keys)
    x = torch.randn(256, 16, requires_grad=True)

    def composed():
        q = [Original.apply(v, 16.0, -128.0, 127.0) for v in (x, layer.weight, layer.bias)]
        return torch.nn.functional.linear(*q)

    for name, ours, theirs in (("LinearInteger forward", lambda: layer(x), composed),
                               ("forward and backward", lambda: layer(x).sum().backward(), lambda: composed().sum().backward())):
        pairs = [(best(ours, 200), best(theirs, 200)) for _ in range(5)]
        a, b = min(p[0] for p in pairs), min(p[1] for p in pairs)
        print(f"{name:24}{1e3 * a:9.1f} us, composed in torch {1e3 * b:.1f} us: {b / a:.1f}x")


if __name__ == "__main__":
    main()
