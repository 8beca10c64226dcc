# SPDX-License-Identifier: Apache-2.0
"""Metadata set for a whole graph, batch norms folded by the library's pass, and configs as one operation reads them."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

from chop.passes.graph.quantization import _for_op
from chop.passes.graph.utils import as_graph, get_mase_op, get_parent_name
from mase._native import Error
from mase.torch_layers import op_records


def parse_node_config(config: Dict[str, Any], mase_op: str, strict: bool = True) -> Dict[str, Any]:
    """The keys of a config that this operation has operands for."""
    if mase_op not in op_records() or not op_records()[mase_op]["operands"]:
        raise Error(f"parse_node_config: there is no operation '{mase_op}' that takes number formats")
    return _for_op(dict(config), mase_op)


def patch_metadata_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """{"precision": [8, 3], "q_config": {...}}: every value that is still float becomes fixed point of this precision in the metadata;
    operands for which q_config has a width get that one. Hardware passes read it."""
    graph = as_graph(graph)
    args = dict(pass_args or {})
    precision, config = args.pop("precision", None), args.pop("q_config", None) or {}
    if args:
        raise Error(f"patch_metadata: unknown key '{sorted(args)[0]}'; it takes precision and q_config")
    if not isinstance(precision, (list, tuple)) or len(precision) != 2:
        raise Error(f"patch_metadata: precision: expected [width, bits behind the point], got {precision!r}")
    patched = []
    for node in graph.fx_graph.nodes:
        common = node.meta["mase"].parameters["common"]
        operands = {"data_in_0": "data_in", "data_in_1": "weight", "weight": "weight", "bias": "bias", "data_out_0": "data_out"}
        for name, entry in [*common.get("args", {}).items(), *common.get("results", {}).items()]:
            if not isinstance(entry, dict) or entry.get("type") != "float":
                continue
            width = config.get(f"{operands.get(name)}_width")
            entry["type"] = "fixed"
            entry["precision"] = list(precision) if width is None else [width, config.get(f"{operands[name]}_frac_width", width // 2)]
            patched.append(f"{node.name}.{name}")
    return graph, {"patched": patched}


def conv_bn_fusion_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Batch norms into the convolutions and linear layers before them, as the library's pass fuse_batch_norm folds them; the graph then
    computes what it did in evaluation."""
    graph = as_graph(graph)
    native = graph.native()
    info = native.run_pass("fuse_batch_norm", pass_args or {}, print=None)
    left = {node.target for node in native.nodes if node.op == "call_module"}
    for node in list(graph.fx_graph.nodes):
        if node.op == "call_module" and node.target not in left and get_mase_op(node).startswith("batch_norm"):
            node.replace_all_uses_with(node.args[0])
            graph.fx_graph.erase_node(node)
    for path, layer in native.modules.items():
        if path not in left:
            continue
        own = graph.model.get_submodule(path)
        tensors = {name: torch.from_numpy(array.copy()) for name, array in layer.tensors().items()}
        if all(own._parameters.get(name) is not None and torch.equal(own._parameters[name].detach(), value) for name, value in tensors.items()
               if name in ("weight", "bias")):
            continue
        parent, name = get_parent_name(path)
        import copy

        new = copy.copy(own)  # the caller keeps his
        new._parameters = dict(own._parameters)  # type: ignore[assignment]
        for key in ("weight", "bias"):
            if key in tensors:
                old = own._parameters.get(key)
                new._parameters[key] = torch.nn.Parameter(tensors[key].to(own.weight), True if old is None else old.requires_grad)
        setattr(graph.model.get_submodule(parent), name, new)
    graph.model.delete_all_unused_submodules()
    graph.model.recompile()
    return graph, info or {}
