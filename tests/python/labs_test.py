# SPDX-License-Identifier: Apache-2.0
"""The Python of the lab reports runs as it was written, completed by imports and paths; what it prints
is what the reports show, numbers with a point apart (and the widths of columns, which follow from them)."""
import contextlib
import io
import os
import re
import tempfile
import unittest

import package

package.need_torch()
import torch  # noqa: E402

import mase  # noqa: E402

LABS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "labs")

# What the course's template imports at the top of every script.
IMPORTS = """
import sys
from pathlib import Path
from pprint import pprint as pp
machop_path = Path(".").resolve().parent.parent / "machop"
from chop.dataset import MaseDataModule, get_dataset_info
from chop.tools.logger import set_logging_verbosity
from chop.passes.graph.analysis import report_node_meta_param_analysis_pass, profile_statistics_analysis_pass
from chop.passes.graph import (add_common_metadata_analysis_pass, init_metadata_analysis_pass,
                               add_software_metadata_analysis_pass)
from chop.tools.get_input import InputGenerator
from chop.tools.checkpoint_load import load_model
from chop.ir.graph.mase_graph import MaseGraph
from chop.models import get_model_info, get_model
from chop.passes.graph.transforms import quantize_transform_pass, summarize_quantization_analysis_pass
from chop.passes.graph.utils import get_mase_op, get_mase_type, get_node_actual_target
import torch
from torch import nn, Tensor
import torch.nn.functional as F
"""


def lab(name):
    with open(os.path.join(LABS, name), encoding="utf-8") as file:
        return file.read()


def elided(code):
    """Without the lines that stand for what a report leaves out."""
    return "\n".join(line for line in code.splitlines() if line.strip() != "...") + "\n"


def run(code, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "lab", "exec"), names)
    return out.getvalue()


def shape_of(text):
    """The text with its numbers, and the widths that follow from them, taken out."""
    text = re.sub(r"-?\d+\.\d+(e-?\d+)?", "#", text)
    text = re.sub(r"[-=]{4,}", "-", re.sub(r" +", " ", text))
    return [line.rstrip() for line in text.strip().splitlines()]


class Labs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        os.chdir(cls.scratch.name)
        cls.checkpoint = os.path.join(cls.scratch.name, "best.ckpt")
        mase.save_checkpoint(cls.checkpoint, mase.load("jsc-10x", seed=5).state_dict())
        cls.names = {}
        exec(IMPORTS, cls.names)
        flow = lab("report_4_q5.py")
        cls.flow = re.sub(r'CHECKPOINT_PATH = ".*"', f"CHECKPOINT_PATH = {cls.checkpoint!r}", flow)
        cls.printed = run(cls.flow, cls.names)
        with open("quantize_summary/quantize_histogram.csv") as file:
            cls.histogram = file.read()

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.scratch.cleanup()

    def test_report_4_question_5(self):
        self.assertEqual(shape_of(self.printed), shape_of(lab("report_4_q5.txt")))
        self.assertIn("Linear,linear,3,3,0", self.histogram)

    def test_report_4_question_5_to_the_character(self):
        """With the report's own statistics in the place of ours, whose data are others."""
        from chop.passes.graph import statistics

        expected = lab("report_4_q5.txt")
        number = r"\s*'\w+': (-?[\d.e-]+),?[\s|]*"
        found = {kind: [[float(n) for n in match.groups()] for match in
                        re.finditer(rf"'{kind}': \{{{number * count}\}}", re.sub(r"\|\n\|[ |]*", "", expected))]
                 for kind, count in (("variance_precise", 3), ("range_quantile", 4))}
        self.assertEqual([len(rows) for rows in found.values()], [6, 4])
        ours = statistics.Statistic

        class Reported(ours):
            def __init__(self, kind, arguments):
                super().__init__(kind, arguments)
                self.kind = kind

            def compute(self):
                own, rows = super().compute(), found[self.kind]
                at = next(i for i, row in enumerate(rows) if row and int(row[0]) == own["count"])
                values = dict(zip(sorted(own), rows[at]))
                rows[at] = None
                return {**values, "count": own["count"]}

        statistics.Statistic = Reported
        try:
            printed = run(self.flow, dict(self.names))
        finally:
            statistics.Statistic = ours
        self.assertEqual([line.rstrip() for line in printed.strip().splitlines()],
                         [line.rstrip() for line in expected.strip().splitlines()])

    def test_report_4_question_1(self):
        names = dict(self.names)
        code = self.flow.replace('"jsc-10x"', '"jsc-tiny"').split("pass_args = {")[0]
        code = re.sub(r"model = load_model\(.*\)\n", "", code)
        self.assertEqual(run(code, names).strip(), lab("report_4_q1.txt").strip())

    def test_report_4_question_4(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("there is no pandas")
        names = dict(self.names)
        code = self.flow.replace('"jsc-10x"', '"jsc-tiny"').split("mg, _ = quantize_transform_pass")[0]
        run(re.sub(r"model = load_model\(.*\)\n", "", code), names)
        printed = run("import pandas as pd\npd.set_option('display.width', 1000)\n" + elided(lab("report_4_q4.py")), names)
        frame = printed[printed.index("       Ori name"):]
        self.assertEqual(shape_of(frame), shape_of(lab("report_4_q4.txt")))

    def test_report_4_question_6(self):
        printed = run(lab("report_4_q6.py"), dict(self.names))
        self.assertIn("Linear(in_features=16, out_features=60, bias=True) LinearInteger(in_features=16, out_features=60, bias=True)",
                      printed)
        first = printed.index("Weights of original graph:\nParameter containing:\ntensor([[")
        second = printed.index("Weights of the transformed graph:\nParameter containing:\ntensor([[")
        block = printed[first:second].partition("\n")[2]
        self.assertEqual(block, printed[second:].partition("\n")[2][:len(block)])  # stored in float
        self.assertIn("requires_grad=True)", block)
        self.assertRegex(printed, r"quan_output tensor\(\[[^\]]*\], grad_fn=<ViewBackward0>\)")
        self.assertEqual(printed.count("random_input"), 3)

    def test_report_3_question_6(self):
        printed = run(lab("report_3_q6.py"), dict(self.names))
        self.assertEqual(printed.count("difference found at name: "), 3)
        self.assertIn("difference found at name: seq_blocks_2, mase_type: module_related_func, mase_op: linear\n"
                      " original module: <class 'torch.nn.modules.linear.Linear'> --> new module <class 'chop.passes.graph."
                      "transforms.quantize.quantized_modules.linear.LinearInteger'>\n", printed)

    def test_report_3_base_class(self):
        names = dict(self.names)
        run(lab("report_3_linear_base.py"), names)
        layer = names["_LinearBase"](4, 2)
        layer.bypass = True
        self.assertEqual(tuple(layer(torch.zeros(3, 4)).shape), (3, 2))

    def test_report_4_own_network(self):
        from chop.models import MaseModelInfo, get_model, get_model_info, register_model

        names = dict(self.names, MaseModelInfo=MaseModelInfo)
        run(lab("report_4_network.py") + elided(lab("report_4_getter.py")), names)
        models = elided(lab("report_4_models.py")).replace("from .jet_substructure import get_jsc_10x", "")
        run(models, names)
        entry = names["PHYSICAL_MODELS"]["jsc-10x"]
        register_model("jsc-own", entry["model"], entry["info"])
        model = get_model("jsc-own", task="cls", dataset_info=None, pretrained=False)
        self.assertEqual(sum(p.numel() for p in model.parameters()), 3363)
        self.assertTrue(get_model_info("jsc-own").physical_data_point_classification)
        self.assertEqual(str(names["MaseGraph"](model).native()), str(mase.load("jsc-10x")))

    def test_report_5_networks_and_pass(self):
        names = dict(self.names)
        for file, count in (("report_5_10x.txt", 4423), ("report_5_1x.txt", 327)):
            layers = eval("[" + lab(file) + "]", names)
            self.assertEqual(sum(p.numel() for layer in layers for p in layer.parameters()), count)
        code = self.flow.replace('"jsc-10x"', '"jsc-toy10x"').split("pass_args = {")[0]
        run(re.sub(r"model = load_model\(.*\)\n", "", code), names)
        run("from chop.passes.graph import calculate_flops_bitops_pass\npass_args = {}", names)
        printed = run(lab("report_5_call.py"), names)
        self.assertEqual(printed, "Total BitOPs: 162368\nTotal FLOPs: 67784\n")
        # The pass as they wrote it; what they left out is the template's, and the profiler's FLOPs are ours.
        written = lab("report_5_pass.py")
        for left_out in (["data_in_cost = weights_cost = 0"],
                         ["common = node.meta['mase'].parameters['common']", "mase_op, mase_type = common['mase_op'], common['mase_type']"],
                         ["data_in_0_meta, w_meta = common['args']['data_in_0'], common['args']['weight']",
                          "d_size, w_size = (math.prod(entry['shape']) for entry in (data_in_0_meta, w_meta))"]):
            written = re.sub(r"^( +)\.\.\.$", lambda match, lines=left_out: "\n".join(match.group(1) + line for line in lines), written, count=1, flags=re.M)
        names["get_model_profile"] = lambda model, input_shape: ("67.78 K", None, None)
        run("import math\n" + written, names)
        self.assertEqual(run(lab("report_5_call.py"), names), "Total BitOPs: 162368\nTotal FLOPs: 67.78 K\n")

    def test_report_5_question_5(self):
        names = dict(self.names)
        code = self.flow.replace('"jsc-10x"', '"jsc-toy10x"')
        code = re.sub(r"model = load_model\(.*\)\n", "", code)
        code = code.replace("mg, _ = quantize_transform_pass", "pass_args1['relu'] = pass_args1['linear']\nmg, _ = quantize_transform_pass")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in run(code, names).splitlines() if line.startswith("| ")]
        for row in (["BatchNorm1d", "batch_norm1d", "5", "0", "5"], ["Linear", "linear", "4", "4", "0"], ["ReLU", "relu", "5", "5", "0"],
                    ["output", "output", "1", "0", "1"], ["x", "placeholder", "1", "0", "1"]):
            self.assertIn(row, rows)
        types = [type(layer).__name__ for layer in names["mg"].model.seq_blocks.children()]
        self.assertEqual(types, ["BatchNorm1d", "ReLUInteger"] + ["LinearInteger", "BatchNorm1d", "ReLUInteger"] * 4)


if __name__ == "__main__":
    package.main()
