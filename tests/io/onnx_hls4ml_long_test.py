# SPDX-License-Identifier: Apache-2.0
"""hls4ml reads the QONNX files that ch export writes of all jet networks, as they are: without qonnx's
clean-up, and what it compiles of them gives our outputs once its own numbers are wide enough. With its
defaults it keeps the scales of batch norms and the last results in fixed<16, 6>, cut off: a value near
the edge of a rounding then falls a step (1/32) further, by 0.030 in jsc-toy. hls4ml raises where its
compiler fails, and so does this test. Needs a Python with hls4ml and qonnx from PyPI; MASE_ONNX_PYTHON
names it (default: this one)."""
import os

from onnx_peers import ch, export_quantised, folder, need, predict

need("numpy", "hls4ml", "qonnx")
import hls4ml
import numpy as np
from qonnx.core.modelwrapper import ModelWrapper


def converted_by_hls4ml(name, path, widths=None):
    model = ModelWrapper(path)
    config = hls4ml.utils.config.config_from_onnx_model(model, granularity="name", backend="Vivado")
    if widths:
        config["Model"]["Precision"] = {"default": widths}
        for layer in config["LayerName"].values():
            for what, precision in layer.get("Precision", {}).items():
                if precision == "auto" or what in ("result", "accum"):
                    layer["Precision"][what] = widths
    return hls4ml.converters.convert_from_onnx_model(
        model, output_dir=os.path.join(folder, name), project_name="network", backend="Vivado",
        hls_config=config)


networks = [line.split()[0] for line in ch("--info", "model").splitlines() if line.startswith("jsc-")]
assert len(networks) >= 9, networks
for name in networks:
    dense = ch("summary", name).count("(Linear)")
    assert dense > 0
    path = os.path.join(folder, name + ".onnx")
    export_quantised(name, path, "qonnx")
    converted = converted_by_hls4ml(name, path)
    layers = [layer.class_name for layer in converted.get_layers()]
    print(name, layers)
    assert layers.count("Dense") == dense, layers
    if name != "jsc-toy":
        continue
    x = (np.round(np.random.default_rng(0).standard_normal((64, 16)) * 32) / 32).astype(np.float32)
    ours = predict(path, [x])[0]
    for widths, limit in ((None, 2.0 ** -5), ("fixed<40,16>", 1e-6)):
        converted = converted_by_hls4ml(name + ("_wide" if widths else "_default"), path, widths)
        converted.compile()
        difference = np.abs(converted.predict(x).reshape(ours.shape) - ours).max()
        print(f"{name} compiled, numbers {widths or 'as hls4ml chooses them'}: {difference:.2g}")
        assert difference <= limit, difference
