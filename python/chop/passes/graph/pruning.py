# SPDX-License-Identifier: Apache-2.0
"""prune: the least important weights are zero and stay zero, by a mask that parametrises the weight. The
library chooses them: exactly the share that was asked for."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

from chop.passes.graph.utils import as_graph, get_mase_op, get_parent_name
from chop.tools.logger import get_logger
from mase._native import Error
from mase.torch_layers_apart import SparseInput, layers_apart
from mase.torch_ops import apply_mask, own_layer, pruning_mask, remove_masks


def _samples(graph: Any) -> Optional[torch.Tensor]:
    """What the metadata has of the input of a network with one; none of tokens, and none of several inputs."""
    inputs = graph.nodes_in
    common = inputs[0].meta["mase"].parameters["common"] if len(inputs) == 1 and "mase" in inputs[0].meta else {}
    value = common.get("results", {}).get("data_out_0", {}).get("value")
    return value if isinstance(value, torch.Tensor) and value.is_floating_point() else None


def _network(graph: Any, features: bool) -> Tuple[Any, bool]:
    """The library's graph that the masks are chosen on, and whether all of the network is in it. To choose weights the layers
    alone will do, where torch's operations stand between them."""
    if features or not hasattr(graph.model, "class_for_deserialization"):
        try:
            return graph.native(), True
        except Error:
            if features:
                raise
    return layers_apart(graph.model), False


def _each_sample(graph: Any, table: Dict[str, Any], layers: Any) -> None:
    """Inputs of layers lose their smallest values sample by sample, as the original's do."""
    unknown = table.keys() - {"sparsity", "method", "scope", "granularity", "mode"}
    if unknown:
        raise Error(f"activation: unknown key '{sorted(unknown)[0]}'; it takes sparsity, method, scope, granularity and mode")
    method = {"l1": "l1-norm"}.get(table.get("method", "l1-norm"), table.get("method", "l1-norm"))
    if method not in ("l1-norm", "random"):
        raise Error(f"activation.method: expected l1-norm or random, got {method!r}")
    if table.get("scope", "local") != "local" or table.get("granularity", "elementwise") != "elementwise":
        raise Error("activation: sample by sample, each layer's own values are compared one by one (scope 'local', granularity 'elementwise')")
    for path in layers:
        layer = _own(graph, path)
        layer._forward_pre_hooks = type(layer._forward_pre_hooks)(
            (key, hook) for key, hook in layer._forward_pre_hooks.items() if not isinstance(hook, SparseInput))
        layer.register_forward_pre_hook(SparseInput(table["sparsity"], method))


def _own(graph: Any, path: str) -> Any:
    """The layer, in the place of the caller's where it may be his, who keeps his as it is."""
    layer = graph.model.get_submodule(path)
    if pruning_mask(layer) is not None or any(isinstance(hook, SparseInput) for hook in layer._forward_pre_hooks.values()):
        return layer
    parent, name = get_parent_name(path)
    layer = own_layer(layer)
    setattr(graph.model.get_submodule(parent), name, layer)
    return layer


def prune_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """{"weight": {sparsity, method, scope, granularity}, "activation": {...}}: the library's pass chooses.

    `activation` is one of two things (`mode`). "static": input features are removed by their size on the metadata's input; a
    masked feature is the same as a zeroed column of weights, so it becomes part of the same mask. "dynamic": of each sample the
    smallest values are zero whenever the layer runs, as in the original. Static is what is done where the metadata has the
    values of the network's one input, dynamic everywhere else, which the log says.
    """
    graph = as_graph(graph)
    args = {key: dict(value) if isinstance(value, dict) else value for key, value in (pass_args or {}).items()}
    for name in ("weight", "activation"):
        table = args.get(name)
        if isinstance(table, dict) and isinstance(table.get("sparsity"), (int, float)) and not 0 <= table["sparsity"] <= 1:
            raise Error(f"{name}.sparsity: expected a share between 0 and 1, got {table['sparsity']}")
    if isinstance(args.get("activation"), dict) and not args["activation"].get("sparsity"):
        args.pop("activation")
    samples = _samples(graph)
    inputs: Any = args.get("activation")
    mode = inputs.pop("mode", None) if isinstance(inputs, dict) else None
    if mode not in (None, "static", "dynamic"):
        raise Error(f"activation.mode: expected static or dynamic, got {mode!r}")
    if mode == "static" and samples is None:
        raise Error("activation.mode: static needs the values of the network's one input; run add_common_metadata with dummy_in first")
    dynamic = isinstance(inputs, dict) and (mode == "dynamic" or samples is None)
    native, whole = _network(graph, isinstance(inputs, dict) and not dynamic)
    if dynamic:
        args.pop("activation")
        if mode is None:
            get_logger("chop").info("prune: activations are pruned sample by sample (mode 'dynamic')")
    info: Dict[str, Any] = {}
    if args:
        info = native.run_pass("prune", args, samples=samples if whole else None, print=None)
        for path, layer in native.modules.items():
            if layer.mask is not None:
                apply_mask(_own(graph, path), torch.from_numpy(layer.mask.copy()))
    if dynamic:
        _each_sample(graph, inputs, [path for path, layer in native.modules.items() if layer.op in ("linear", "conv1d", "conv2d")])
        info = {**(info or {}), "activation": repr(SparseInput(inputs["sparsity"], inputs.get("method", "l1-norm")))}
    return graph, info


def prune_detach_hook_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Makes pruned weights plain parameters again, their zeros kept; inputs are no longer pruned."""
    graph = as_graph(graph)
    for module in list(graph.model.modules()):
        for key in [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, SparseInput)]:
            module._forward_pre_hooks.pop(key)
        remove_masks(module)
    return graph, {}


def add_pruning_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """weight_sparsity of every linear layer and convolution: the share of zeros of its mask."""
    graph = as_graph(graph)
    found: Dict[str, Any] = {}
    for node in graph.fx_graph.nodes:
        if node.op == "call_module" and get_mase_op(node) in ("linear", "conv1d", "conv2d"):
            mask = pruning_mask(graph.model.get_submodule(node.target))
            sparsity = 0.0 if mask is None else float(1 - mask.to(torch.float64).mean())
            node.meta["mase"].parameters["software"].setdefault("args", {}).setdefault("weight", {"stat": {}})["sparsity"] = sparsity
            found[node.name] = {"weight_sparsity": sparsity}
    return graph, found


def add_natural_sparsity_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The share of zeros among the weights as they are."""
    graph = as_graph(graph)
    found = {}
    for name, parameter in graph.model.named_parameters():
        if name.endswith("weight") or name.endswith("weight.original"):
            found[name] = float((parameter == 0).to(torch.float64).mean())
    return graph, found


def hook_inspection_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The hooks of every layer."""
    graph = as_graph(graph)
    found = {}
    for name, module in graph.model.named_modules():
        for kind in ("_forward_pre_hooks", "_forward_hooks"):
            for number, hook in getattr(module, kind).items():
                found[f"{name}_{number}"] = (number, hook)
    return graph, found
