# SPDX-License-Identifier: Apache-2.0
"""hls4ml reads the QONNX files that ch export writes of the jet networks, as they are: without qonnx's
clean-up. Needs a Python with hls4ml and qonnx from PyPI; MASE_ONNX_PYTHON names it (default: this
one)."""
import os

from onnx_peers import export_quantised, folder, need

need("hls4ml", "qonnx")
import hls4ml
from qonnx.core.modelwrapper import ModelWrapper

for name, dense in (("jsc-tiny", 1), ("jsc-toy", 3), ("jsc-s", 5), ("jsc-10x", 3)):
    path = os.path.join(folder, name + ".onnx")
    export_quantised(name, path, "qonnx")
    model = ModelWrapper(path)
    config = hls4ml.utils.config.config_from_onnx_model(model, granularity="name", backend="Vivado")
    converted = hls4ml.converters.convert_from_onnx_model(
        model, output_dir=os.path.join(folder, name), project_name="network", backend="Vivado",
        hls_config=config)
    layers = [layer.class_name for layer in converted.get_layers()]
    print(name, layers)
    assert layers.count("Dense") == dense, layers
