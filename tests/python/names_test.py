# SPDX-License-Identifier: Apache-2.0
"""Every module path of the original that its users' scripts import from, with the names they take there."""
import importlib
import unittest

import package

package.need_torch()
GRAPH = "chop.passes.graph"
PASSES = """init_metadata_analysis_pass add_common_metadata_analysis_pass add_software_metadata_analysis_pass
    profile_statistics_analysis_pass report_node_meta_param_analysis_pass report_node_type_analysis_pass report_graph_analysis_pass
    quantize_transform_pass summarize_quantization_analysis_pass prune_transform_pass add_pruning_metadata_analysis_pass
    calculate_avg_bits_mg_analysis_pass add_hardware_metadata_analysis_pass emit_verilog_top_transform_pass
    metadata_value_type_cast_transform_pass save_mase_graph_interface_pass load_mase_graph_interface_pass
    save_node_meta_param_interface_pass"""
LAYERS = """LinearInteger LinearMinifloatIEEE LinearMinifloatDenorm LinearLog LinearBinary LinearBinaryScaling
    LinearBinaryResidualSign LinearBlockFP LinearBlockLog LinearBlockMinifloat _LinearBase"""
UTILS = """get_parent_name get_mase_op get_mase_type get_node_actual_target get_node_target_by_name
    get_similar_node_actual_target deepcopy_mase_graph match_a_pattern deepsetattr"""
NAMES = {
    "chop": "MaseGraph", "chop.ir": "MaseGraph", "chop.ir.graph": "MaseGraph", "chop.ir.graph.mase_graph": "MaseGraph",
    "chop.ir.graph.mase_metadata": "MaseMetadata",
    GRAPH: PASSES, f"{GRAPH}.analysis": PASSES, f"{GRAPH}.transforms": PASSES, "chop.passes": PASSES,
    f"{GRAPH}.utils": UTILS,
    f"{GRAPH}.analysis.init_metadata": "init_metadata_analysis_pass",
    f"{GRAPH}.analysis.add_metadata.add_common_metadata": "add_common_metadata_analysis_pass",
    f"{GRAPH}.analysis.add_metadata.add_software_metadata": "add_software_metadata_analysis_pass",
    f"{GRAPH}.analysis.add_metadata.add_hardware_metadata": "add_hardware_metadata_analysis_pass",
    f"{GRAPH}.analysis.report.report_node": "report_node_meta_param_analysis_pass report_node_type_analysis_pass",
    f"{GRAPH}.analysis.report.report_graph": "report_graph_analysis_pass",
    f"{GRAPH}.analysis.statistical_profiler.profile_statistics": "profile_statistics_analysis_pass",
    f"{GRAPH}.analysis.quantization.calculate_avg_bits": "calculate_avg_bits_mg_analysis_pass",
    f"{GRAPH}.analysis.flop_estimator.calculator.calc_modules": "calculate_modules",
    f"{GRAPH}.analysis.pruning.calculate_sparsity": "add_pruning_metadata_analysis_pass",
    f"{GRAPH}.analysis.runtime.runtime_analysis": "runtime_analysis_pass",
    f"{GRAPH}.transforms.quantize.quantize": "quantize_transform_pass",
    f"{GRAPH}.transforms.quantize.summary": "summarize_quantization_analysis_pass graph_iterator_compare_nodes",
    f"{GRAPH}.transforms.quantize.quantized_modules.linear": LAYERS, "chop.nn.quantized.modules.linear": LAYERS,
    "chop.nn.quantized.modules": LAYERS, f"{GRAPH}.transforms.quantize.quantizers.binary": "binary_quantizer",
    f"{GRAPH}.transforms.pruning.prune": "prune_transform_pass",
    f"{GRAPH}.transforms.utils.metadata_value_type_cast": "metadata_value_type_cast_transform_pass",
    f"{GRAPH}.transforms.verilog.emit_top": "emit_verilog_top_transform_pass",
    f"{GRAPH}.transforms.verilog.emit_bram": "emit_bram_transform_pass",
    f"{GRAPH}.transforms.verilog.emit_internal": "emit_internal_rtl_transform_pass",
    f"{GRAPH}.transforms.verilog.emit_tb": "emit_cocotb_transform_pass test",
    f"{GRAPH}.transforms.tensorrt.quantize.calibrate": "tensorrt_calibrate_transform_pass tensorrt_fake_quantize_transform_pass",
    f"{GRAPH}.transforms.tensorrt.quantize.fine_tune": "tensorrt_fine_tune_transform_pass",
    f"{GRAPH}.interface.save_and_load": """save_mase_graph_interface_pass load_mase_graph_interface_pass
        save_node_meta_param_interface_pass save_state_dict_ckpt""",
    "chop.passes.module.analysis.report": "report_trainable_parameters_analysis_pass",
    "chop.nn.modules.identity": "Identity", "chop.pipelines.compression": "CompressionPipeline",
    "chop.models": "get_model get_model_info get_tokenizer register_model",
    "chop.models.utils": "MaseModelInfo ModelSource ModelTaskType ModelFactory",
    "chop.models.yolo.yolov8": "get_yolo_detection_model patch_yolo",
    "chop.dataset": "MaseDataModule get_dataset_info",
    "chop.actions": "train test search simulate", "chop.actions.train": "train", "chop.actions.test": "test",
    "chop.actions.search.search": "search", "chop.actions.search": "search", "chop.actions.simulate": "simulate",
    "chop.actions.accelerate_train": "train", "chop.actions.accelerate_peft": "train", "chop.plt_wrapper": "get_model_wrapper",
    "chop.tools": "get_logger", "chop.tools.logger": "get_logger set_logging_verbosity",
    "chop.tools.get_input": "InputGenerator get_cf_args get_dummy_input", "chop.tools.checkpoint_load": "load_model",
    "chop.tools.config_load": "load_config", "chop.tools.utils": "to_numpy_if_tensor parse_accelerator deepsetattr",
    f"{GRAPH}.analysis.utils": "fetch_attr load_arg match_and_filter is_tensor_constant get_input_nodes get_output_nodes",
    f"{GRAPH}.common": "fetch_attr load_arg", "chop.actions.transform": "pre_transform_load transform",
    "chop.actions.search.search_space.base": "SearchSpaceBase",
    "chop.actions.search.strategies.runners.software": "get_sw_runner",
    "machop.chop.ir.graph.mase_graph": "MaseGraph", "machop.chop.passes.graph": PASSES,
    "chop.tools.huggingface": "get_tokenized_dataset get_trainer", "chop.tools.check_dependency": "check_deps_tensorRT_pass",
}


class Names(unittest.TestCase):
    def test_all_are_there(self):
        for path, names in NAMES.items():
            module = importlib.import_module(path)
            for name in names.split():
                with self.subTest(path=path, name=name):
                    self.assertTrue(callable(getattr(module, name)))

    def test_a_module_does_not_take_the_place_of_its_function(self):
        import chop.actions.train  # noqa: F401
        from chop.actions import train
        from chop.actions.search.search import search
        from chop.actions.train import train as function

        self.assertEqual((type(function).__name__, function.__name__), ("function", "train"))
        self.assertEqual(search.__name__, "search")
        for call in (train, function):
            with self.assertRaisesRegex(TypeError, "model"):
                call()

    def test_what_is_missing_is_told(self):
        import mase

        for path in ("chop.models.yolo.yolov8", "chop.actions.accelerate_peft"):
            with self.subTest(path=path), self.assertRaises(mase.Error):
                getattr(importlib.import_module(path), NAMES[path].split()[0])("any", thing=1)
        with self.assertRaises(ImportError):
            from chop.tools.huggingface import nonsense  # noqa: F401
        with self.assertRaises(ImportError):
            import chop.tools.nonsense  # noqa: F401


    def test_unknown_names_are_import_errors(self):
        for line, said in (("from chop.nn.quantized.modules import NoSuchThing", "NoSuchThing"),
                           ("from chop.nn.quantized.modules.linear import LinearIntegr", "LinearInteger"),
                           ("from chop.nn.quantizers import integr_quantizer", "integer_quantizer"),
                           ("import chop.nn.quantized.modules.nosuch", "nosuch"),
                           ("from chop.nn.quantizers.nosuch import x", "nosuch"),
                           ("from chop.passes.graph import quantise_transform_pass", "quantize_transform_pass"),
                           ("from chop.tools import get_loger", "get_logger"), ("from machop.nosuch import x", "nosuch")):
            with self.subTest(line=line), self.assertRaisesRegex(ImportError, said):
                exec(line)
        import mase

        with self.assertRaisesRegex(AttributeError, "did you mean 'train'"):
            mase.trian

    def test_one_module_under_both_names(self):
        import machop.chop.ir.graph.mase_graph as old

        import chop.ir.graph.mase_graph as new

        self.assertIs(old, new)

    def test_small_functions(self):
        import torch

        import mase
        from chop.actions.search.search_space.base import SearchSpaceBase
        from chop.actions.search.strategies.runners.software import get_sw_runner
        from chop.dataset import MaseDataModule
        from chop.ir.graph import MaseGraph
        from chop.models import get_model
        from chop.nn.quantized.modules.linear import LinearInteger
        from chop.passes.graph import add_common_metadata_analysis_pass
        from chop.passes.graph.analysis.utils import fetch_attr, load_arg, match_and_filter
        from chop.passes.graph.transforms.quantize.quantize import QUANTIZEABLE_OP

        model = torch.nn.Sequential(torch.nn.Linear(4, 2))
        self.assertIs(fetch_attr(model, "0.weight"), model[0].weight)
        with self.assertRaises(mase.Error):
            fetch_attr(model, "0.wieght")
        self.assertEqual(match_and_filter("batch_norm1d_3", ["norm", "batch_norm1d"]), (True, "batch_norm1d"))
        self.assertEqual(match_and_filter("relu", ["add"]), (False, None))
        graph = MaseGraph.from_module(model)
        graph, _ = add_common_metadata_analysis_pass(graph)  # the layer says how wide its input is
        last = list(graph.nodes)[-1]
        self.assertEqual(last.meta["mase"]["common"]["results"]["data_out_0"]["shape"], [1, 2])
        self.assertEqual(load_arg(last.args[0], {last.args[0].name: 7}), 7)
        self.assertTrue({"linear", "add", "conv2d", "relu", "matmul"} <= set(QUANTIZEABLE_OP))
        layer = LinearInteger(4, 2, config={f"{o}_{k}": v for o in ("data_in", "weight", "bias")
                                            for k, v in (("width", 8), ("frac_width", 4))})
        x = torch.randn(3, 4)
        parts = layer.get_quantized_weights_with_inputs(x)
        torch.testing.assert_close(parts["y"], torch.nn.functional.linear(parts["x"], parts["w"], parts["bias"]))
        torch.testing.assert_close(parts["w"], layer.w_quantizer(layer.weight))
        data = MaseDataModule("jsc-sim", batch_size=64, sim_rows=1000)
        figures = get_sw_runner("basic_evaluation", None, "cls", None, "cpu", {"num_samples": 50})(data, get_model("jsc-tiny"))
        self.assertEqual(sorted(figures), ["accuracy", "loss"])

        class Space(SearchSpaceBase):
            def build_search_space(self):
                self.choices_flattened = {"a": [1, 2], "b": [3, 4, 5]}
                self.choice_lengths_flattened = {name: len(values) for name, values in self.choices_flattened.items()}

        space = Space(model, None, {})
        space.build_search_space()
        self.assertEqual(len(list(space.grid())), 6)
        self.assertEqual(space.flattened_indexes_to_config({"a": 1, "b": 2}), {"a": 2, "b": 5})

        from chop.actions import search
        from chop.actions.search.search_space import SEARCH_SPACE_MAP

        class Wider(Space):
            def rebuild_model(self, sampled_config, is_eval_mode=True):
                return get_model("jsc-tiny" if sampled_config["a"] == 1 else "jsc-toy")

        SEARCH_SPACE_MAP["own/wider"] = Wider
        trials = search(model, data_module=data, search_config={"search": {"search_space": {"name": "own/wider"}, "strategy": {
            "setup": {"n_trials": 9}, "sw_runner": {"basic_evaluation": {"num_samples": 20}}, "metrics": {"loss": {"scale": 2.0, "direction": "minimize"}}}}})
        self.assertEqual(len({(t["config"]["a"], t["config"]["b"]) for t in trials}), 6)  # each once
        self.assertEqual([t["score"] for t in trials], sorted((-2.0 * t["figures"]["loss"] for t in trials), reverse=True))
        del SEARCH_SPACE_MAP["own/wider"]

    def test_rules_that_differ_are_told_once(self):
        import torch

        from chop.nn.quantizers import log_quantizer
        from chop.passes.graph import rules
        from chop.tools.logger import get_logger

        rules._told.discard("log")
        with self.assertLogs(get_logger("chop"), "WARNING") as told:
            log_quantizer(torch.ones(2), 8)
            log_quantizer(torch.ones(2), 8)
        self.assertEqual(len(told.output), 1)
        self.assertIn('rounding = "reference"', told.output[0])
        rules._told.discard("log")
        rules.tell_rule("log", {"weight_width": 8, "weight_rounding": "reference"})
        self.assertNotIn("log", rules._told)


if __name__ == "__main__":
    package.main()
