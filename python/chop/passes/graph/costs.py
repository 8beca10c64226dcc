# SPDX-License-Identifier: Apache-2.0
"""What a network costs in bits and operations."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from chop.passes.graph.utils import as_graph, get_mase_op, get_node_actual_target
from mase._native import Error
from mase.torch_layers import QuantizedLayer


def _bits(quantizer: Any, shape: list) -> float:
    return 32.0 if quantizer is None else quantizer.bits(shape)


def calculate_avg_bits_mg_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Bits per value of the inputs and weights of linear layers and convolutions: data_avg_bit, w_avg_bit.

    Bits are those a value is stored in: fixed point 8/4 has 8 (the original adds the 4 as well).
    """
    graph = as_graph(graph)
    data = weight = data_count = weight_count = 0.0
    for node in graph.fx_graph.nodes:
        if node.op != "call_module" or get_mase_op(node) not in ("linear", "conv1d", "conv2d"):
            continue
        layer = get_node_actual_target(node)
        args = node.meta["mase"].parameters["common"]["args"]
        quantized = isinstance(layer, QuantizedLayer) and not layer.bypass
        for name, quantizer in (("data_in_0", layer.x_quantizer if quantized else None),
                                ("weight", layer.w_quantizer if quantized else None)):
            shape = args[name]["shape"]
            count = 1
            for size in shape:
                count *= size
            bits = _bits(quantizer, shape) * count
            if name == "weight":
                weight, weight_count = weight + bits, weight_count + count
            else:
                data, data_count = data + bits, data_count + count
    if not weight_count:
        raise Error("calculate_avg_bits: the graph has no linear layer and no convolution")
    return graph, {"data_avg_bit": data / data_count, "w_avg_bit": weight / weight_count}


def _batch(graph: Any) -> int:
    for node in graph.nodes_in:
        results = node.meta["mase"].parameters["common"].get("results", {}) if "mase" in node.meta else {}
        if results:
            return results["data_out_0"]["shape"][0]
    return 1


def calculate_flops_mg_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Multiplications and operations at the batch size of the metadata (or `batch_size`)."""
    graph = as_graph(graph)
    cost = graph.native().cost(int((pass_args or {}).get("batch_size") or _batch(graph)))
    return graph, {"total_flops": cost.flops, "total_macs": cost.macs, "layers": cost.layers}


def calculate_flops_bitops_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """What the library's pass finds. total_bitops is a lab's figure of this name, the sums of `precision` over the operands of
    products; bitops are multiplications times the bits of both operands."""
    graph = as_graph(graph)
    batch = int((pass_args or {}).get("batch_size") or _batch(graph))
    found = graph.native().run_pass("calculate_flops_bitops", {"batch_size": batch}, print=None)
    return graph, {"total_flops": found["total_flops"], "total_bitops": _whole(found["total_precision_sums"]), "bitops": _whole(found["total_bitops"])}


def _whole(number: float) -> Any:
    return int(number) if number == int(number) else number


def _window(module: Any) -> int:
    size = module.kernel_size
    return size * size if isinstance(size, int) else size[0] * size[1]


def calculate_modules(module: Any, in_data: Any, out_data: Any) -> Dict[str, Any]:
    """One layer on one input (`in_data` and `out_data` are tuples of tensors), counted as the original counts: total_parameters
    without biases, computations and backward_computations by its rule for each layer (a product counts once), and
    input_buffer_size and output_buffer_size in numbers. What is so in fact stands beside it: macs, flops and parameters.

    Layers that the original does not count have its keys with flops as computations and None for the way back.
    """
    import torch
    from mase.torch_import import from_torch

    nn = torch.nn
    first, result = in_data[0], out_data[0]
    inputs, outputs = first.numel(), result.numel()
    found: Dict[str, Any] = {"total_parameters": 0}
    forward: Any
    backward: Any
    if isinstance(module, nn.Linear):
        weights = module.weight.numel()
        found["total_parameters"] = weights
        forward = weights * (inputs / first.shape[-1])
        backward = 2 * forward
    elif isinstance(module, nn.Conv2d):
        channels = (in_data if isinstance(in_data, torch.Tensor) else first).shape[1]
        found["total_parameters"] = module.weight.numel()
        forward, backward = outputs * _window(module) * channels, 2 * inputs * _window(module) * channels
    elif isinstance(module, (nn.AvgPool2d, nn.MaxPool2d)):
        forward, backward = outputs * _window(module), inputs * _window(module)
    elif isinstance(module, nn.Embedding):
        found["total_parameters"] = module.embedding_dim * inputs
        forward = backward = inputs = outputs = 0
    elif isinstance(module, nn.modules.batchnorm._BatchNorm):
        found["total_parameters"] = 2 * module.num_features
        forward = backward = 4 * inputs
    elif isinstance(module, nn.LayerNorm):
        forward = backward = 5 * inputs
    elif isinstance(module, (nn.Dropout, nn.Dropout2d)):
        forward = backward = 0
    elif isinstance(module, (nn.AdaptiveAvgPool2d, nn.ReLU, nn.ReLU6)):
        forward = backward = inputs
    else:
        forward = backward = None
    x = in_data if isinstance(in_data, torch.Tensor) else first
    try:
        cost = from_torch(nn.Sequential(module), x).cost(int(x.shape[0]))
        true = {"flops": cost.flops, "macs": cost.macs}
    except Error:
        if forward is None:
            raise
        true = {"flops": None, "macs": None}  # it has no such operation, and the original counts it
    found.update(computations=true["flops"] if forward is None else forward, backward_computations=backward,
                 input_buffer_size=inputs, output_buffer_size=outputs, **true,
                 parameters=sum(p.numel() for p in module.parameters()))
    return found
