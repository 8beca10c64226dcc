# SPDX-License-Identifier: Apache-2.0
"""Networks by name: the built-in ones, and those that a script registers."""
from __future__ import annotations

import enum
import inspect
import os
from typing import Any, Callable, Dict, Optional, Union

from mase import _native
from mase._native import Error


class ModelSource(enum.Enum):
    TORCHVISION = "torchvision"
    TOY = "toy"
    PHYSICAL = "physical"
    VISION_OTHERS = "vision_others"
    HF_TRANSFORMERS = "hf_transformers"
    MANUAL = "manual"
    NERF = "nerf"


class ModelTaskType(enum.Enum):
    NLP = "nlp"
    VISION = "vision"
    PHYSICAL = "physical"
    NERF = "nerf"


class MaseModelInfo:
    """What kind of network it is."""

    def __init__(self, name: str, model_source: Any = "manual", task_type: Any = "physical", **facts: Any):
        self.name = name
        self.model_source = ModelSource(model_source) if isinstance(model_source, str) else model_source
        self.task_type = ModelTaskType(task_type) if isinstance(task_type, str) else task_type
        self.is_fx_traceable = facts.pop("is_fx_traceable", True)
        self.is_quantized = facts.pop("is_quantized", False)
        self.image_classification = facts.pop("image_classification", self.task_type is ModelTaskType.VISION)
        self.physical_data_point_classification = facts.pop("physical_data_point_classification",
                                                            self.task_type is ModelTaskType.PHYSICAL)
        self.__dict__.update(facts)

    is_physical_model = property(lambda self: self.task_type is ModelTaskType.PHYSICAL)
    is_vision_model = property(lambda self: self.task_type is ModelTaskType.VISION)
    is_nlp_model = property(lambda self: False)
    is_nerf_model = property(lambda self: False)

    def __repr__(self) -> str:
        return f"MaseModelInfo({self.name!r}, {self.model_source}, {self.task_type})"


class ModelFactory:
    """Makes networks of one class, as what the original keeps for a name."""

    def __init__(self, model: Callable):
        self.model = model

    def __call__(self, *args: Any, **keys: Any) -> Any:
        return self.model(*args, **keys)

    def get_model(self, *args: Any, **keys: Any) -> Any:
        return self.model(*args, **keys)


class _Registered:
    def __init__(self, factory: Callable, info: MaseModelInfo):
        self.factory, self.info = factory, info


_registered: Dict[str, _Registered] = {}
_VISION = ("cnv", "lenet", "lfc", "mobilenet", "resnet", "toy_convnet", "vgg")


def register_model(name: str, factory: Optional[Callable] = None, info: Optional[MaseModelInfo] = None) -> Any:
    """Makes a class or function a model: get_model(name, ...) then calls it with the data set's info, or
    without arguments if it takes none.

        @register_model("jsc-mine")
        class Mine(torch.nn.Module): ...
    """
    def register(target: Callable) -> Callable:
        _registered[name] = _Registered(target, info or MaseModelInfo(name))
        return target

    return register if factory is None else register(factory)


def get_model_info(name: str) -> MaseModelInfo:
    if name in _registered:
        return _registered[name].info
    if name in _native.models():
        vision = name.startswith(_VISION)
        source = "physical" if name.startswith("jsc") else "toy" if name.startswith("toy") else "vision_others" if vision else "manual"
        return MaseModelInfo(name, source, "vision" if vision else "physical")
    if str(name).endswith(".toml"):
        return MaseModelInfo(name)
    raise Error(f"{name}: there is no network of this name; there are {', '.join(sorted({*_native.models(), *_registered}))}; "
                "register_model(name, class) adds one")


class NumpyNetwork:
    """A network without torch: callable on arrays, and what MaseGraph takes."""

    def __init__(self, graph: Any):
        self.graph, self.training = graph, False

    def __call__(self, x: Any = None, **inputs: Any) -> Any:
        return self.graph(x if x is not None else next(iter(inputs.values())))

    forward = __call__

    def state_dict(self) -> dict:
        return self.graph.state_dict()

    def load_state_dict(self, tensors: dict) -> None:
        self.graph.load_state_dict(tensors)

    def eval(self) -> "NumpyNetwork":
        return self

    train = eval

    def __repr__(self) -> str:
        return repr(self.graph)


def _weights_of(name: str) -> str:
    """A file NAME*.pth, .pt, .safetensors, .ckpt or .mz among the checkpoints of MASE_DATA; nothing is downloaded."""
    folder = os.path.join(os.environ.get("MASE_DATA") or os.path.expanduser("~/.cache/mase"), "checkpoints")
    files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [file for file in files if file.startswith(name) and file.endswith((".pth", ".pt", ".safetensors", ".ckpt", ".mz"))]
    if len(found) != 1:
        raise Error(f"pretrained: nothing is downloaded here; expected one file {name}*.pth, .pt, .safetensors, .ckpt or .mz in {folder}, "
                    f"found {', '.join(found) or 'none'}; or give checkpoint=FILE")
    return os.path.join(folder, found[0])


def _built(name: str, dataset_info: Any) -> Any:
    """The built-in network with weights drawn by torch's generator, or by seed 0 without torch."""
    from mase.graph import load

    try:
        import torch
    except ImportError:
        return NumpyNetwork(load(name))
    from mase.torch_export import network_of

    return network_of(load(name, seed=int(torch.randint(0, 2**31 - 1, ()).item())))


def get_model(name: Any = None, task: Union[str, bool] = "cls", dataset_info: Any = None, pretrained: bool = False,
              checkpoint: Any = None, quant_config: Optional[dict] = None, **options: Any) -> Any:
    """A network by name, as a torch module (without torch: callable on arrays).

    `checkpoint`: a file with its weights. In the 2025 form, get_model(checkpoint, pretrained), the first
    argument is the name as well.
    """
    if name is None:
        name, checkpoint = checkpoint, None
    if isinstance(task, bool):  # the 2025 form's second argument
        pretrained = task
        task = "cls"
    name = os.fspath(name)
    if pretrained and checkpoint is None:
        checkpoint = _weights_of(name)
    if task not in ("cls", "classification", "physical", "regression"):
        raise Error(f"task: there are no networks for {task!r} here; use cls")
    if name in _registered:
        factory = _registered[name].factory
        wanted = [p for p in inspect.signature(factory).parameters.values()
                  if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
        model = factory(dataset_info) if wanted else factory()
    else:
        get_model_info(name)  # says which names there are
        model = _built(name, dataset_info)
    if checkpoint is not None:
        from chop.tools.checkpoint_load import load_model

        kind = {".mz": "mz", ".ckpt": "pl"}.get(os.path.splitext(os.fspath(checkpoint))[1], "pt")
        model = load_model(checkpoint, kind, model)
    if quant_config is not None:
        from chop.ir.graph.mase_graph import MaseGraph
        from chop.passes.graph.quantization import quantize_transform_pass

        model = quantize_transform_pass(MaseGraph(model), quant_config)[0].model
    return model


def register_mase_model(name: str, checkpoints: Any = (), **facts: Any) -> Callable:
    """The newest form of register_model: a decorator with the network's facts (model_source, task_type, ...)."""
    info = MaseModelInfo(name, **{key: value for key, value in facts.items() if value is not None})
    return register_model(name, info=info)


def register_mase_checkpoint(name: str) -> Callable:
    """A decorator for a function that makes a network with its weights: get_model(name) then calls it."""
    return register_model(name)


def get_tokenizer(name: Any, checkpoint: Any = None) -> Any:
    """The tokenizer of a folder (chop.tools.get_tokenizer)."""
    from chop.tools.huggingface import get_tokenizer as of_folder

    return of_folder(checkpoint or name)


def __getattr__(name: str) -> Any:
    from chop._layout import absent_or_missing

    return absent_or_missing("chop.models", name, [key for key in globals() if not key.startswith("_")])
