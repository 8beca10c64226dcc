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
    """FLOPs, and a lab's total_bitops: the bits of the operands of products; the bit operations beside them."""
    graph = as_graph(graph)
    cost = graph.native().cost(int((pass_args or {}).get("batch_size") or _batch(graph)))
    return graph, {"total_flops": cost.flops, "total_bitops": _whole(cost.operand_bits), "bitops": _whole(cost.bitops)}


def _whole(number: float) -> Any:
    return int(number) if number == int(number) else number


def calculate_modules(module: Any, in_data: Any, out_data: Any) -> Dict[str, Any]:
    """Operations of one layer on one input: MACs, FLOPs and parameters."""
    from mase.torch_import import from_torch
    import torch

    x = in_data[0] if isinstance(in_data, (list, tuple)) else in_data
    layer = torch.nn.Sequential(module)
    cost = from_torch(layer, x).cost(int(x.shape[0]))
    return {"total_parameters": sum(p.numel() for p in module.parameters()), "computations": cost.flops, "macs": cost.macs}
