# SPDX-License-Identifier: Apache-2.0
"""The original's module paths. Its names live in deep trees and are imported from several places; here
they live where they belong, and this table says which of our modules each of the original's stands
for. Quantised layers and quantizers have a module for each operation and format, made on demand."""
from __future__ import annotations

import difflib
import dis
import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

_G = "chop.passes.graph"
_METADATA, _REPORTS, _HARDWARE, _ABSENT = f"{_G}.metadata", f"{_G}.reports", f"{_G}.hardware", "chop.absent"

LAYOUT: Dict[str, List[str]] = {
    f"{_G}.analysis": [_G],
    f"{_G}.analysis.init_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata": [_METADATA, _HARDWARE],
    f"{_G}.analysis.add_metadata.add_common_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata.add_software_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata.add_hardware_metadata": [_HARDWARE],
    f"{_G}.analysis.report": [_REPORTS],
    f"{_G}.analysis.report.report_graph": [_REPORTS],
    f"{_G}.analysis.report.report_node": [_REPORTS],
    f"{_G}.analysis.statistical_profiler": [f"{_G}.statistics"],
    f"{_G}.analysis.statistical_profiler.profile_statistics": [f"{_G}.statistics"],
    f"{_G}.analysis.quantization": [f"{_G}.costs"],
    f"{_G}.analysis.quantization.calculate_avg_bits": [f"{_G}.costs"],
    f"{_G}.analysis.flop_estimator": [f"{_G}.costs"],
    f"{_G}.analysis.flop_estimator.calculator": [f"{_G}.costs"],
    f"{_G}.analysis.flop_estimator.calculator.calc_modules": [f"{_G}.costs"],
    f"{_G}.analysis.utils": [f"{_G}.utils"],
    f"{_G}.common": [f"{_G}.utils"],
    f"{_G}.analysis.runtime": [f"{_G}.runtime"],
    f"{_G}.analysis.runtime.runtime_analysis": [f"{_G}.runtime"],
    f"{_G}.analysis.pruning": [f"{_G}.pruning"],
    f"{_G}.analysis.pruning.calculate_sparsity": [f"{_G}.pruning"],
    f"{_G}.transforms": [_G],
    f"{_G}.transforms.quantize": [f"{_G}.quantization", f"{_G}.summary"],
    f"{_G}.transforms.quantize.quantize": [f"{_G}.quantization"],
    f"{_G}.transforms.quantize.summary": [f"{_G}.summary"],
    f"{_G}.transforms.quantize.quantized_modules": [f"{_G}.layers"],
    f"{_G}.transforms.quantize.quantized_funcs": [f"{_G}.layers"],
    f"{_G}.transforms.quantize.quantizers": [f"{_G}.quantizers"],
    f"{_G}.transforms.pruning": [f"{_G}.pruning"],
    f"{_G}.transforms.pruning.prune": [f"{_G}.pruning"],
    f"{_G}.transforms.utils": [f"{_G}.utils"],
    f"{_G}.transforms.utils.metadata_value_type_cast": [f"{_G}.utils"],
    f"{_G}.transforms.verilog": [_HARDWARE],
    f"{_G}.transforms.verilog.emit_bram": [_HARDWARE],
    f"{_G}.transforms.verilog.emit_internal": [_HARDWARE],
    f"{_G}.transforms.verilog.emit_tb": [_HARDWARE],
    f"{_G}.transforms.verilog.emit_top": [_HARDWARE],
    f"{_G}.transforms.tensorrt": [_ABSENT],
    f"{_G}.transforms.tensorrt.quantize": [_ABSENT],
    f"{_G}.transforms.tensorrt.quantize.calibrate": [_ABSENT],
    f"{_G}.transforms.tensorrt.quantize.fine_tune": [_ABSENT],
    f"{_G}.interface": [f"{_G}.interfaces"],
    f"{_G}.interface.save_and_load": [f"{_G}.interfaces"],
    f"{_G}.analysis.verify": [f"{_G}.verify"],
    f"{_G}.analysis.verify.verify": [f"{_G}.verify"],
    f"{_G}.analysis.plot": [f"{_G}.verify"],
    f"{_G}.analysis.hardware": [_HARDWARE],
    f"{_G}.transforms.quantize.quant_parsers": [f"{_G}.patching"],
    f"{_G}.transforms.patching": [f"{_G}.patching"],
    f"{_G}.transforms.patching.patch_metadata": [f"{_G}.patching"],
    f"{_G}.transforms.lora": [f"{_G}.adapters"],
    f"{_G}.transforms.training": [_ABSENT],
    f"{_G}.transforms.granularity": [_ABSENT],
    f"{_G}.transforms.utils.conv_bn_fusion": [f"{_G}.patching"],
    f"{_G}.transforms.utils.logicnets_fusion": [_ABSENT],
    "chop.passes.onnx": [_ABSENT],
    "chop.passes.onnx.analysis": [_ABSENT],
    "chop.passes.utils": [f"{_G}.utils"],
    **{f"chop.passes.module{part}": ["chop.passes.modules"] for part in (
        "", ".analysis", ".analysis.report", ".analysis.quantize", ".analysis.quantize.calculate_avg_bits_module", ".transforms",
        ".transforms.quantize", ".transforms.quantize.quantize", ".transforms.attention", ".transforms.attention.attention",
        ".transforms.attention.attention_swap", ".transforms.gptq", ".transforms.gptq.run", ".transforms.rotation",
        ".transforms.rotation.rotate", ".transforms.autosharding", ".transforms.snn", ".analysis.autosharding")},
    "chop.nn": [],
    "chop.nn.modules": ["torch.nn", f"{_G}.adapters"],
    "chop.nn.modules.identity": ["torch.nn"],
    "chop.nn.modules.lora": [f"{_G}.adapters"],
    "chop.nn.backward": [_ABSENT],
    "chop.nn.functional": [_ABSENT],
    "chop.nn.mx": [_ABSENT],
    "chop.nn.snn": [_ABSENT],
    "chop.nn.quantized": [f"{_G}.layers"],
    "chop.nn.quantized.modules": [f"{_G}.layers"],
    "chop.nn.quantized.functional": [f"{_G}.functions"],
    "chop.distributed": [_ABSENT],
    "chop.ir.onnx": [_ABSENT],
    "chop.ir.graph.mase_graph_metadata": ["chop.ir.graph.mase_metadata"],
    "chop.pipelines.auto_pipeline": ["chop.pipelines"],
    "chop.dataset.nlp": [_ABSENT],
    "chop.models.patched": [_ABSENT],
    "chop.models.patched.bert": [_ABSENT],
    "chop.nn.quantizers": [f"{_G}.quantizers"],
    "chop.models.utils": ["chop.models", _ABSENT],
    "chop.models.yolo": [_ABSENT],
    "chop.models.yolo.yolov8": [_ABSENT],
    "chop.models.physical": ["chop.models"],
    "chop.ir.common": ["chop.passes.graph.utils"],
    "chop.actions.train": ["chop.actions"],
    "chop.actions.test": ["chop.actions"],
    "chop.actions.search": ["chop.actions"],
    "chop.actions.search.search": ["chop.actions"],
    "chop.actions.search.search_space": ["chop.actions.search_parts"],
    "chop.actions.search.search_space.base": ["chop.actions.search_parts"],
    "chop.actions.search.strategies": ["chop.actions.search_parts"],
    "chop.actions.search.strategies.base": ["chop.actions.search_parts"],
    "chop.actions.search.strategies.runners": ["chop.actions.search_parts"],
    "chop.actions.search.strategies.runners.hardware": ["chop.actions.search_parts"],
    "chop.actions.search.strategies.runners.software": ["chop.actions.search_parts"],
    "chop.actions.transform": ["chop.actions"],
    "chop.actions.simulate": ["chop.actions"],
    "chop.actions.emit": ["chop.actions"],
    "chop.actions.accelerate_peft": [_ABSENT],
    "chop.pipelines.compression": ["chop.pipelines"],
    "chop.plt_wrapper": ["chop.actions"],
    "chop.tools.registry": ["chop.tools.utils"],
    "chop.tools.check_dependency": [_ABSENT],
}
# Below these there is a module for each operation or format, under its name or one of the original's.
_OPS = (f"{_G}.transforms.quantize.quantized_modules.", "chop.nn.quantized.modules.")
_FORMATS = (f"{_G}.transforms.quantize.quantizers.", "chop.nn.quantizers.")
_MORE_OPS = {"conv", "pool2d", "batch_norm1d", "batch_norm2d", "group_norm", "instance_norm2d", "layer_norm", "rms_norm"}
_MORE_FORMATS = {"block_fp", "block_log", "block_minifloat", "minifloat", "quantizers_for_hw", "utils"}


def _sources(name: str) -> Optional[List[str]]:
    if name in LAYOUT:
        return LAYOUT[name]
    from mase import _native

    for prefixes, known in ((_OPS, lambda: {*_native.ops(), *_MORE_OPS}), (_FORMATS, lambda: {*_native.formats(), *_MORE_FORMATS})):
        for prefix in prefixes:
            if name.startswith(prefix) and name[len(prefix):] in known():
                return LAYOUT[prefix[:-1]]
    return None


def missing(module: str, name: str, known: Any) -> Exception:
    """What to raise for a name that a module has not: it says the nearest one. Python takes an AttributeError's words away from
    `from module import name`, so that is an ImportError here."""
    found = difflib.get_close_matches(name, [str(k) for k in known], 1, 0.6)
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_name in ("absent_or_missing", "__getattr__"):
        frame = frame.f_back  # where the name was asked for
    importing = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
    text = f"{module} has no '{name}'" + (f"; did you mean '{found[0]}'?" if found else "")
    return ImportError(text, name=name) if importing else AttributeError(text)


def absent_or_missing(module: str, name: str, known: Any) -> Any:
    """For a name that a module has not: what stands for one of the original's that is refused with a reason, or the error."""
    absent = importlib.import_module(_ABSENT)
    if name in absent.REASONS:
        return getattr(absent, name)
    error = missing(module, name, known)
    raise error


class _Alias(ModuleType):
    """Looks names up in our modules when they are asked for. Where a function has the name of its module
    (chop.actions.train), importing the module puts it in the function's place: it is then called like it."""

    _sources: List[str] = []
    _hides: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for source in self._sources:
            module = importlib.import_module(source)
            if hasattr(module, name):
                found = getattr(module, name)
                return found._hides if isinstance(found, _Alias) and found._hides is not None else found
        child = f"{self.__name__}.{name}"
        if _sources(child) is not None:
            return importlib.import_module(child)
        return absent_or_missing(self.__name__, name, dir(self))

    def __call__(self, *args: Any, **keys: Any) -> Any:
        if self._hides is None:
            raise TypeError(f"module '{self.__name__}' is not callable")
        return self._hides(*args, **keys)

    def __dir__(self) -> Sequence[str]:
        return sorted({name for source in self._sources for name in dir(importlib.import_module(source))})


class MachopFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Where the package lay until 2024: machop.chop is chop, and what is below it the same modules. Comes first, or the files of
    chop would be loaded twice."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "machop" or name.startswith("machop."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        own = spec.name[len("machop."):]
        if not own:
            return None
        if own.partition(".")[0] != "chop":
            raise ModuleNotFoundError(f"No module named '{spec.name}'", name=spec.name)
        return _Same(spec.name, importlib.import_module(own))

    def exec_module(self, module: ModuleType) -> None:
        if isinstance(module, _Same):
            sys.modules[module.__name__] = module._is


class _Same(ModuleType):
    """Stands for a module while it is imported under another name."""

    def __init__(self, name: str, module: ModuleType):
        super().__init__(name)
        self._is = module


class LayoutFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: a file of that name wins."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("chop.") or _sources(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        module = _Alias(spec.name)
        module._sources = _sources(spec.name) or []
        return module

    def exec_module(self, module: ModuleType) -> None:
        parent, _, name = module.__name__.rpartition(".")
        function = getattr(sys.modules.get(parent), "__dict__", {}).get(name)
        if callable(function):
            module.__dict__["_hides"] = function
