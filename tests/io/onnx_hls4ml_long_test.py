# SPDX-License-Identifier: Apache-2.0
"""hls4ml reads the QONNX files that ch export writes of the jet networks, as they are: without qonnx's
clean-up. Needs a Python with hls4ml and qonnx from PyPI; MASE_ONNX_PYTHON names it (default: this
one)."""
import os
import subprocess
import sys
import tempfile

python = os.environ.get("MASE_ONNX_PYTHON")
if python and os.path.abspath(python) != sys.executable and "MASE_AGAIN" not in os.environ:
    sys.exit(subprocess.run([python, __file__], env={**os.environ, "MASE_AGAIN": "1"}).returncode)
try:
    import hls4ml
    from qonnx.core.modelwrapper import ModelWrapper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

CH = os.environ["MASE_CH"]
folder = tempfile.mkdtemp()
text = '[passes.quantize]\nby = "type"\n[passes.quantize.linear.config]\nname = "integer"\n'
for operand in ("data_in", "weight", "bias"):
    text += f"{operand}_width = 8\n{operand}_frac_width = 5\n"
with open(os.path.join(folder, "quantize.toml"), "w", encoding="utf-8") as file:
    file.write(text)
for name, dense in (("jsc-tiny", 1), ("jsc-toy", 3), ("jsc-s", 5), ("jsc-10x", 3)):
    path = os.path.join(folder, name + ".onnx")
    subprocess.run([CH, "export", name, "--config", "quantize.toml", "--to", path, "--flavour", "qonnx"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    model = ModelWrapper(path)
    config = hls4ml.utils.config.config_from_onnx_model(model, granularity="name", backend="Vivado")
    converted = hls4ml.converters.convert_from_onnx_model(
        model, output_dir=os.path.join(folder, name), project_name="network", backend="Vivado",
        hls_config=config)
    layers = [layer.class_name for layer in converted.get_layers()]
    print(name, layers)
    assert layers.count("Dense") == dense, layers
