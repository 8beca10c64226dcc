# SPDX-License-Identifier: Apache-2.0
"""Names of the original that have nothing to stand for here. They can be imported, because import blocks are
copied from one script to the next; a call says what is missing and what to use instead."""
from __future__ import annotations

from typing import Any, Dict, List

from chop._layout import missing
from mase._native import Error

_TENSORRT = "TensorRT is not used here; number formats are those of mase.formats, hardware that of mase.emit"
_YOLO = "there is no YOLO here; any module that torch.fx traces can be given to MaseGraph"
_SHARDS = "one network is not spread over several machines here; training is, by MPI (ch train)"
_SPIKES = "there are no spiking networks here"
_ATTENTION = "attention is quantised by its layers and products: quantize_transform_pass on a graph, quantize_module_transform_pass on a module"
_TABLES = "layers of tables are the library's own (table_linear, docs/hardware.md); --style lut makes tables of trained neurons"
_ANALOG = "analog and optical arithmetic is not emulated here"
_TEXT = "texts are read from local folders: chop.tools.get_tokenized_dataset, docs/text.md"
REASONS: Dict[str, str] = {
    **{name: _TENSORRT for name in ("tensorrt_calibrate_transform_pass", "tensorrt_fake_quantize_transform_pass",
                                    "tensorrt_fine_tune_transform_pass", "tensorrt_engine_interface_pass")},
    **{name: _YOLO for name in ("get_yolo_detection_model", "patch_yolo")},
    **{name: _SHARDS for name in ("autosharding_analysis_pass", "resharding_transform_pass", "partition_to_multi_device_transform_pass",
                                  "MaseLauncher", "MaseShardingSpec", "AutoPipelineForDistributedInference")},
    **{name: _SPIKES for name in ("ann2snn_transform_pass", "ann2snn_module_transform_pass")},
    **{name: _ATTENTION for name in (
        "BertSelfAttentionInteger", "BertSelfAttentionHeadInteger", "ViTAttentionInteger", "ViTSelfAttentionHeadInteger",
        "GroupedQueryAttentionInteger", "GroupedQueryAttention", "BertConfig", "BertModel", "LlamaAttentionMXInt", "LlamaAttentionMXFP",
        "Qwen3AttentionMXInt", "Qwen3AttentionMXFP", "IntLayerNormFunc", "fixed_softermax")},
    **{name: "another forward for attention is no module of ours; attention_swap_transform_pass shares keys and values among heads (mgqa)"
       for name in ("MLA", "MGQALayers")},
    **{name: _TABLES for name in ("LinearLUT", "Conv2dLUT", "LinearLogicNets", "Conv2DLogicNets", "logicnets_fusion_transform_pass")},
    **{name: _ANALOG for name in ("pim_matmul_transform_pass", "optical_transformer_module_transform_pass", "bitflip_module_transform_pass")},
    **{name: _TEXT for name in ("TextEntailmentDatasetMNLI", "get_nlp_dataset", "get_nlp_dataset_info")},
    "LinearMXIntHardware": "blocks of hardware are those of the format mxint (LinearMXInt, block_size)",
    "mxint_hardware": "blocks of hardware are those of the format mxint (mxint_quantizer)",
    "MaseOnnxGraph": "ONNX files are read by mase.load and written by ch export",
    "onnx_annotate_transform_pass": "ONNX files are written by ch export",
    "onnx_runtime_interface_pass": "ONNX files are written by ch export; networks are timed by ch bench",
    "export_fx_graph_analysis_pass": "ONNX files are read by mase.load; mase.to_torch gives their graph",
    "raise_granularity_transform_pass": "layers that were written in parts are found again when a file is read (ch import)",
    "run_cosim_analysis_pass": "designs are simulated by chop.actions.simulate and mase.simulate",
    "get_synthesis_results": "designs are synthesised by ch synth",
    "test_verilog_analysis_pass": "designs are simulated by chop.actions.simulate and mase.simulate",
    "training_base_pass": "operands of the backward products are rounded by the library's training: mase.train(..., passes={'training_base': ...})",
    "custom_linear": "operands of the backward products are rounded by the library's training: mase.train(..., passes={'training_base': ...})",
    "add_movement_metadata_analysis_pass": "no criterion of the original reads it; prune takes l1-norm and random",
}
__all__ = sorted([*REASONS, "check_deps_tensorRT_pass", "train"])


def check_deps_tensorRT_pass(silent: bool = True) -> bool:
    """Whether TensorRT can be used."""
    return False


def train(*args: Any, **keys: Any) -> Any:
    """accelerate_peft's."""
    raise Error("accelerate_peft.train: insert_lora_adapter_transform_pass adds adapters to a graph, and get_trainer trains it")


def __getattr__(name: str) -> Any:
    if name not in REASONS:
        raise missing("chop", name, __all__)

    def absent(*args: Any, **keys: Any) -> Any:
        raise Error(f"{name}: {REASONS[name]}")

    absent.__name__ = absent.__qualname__ = name
    return absent


def __dir__() -> List[str]:
    return __all__
