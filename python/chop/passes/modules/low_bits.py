# SPDX-License-Identifier: Apache-2.0
"""The library's methods for few bits on torch's language models: the network becomes a graph of the library, the pass runs there, and
the weights come back."""
from __future__ import annotations

import copy
import os
import tempfile
from typing import Any, Dict, List

from chop.tools.logger import get_logger
from mase._native import Error

_KEYS = {"model_name", "device", "dataset", "nsamples", "seqlen", "format", "weight_config", "percdamp", "damping", "order", "block_columns",
         "cali_batch_size", "hf_token", "quantile_search", "clip_search_y", "checkpoint_dir", "max_layers"}
_BLOCKS = ("layers", "h", "layer", "block", "blocks")


def _tokens(config: Dict[str, Any]) -> Any:
    """Calibration rows: token ids as an array or tensor, a .npy file of them, or a text with the tokenizer of `model_name`."""
    import numpy
    import torch

    data, length, count = config.get("dataset"), int(config.get("seqlen", 256)), int(config.get("nsamples", 128))
    if data is None:
        raise Error("dataset: is missing; give token ids [rows, tokens], a .npy file of them, or a text file and model_name, a tokenizer's folder")
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if not os.path.isfile(path):
            raise Error(f"dataset: {path}: there is no such file; nothing is downloaded here, give a .npy file of token ids or a text file")
        if path.endswith(".npy"):
            data = numpy.load(path, allow_pickle=False)
        else:
            from mase.tokenizer import Tokenizer

            with open(path, encoding="utf-8") as file:
                stream = Tokenizer(config["model_name"]).encode(file.read(), special=False)["ids"]
            rows = len(stream) // length
            if not rows:
                raise Error(f"dataset: {path}: {len(stream)} tokens are fewer than one row of {length} (seqlen)")
            data = numpy.asarray(stream[: rows * length]).reshape(rows, length)
    ids = torch.as_tensor(numpy.asarray(data) if not isinstance(data, torch.Tensor) else data)
    if ids.dim() != 2 or ids.is_floating_point() or not len(ids):
        raise Error(f"dataset: expected whole numbers [rows, tokens], got {list(ids.shape)} of {ids.dtype}")
    return ids[:count, :length].to(torch.int64)


def twin(network: Any, ids: Any) -> Any:
    """The network as a graph of the library: by its folder, whose families the library reads itself, or by its code, for rows of this
    length."""
    from chop.ir.graph.huggingface import graph_of, is_huggingface
    from mase.graph import load
    from mase.torch_import import from_torch

    if is_huggingface(network) and hasattr(network, "save_pretrained"):
        with tempfile.TemporaryDirectory(prefix="mase-") as folder:
            network.save_pretrained(folder)
            try:
                return load(folder)
            except Error as error:
                get_logger("chop").info(f"{type(network).__name__}: its code is followed, as its folder is not read: {error}")
    graph = graph_of(network, ["input_ids"]) if is_huggingface(network) or hasattr(network, "config") else network
    return from_torch(graph, {"input_ids": ids[:2]} if graph is not network else ids[:2])


def _weight_config(format: str, given: Dict[str, Any]) -> Dict[str, Any]:
    return {"name": format, "weight_only": True, **{key if key.startswith("weight_") else f"weight_{key}": value for key, value in given.items()}}


def _inside(native: Any) -> List[str]:
    """The linear layers of the blocks; all of them where there are none."""
    linear = [(node.name, node.target.split(".")) for node in native.nodes if node.op == "call_module" and node.mase_op == "linear"]
    found = [name for name, parts in linear if any(a in _BLOCKS and b.isdigit() for a, b in zip(parts, parts[1:]))]
    return found or [name for name, _ in linear]


def run_gptq(network: Any, gptq_config: Dict[str, Any]) -> Any:
    """A network whose linear layers (those of its blocks) have weights on the grid of `format` with `weight_config`, chosen by the
    library's pass gptq on the calibration rows `dataset`; they are plain layers of float weights. What it found is in
    `network.gptq_report`. The network that came in stays as it is."""
    import torch

    config = dict(gptq_config)
    unknown = sorted(config.keys() - _KEYS)
    if unknown:
        raise Error(f"gptq: unknown key '{unknown[0]}'; it takes {', '.join(sorted(_KEYS))}")
    for key in ("format", "weight_config"):
        if key not in config:
            raise Error(f"gptq: {key} is missing")
    for key in ("checkpoint_dir", "max_layers", "clip_search_y"):
        if config.get(key):
            raise Error(f"{key}: is not taken here; all layers are done at once, and ranges are searched by the pass clip_search")
    if not str(config.get("device", "cpu")).startswith("cpu"):
        raise Error(f"device: everything runs on the processor here, got {config['device']!r}")
    ids = _tokens(config)
    native = twin(network, ids)
    names = _inside(native)
    rules: Dict[str, Any] = {name: {"config": _weight_config(config["format"], config["weight_config"])} for name in names}
    native.run_pass("quantize", {"by": "name", **rules}, print=None)
    options = {"order": config.get("order"), "damping": config.get("damping", config.get("percdamp")), "block_columns": config.get("block_columns")}
    report = native.run_pass("gptq", {key: value for key, value in options.items() if value is not None}, samples=ids.numpy(), print=None)
    targets = [node.target for node in native.nodes if node.name in names]
    network = copy.deepcopy(network)
    with torch.no_grad():
        for target in targets:
            weight = network.get_submodule(target).weight
            weight.copy_(torch.from_numpy(native.modules[target].used()["weight"].copy()).to(weight))
    network.gptq_report = report
    return network


def _own_head(model: Any) -> None:
    """A head that shares its table with the embedding gets its own."""
    import torch

    if model.lm_head.weight is model.model.embed_tokens.weight:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        if hasattr(getattr(model, "config", None), "tie_word_embeddings"):
            model.config.tie_word_embeddings = False  # or its files would share them again


def _rotated(model: Any, online_rotate: bool) -> Any:
    import torch

    if online_rotate:
        raise Error("online_rotate: rotations while the network runs would be another network; a torch module keeps its forward")
    _own_head(model)
    native = twin(model, torch.zeros(2, 8, dtype=torch.int64))
    native.run_pass("rotate", {}, print=None)
    own = dict(model.named_parameters())
    turned = {name: value for name, value in native.state_dict().items() if name in own}
    lost = [name for name in own if name not in turned]
    if lost:
        raise Error(f"rotate: the rotated network has no '{lost[0]}', which the module has")
    with torch.no_grad():
        for name, value in turned.items():
            own[name].copy_(torch.from_numpy(value.copy()).to(own[name]))
    return model


def rotate_llama(model: Any, online_rotate: bool = False) -> Any:
    """Turns the weights of a decoder so that no channel sticks out (QuaRot), gains of norms fused first, in place, by the library's pass
    rotate, which checks that outputs stay. Returns the model."""
    return _rotated(model, online_rotate)


def rotate_qwen3(model: Any, online_rotate: bool = False) -> Any:
    """As rotate_llama."""
    return _rotated(model, online_rotate)


def fuse_rms_norms(model: Any) -> Any:
    """Gains of a decoder's norms into the linear layers behind them, in place; gains are 1 afterwards. A head that shares its table with
    the embedding gets its own first."""
    import torch

    _own_head(model)
    pairs = [(model.model.norm, [model.lm_head])]
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        pairs += [(layer.input_layernorm, [attention.q_proj, attention.k_proj, attention.v_proj]),
                  (layer.post_attention_layernorm, [mlp.up_proj, mlp.gate_proj])]
    with torch.no_grad():
        for norm, linears in pairs:
            gain = norm.weight.double()
            for linear in linears:
                linear.weight.copy_((linear.weight.double() * gain).to(linear.weight.dtype))
            norm.weight.fill_(1.0)
    return model


def replace_rms_norms(model: Any) -> Any:
    """Checks that all gains of the norms are 1, as fuse_rms_norms leaves them: norms need not be replaced for that."""
    import torch

    for name, part in model.named_modules():
        if type(part).__name__.endswith("RMSNorm") and name.rpartition(".")[2] not in ("q_norm", "k_norm"):
            if not torch.equal(part.weight, torch.ones_like(part.weight)):
                raise Error(f"{name}: its gains are not 1; call fuse_rms_norms(model) first")
    return model
