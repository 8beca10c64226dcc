# SPDX-License-Identifier: Apache-2.0
"""The hardware lab's notebook, call by call: metadata without values, precisions edited by hand, emit passes in any order, the
simulation; and that what was edited is in the design, or refused."""
import itertools
import json
import os
import shutil
import tempfile
import unittest

import package

package.need_torch()
import torch  # noqa: E402
from torch import nn  # noqa: E402

import mase  # noqa: E402
from chop.actions import simulate  # noqa: E402
from chop.ir.graph.mase_graph import MaseGraph  # noqa: E402
from chop.passes.graph.analysis import (add_common_metadata_analysis_pass, add_hardware_metadata_analysis_pass,  # noqa: E402
                                        init_metadata_analysis_pass, report_node_type_analysis_pass)
from chop.passes.graph.hardware import edited  # noqa: E402
from chop.passes.graph.transforms import (emit_bram_transform_pass, emit_cocotb_transform_pass,  # noqa: E402
                                          emit_internal_rtl_transform_pass, emit_verilog_top_transform_pass,
                                          emit_vivado_project_transform_pass, quantize_transform_pass)

PASSES = [emit_verilog_top_transform_pass, emit_internal_rtl_transform_pass, emit_bram_transform_pass, emit_cocotb_transform_pass]


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)

    def forward(self, x):
        x = torch.flatten(x, start_dim=1, end_dim=-1)
        return torch.nn.functional.relu(self.fc1(x))


def quantised(floor=True, width=8, frac=3, out=True):
    torch.manual_seed(0)
    mg = MaseGraph(model=MLP())
    mg, _ = init_metadata_analysis_pass(mg, None)
    mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": {"x": torch.randn((1, 2, 2))}, "add_value": False})
    config = {"name": "fixed", "floor": floor}
    for operand in ("data_in", "weight", "bias") + (("data_out",) if out else ()):
        config.update({f"{operand}_width": width, f"{operand}_frac_width": frac})
    return quantize_transform_pass(mg, {"by": "type", "default" if out else "linear": {"config": config}})[0]


def edit(mg, precision=(8, 3), nodes=None):
    for node in mg.fx_graph.nodes:
        if nodes is not None and node.name not in nodes:
            continue
        for side in ("args", "results"):
            for entry in node.meta["mase"]["common"][side].values():
                if isinstance(entry, dict):
                    entry["type"] = "fixed"
                    entry["precision"] = list(precision)
    return mg


class Lab(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.home = os.environ.get("HOME")
        os.environ["HOME"] = self.scratch.name

    def tearDown(self):
        if self.home is not None:
            os.environ["HOME"] = self.home
        self.scratch.cleanup()

    def test_the_notebook(self):
        mg = quantised()
        report_node_type_analysis_pass(mg)
        mg, _ = add_hardware_metadata_analysis_pass(edit(mg))
        for function in PASSES:
            mg, found = function(mg)
        self.assertEqual(mg.meta["mase"]["hardware"]["project_dir"], os.path.join(self.scratch.name, ".mase", "top"))
        self.assertIn("sim/top_tb.sv", found["files"])
        rtl = os.path.join(self.scratch.name, ".mase", "top", "hardware", "rtl", "top.sv")
        self.assertTrue(os.path.exists(rtl))
        if shutil.which("verilator") or shutil.which("iverilog"):
            result = simulate(skip_build=False, skip_test=False)
            self.assertEqual((result.rows, result.mismatches), (500, 0))
            self.assertIsNone(simulate(skip_test=True))
            with open(rtl) as file:
                text = file.read()
            with open(rtl.replace("top.sv", "fc1.sv")) as file:
                layer = file.read()
            with open(rtl.replace("top.sv", "fc1.sv"), "w") as file:  # a fault is found
                file.write(layer.replace(" + ", " - ", 1))
            self.assertNotEqual(layer, layer.replace(" + ", " - ", 1))
            with self.assertRaises(mase.Error):
                simulate(simulator="iverilog" if shutil.which("iverilog") else "verilator")
            self.assertIn("module top", text)

    def test_emit_passes_in_any_order(self):
        wanted = None
        for number, order in enumerate(itertools.permutations(PASSES)):
            if number % 5:
                continue
            mg, project = edit(quantised()), os.path.join(self.scratch.name, str(number))
            found = {}
            for function in order:
                mg, found[function.__name__] = function(mg, {"project_dir": project})
            files = {name: facts.get("files") for name, facts in found.items()}
            wanted = wanted or files
            self.assertEqual(files, wanted)
        mg, found = emit_vivado_project_transform_pass(mg, {"project_dir": project})
        self.assertTrue(any(file.endswith(".tcl") for file in found["files"]))

    def test_edited_precisions_are_in_the_design(self):
        # Without an output format the layer's result is exact; the edited one rounds it, down where the layer rounds down.
        mg = edit(quantised(out=False), (8, 3))
        mg, _ = add_hardware_metadata_analysis_pass(mg)
        native = edited(mg)
        self.assertEqual(native.modules["fc1"].config["data_out_frac_width"], 3)
        x = torch.randn(50, 2, 2)
        y = torch.from_numpy(native(x.numpy()))
        self.assertTrue(bool(((y * 8) == (y * 8).round()).all()))
        exact = mg.model(x)
        self.assertFalse(torch.equal(y, exact))
        whole = torch.relu(torch.floor(mg.model.fc1(torch.flatten(x, 1)) * 8) / 8)
        torch.testing.assert_close(y, whole, rtol=0, atol=0)
        mg = edit(quantised(), (6, 2))
        mg, found = emit_verilog_top_transform_pass(mg, {"project_dir": os.path.join(self.scratch.name, "six")})
        with open(os.path.join(found["folder"], "manifest.json")) as file:
            ports = json.load(file)
        self.assertIn('"width": 6', json.dumps(ports))
        with self.assertRaisesRegex(mase.Error, "nothing rounds between"):
            emit_verilog_top_transform_pass(edit(quantised(), (6, 2), ("x", "flatten")))
        mg = quantised()
        next(iter(mg.fx_graph.nodes)).meta["mase"]["common"]["results"]["data_out_0"].update(type="fixed", precision=[8])
        with self.assertRaisesRegex(mase.Error, "precision"):
            emit_verilog_top_transform_pass(mg)

    def test_parallelism(self):
        def planned(mg):
            hardware = [n for n in mg.fx_graph.nodes if n.name == "fc1"][0].meta["mase"]["hardware"]
            return tuple(hardware["verilog_param"][f"{side}_PARALLELISM_DIM_0"] for side in ("DATA_IN_0", "DATA_OUT_0")), hardware

        mg, _ = add_hardware_metadata_analysis_pass(edit(quantised()), {"max_parallelism": [2] * 4})
        (before, after), hardware = planned(mg)
        self.assertLessEqual(max(before, after), 2)
        self.assertGreater(before * after, 1)
        mg, found = emit_verilog_top_transform_pass(mg, {"project_dir": os.path.join(self.scratch.name, "two")})
        with open(os.path.join(found["folder"], "manifest.json")) as file:
            text = file.read()
        self.assertIn(f'"parallelism_in": {before}', text)
        mg, _ = add_hardware_metadata_analysis_pass(edit(quantised()))
        _, hardware = planned(mg)
        hardware["verilog_param"].update(DATA_IN_0_PARALLELISM_DIM_0=4, DATA_OUT_0_PARALLELISM_DIM_0=8)
        mg, found = emit_verilog_top_transform_pass(mg, {"project_dir": os.path.join(self.scratch.name, "all")})
        with open(os.path.join(found["folder"], "manifest.json")) as file:
            self.assertIn('"parallelism_in": 4', file.read())
        hardware["verilog_param"].update(DATA_IN_0_PARALLELISM_DIM_0=3)
        with self.assertRaisesRegex(mase.Error, "divides"):
            emit_verilog_top_transform_pass(mg)
        for wrong in ({"max_parallelism": 4}, {"max_paralelism": [4]}, {"max_parallelism": [4], "cycles": 3}):
            with self.subTest(wrong=wrong), self.assertRaises(mase.Error):
                add_hardware_metadata_analysis_pass(mg, wrong)

    def test_what_is_no_design_is_told(self):
        mg = MaseGraph(MLP())
        mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": {"x": torch.randn(1, 2, 2)}, "add_value": False})
        mg, info = add_hardware_metadata_analysis_pass(mg)
        self.assertIn("reason", info)
        with self.assertRaisesRegex(mase.Error, "emit_verilog_top"):
            emit_verilog_top_transform_pass(mg)
        for keys, said in (({"gui": True}, "gui"), ({"pass_args": {"project_dir": self.scratch.name}}, "no design")):
            with self.subTest(keys=keys), self.assertRaisesRegex(mase.Error, said):
                simulate(**keys)


if __name__ == "__main__":
    package.main()
