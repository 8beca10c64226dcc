# SPDX-License-Identifier: Apache-2.0
"""chop where torch is not installed: lab 2's flow on graphs of the library, and a clear error where it
ends."""
import os
import sys
import tempfile
import unittest

import package

sys.modules["torch"] = None  # as if it were not there
import numpy as np  # noqa: E402

import mase  # noqa: E402
from chop.dataset import MaseDataModule  # noqa: E402
from chop.ir.graph.mase_graph import MaseGraph  # noqa: E402
from chop.models import get_model, get_model_info  # noqa: E402
from chop.passes.graph import (add_common_metadata_analysis_pass, add_software_metadata_analysis_pass,  # noqa: E402
                               calculate_avg_bits_mg_analysis_pass, hook_inspection_analysis_pass,
                               init_metadata_analysis_pass, profile_statistics_analysis_pass, report_graph_analysis_pass)
from chop.passes.graph.transforms import quantize_transform_pass, summarize_quantization_analysis_pass  # noqa: E402
from chop.passes.graph.utils import deepcopy_mase_graph, get_mase_op  # noqa: E402
from chop.tools.checkpoint_load import load_model  # noqa: E402
from chop.tools.get_input import InputGenerator  # noqa: E402

CONFIG = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
    "bias_width": 8, "bias_frac_width": 4}}}


class WithoutTorch(unittest.TestCase):
    def test_lab_2(self):
        data = MaseDataModule(name="jsc", batch_size=8, model_name="jsc-tiny", num_workers=0, sim_rows=2000)
        data.prepare_data()
        data.setup()
        model = get_model("jsc-tiny", task="cls", dataset_info=data.dataset_info, pretrained=False)
        generator = InputGenerator(data_module=data, model_info=get_model_info("jsc-tiny"), task="cls", which_dataloader="train")
        dummy = next(iter(generator))
        self.assertEqual(model(**dummy).shape, (8, 5))
        mg, _ = init_metadata_analysis_pass(MaseGraph(model=model), None)
        mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy})
        mg, _ = add_software_metadata_analysis_pass(mg, None)
        self.assertIn("call_module[target=seq_blocks.2]", package.printed(report_graph_analysis_pass, mg))
        mg, _ = profile_statistics_analysis_pass(mg, {
            "by": "type", "target_weight_nodes": ["linear"], "target_activation_nodes": ["relu"],
            "weight_statistics": {"variance_precise": {"device": "cpu", "dims": "all"}},
            "activation_statistics": {"range_quantile": {"device": "cpu", "dims": "all", "quantile": 0.97}},
            "input_generator": generator, "num_samples": 32})
        linear = [node for node in mg.fx_graph.nodes if get_mase_op(node) == "linear"][0]
        parameters = linear.meta["mase"].parameters
        self.assertEqual(parameters["common"]["args"]["data_in_0"]["shape"], [8, 16])
        self.assertEqual(parameters["software"]["args"]["weight"]["stat"]["variance_precise"]["count"], 80)
        original = deepcopy_mase_graph(mg)
        mg, _ = quantize_transform_pass(mg, CONFIG)
        text = package.printed(summarize_quantization_analysis_pass, original, mg, save_dir=tempfile.mkdtemp())
        self.assertIn("| Linear          | linear       |       1 |         1 |           0 |", text)
        self.assertEqual(calculate_avg_bits_mg_analysis_pass(mg, {})[1], {"data_avg_bit": 8.0, "w_avg_bit": 8.0})
        x = dummy["x"]
        self.assertFalse(np.array_equal(mg.model(x), original.model(x)))

    def test_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.ckpt")
            mase.save_checkpoint(path, mase.load("jsc-tiny", seed=9).state_dict())
            model = load_model(load_name=path, load_type="pl", model=get_model("jsc-tiny"))
            x = np.ones((2, 16), np.float32)
            np.testing.assert_array_equal(model(x), mase.load("jsc-tiny", seed=9)(x))

    def test_where_it_ends(self):
        mg = MaseGraph(get_model("jsc-tiny"))
        for call in (lambda: mg.model.parameters(), lambda: hook_inspection_analysis_pass(mg), lambda: mg.model.train()):
            with self.assertRaisesRegex(mase.Error, "torch"):
                call()
        with self.assertRaises(mase.Error):
            MaseGraph(object())


if __name__ == "__main__":
    package.main()
