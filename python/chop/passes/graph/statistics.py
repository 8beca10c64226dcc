# SPDX-License-Identifier: Apache-2.0
"""Statistics of weights and activations, by the library's collectors. The samples run through the
network in evaluation mode as one batch; each row is one sample."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.fx.node import map_arg

from chop.passes.graph.utils import arguments_of, as_graph, get_mase_op
from mase._native import Error, Statistic
from mase.torch_stand_ins import evaluating

_KEYS = {"by", "target_weight_nodes", "target_activation_nodes", "weight_statistics", "activation_statistics",
         "input_generator", "num_samples", "profile_input_activation", "profile_output_activation"}


def _chosen(graph: Any, by: str, names: Any) -> List[Any]:
    names = [names] if isinstance(names, str) else list(names or [])
    nodes = list(graph.fx_graph.nodes)
    known = {get_mase_op(node) if by == "type" else node.name for node in nodes}
    for name in names:
        if name not in known:
            raise Error(f"profile_statistics: there is no node of {'type' if by == 'type' else 'name'} '{name}'; "
                        f"the graph has {', '.join(sorted(known))}")
    return [node for node in nodes if (get_mase_op(node) if by == "type" else node.name) in names]


def _stat(node: Any, side: str, name: str) -> Dict[str, Any]:
    software = node.meta["mase"].parameters["software"]
    return software.setdefault(side, {}).setdefault(name, {"stat": {}})["stat"]


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous().numpy()


def _profile_weights(nodes: List[Any], statistics: dict, modules: Dict[str, Any]) -> None:
    for node in nodes:
        if node.op != "call_module":
            continue
        module = modules[node.target]
        tensors = dict(module.named_parameters(recurse=False))
        tensors.update((name, b) for name, b in module.named_buffers(recurse=False) if b.is_floating_point())
        for name, tensor in tensors.items():
            stat = _stat(node, "args", name)
            array = _array(tensor)
            for kind, args in statistics.items():
                collector = Statistic(kind, args)
                collector.update(array, False)
                stat[kind] = collector.compute()


def _samples(graph: Any, generator: Any, count: int) -> Dict[str, torch.Tensor]:
    if generator is None:
        raise Error("input_generator: is missing; activations need samples")
    batches: Dict[str, List[torch.Tensor]] = {}
    have = 0
    for batch in generator:
        if not isinstance(batch, dict):
            raise Error("input_generator: expected dicts of inputs by name, such as {'x': tensor}")
        for name, value in batch.items():
            batches.setdefault(name, []).append(value)
        have += len(next(iter(batch.values())))
        if have >= count:
            break
    if have == 0:
        raise Error("input_generator: gave no samples")
    return {name: torch.cat(parts)[:count] for name, parts in batches.items()}


def _profile_activations(graph: Any, nodes: List[Any], statistics: dict, samples: Dict[str, torch.Tensor],
                         inputs: bool, outputs: bool) -> None:
    watched: Dict[Any, List[Tuple[Any, str, str]]] = {}
    for node in nodes:
        if inputs:
            for i, source in enumerate(node.all_input_nodes):
                watched.setdefault(source, []).append((node, "args", f"data_in_{i}"))
        if outputs:
            watched.setdefault(node, []).append((node, "results", "data_out_0"))
    left = len(watched)
    model, modules = graph.model, graph.modules
    values: Dict[Any, Any] = {}
    with evaluating(modules.values()), torch.no_grad():
        for node in model.graph.nodes:
            if left == 0:
                break
            if node.op == "placeholder":
                value = samples.get(node.target, samples.get(node.name, node.args[0] if node.args else None))
            elif node.op == "get_attr":
                value = model
                for part in node.target.split("."):
                    value = getattr(value, part)
            elif node.op == "output":
                break
            else:
                args = arguments_of(node.args, values)
                keys = map_arg(node.kwargs, values.__getitem__) if node.kwargs else {}
                if node.op == "call_module":
                    value = modules[node.target](*args, **keys)
                elif node.op == "call_method":
                    value = getattr(args[0], node.target)(*args[1:], **keys)
                else:
                    value = node.target(*args, **keys)
            values[node] = value
            if node in watched:
                # Looked at now: an in-place layer behind it would change it.
                left -= 1
                first = value[0] if isinstance(value, (tuple, list)) and value else value  # of several results
                if not isinstance(first, torch.Tensor):
                    continue  # a size
                array = _array(first)
                results = {}
                for kind, arguments in statistics.items():
                    collector = Statistic(kind, arguments)
                    collector.update(array, True)
                    results[kind] = collector.compute()
                for user, side, name in watched[node]:
                    _stat(user, side, name).update({kind: dict(r) if isinstance(r, dict) else r for kind, r in results.items()})


def profile_statistics_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Statistics of the weights of `target_weight_nodes` and of what goes into
    `target_activation_nodes`, over `num_samples` rows of `input_generator`."""
    graph = as_graph(graph)
    args = pass_args or {}
    unknown = sorted(args.keys() - _KEYS)
    if unknown:
        raise Error(f"profile_statistics: unknown key '{unknown[0]}'; it takes {', '.join(sorted(_KEYS))}")
    by = args.get("by", "type")
    if by not in ("type", "name"):
        raise Error(f"by: expected type or name, got {by!r}")
    weights = _chosen(graph, by, args.get("target_weight_nodes"))
    activations = _chosen(graph, by, args.get("target_activation_nodes"))
    _profile_weights(weights, args.get("weight_statistics") or {}, graph.modules)
    statistics = args.get("activation_statistics") or {}
    if activations and statistics:
        samples = _samples(graph, args.get("input_generator"), int(args.get("num_samples", 32)))
        _profile_activations(graph, activations, statistics, samples, args.get("profile_input_activation", True),
                             args.get("profile_output_activation", False))
    return graph, {}
