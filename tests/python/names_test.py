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

        for path in ("chop.tools.huggingface", "chop.models.yolo.yolov8", "chop.actions.accelerate_peft"):
            with self.subTest(path=path), self.assertRaises(mase.Error):
                getattr(importlib.import_module(path), NAMES[path].split()[0])("any", thing=1)
        with self.assertRaises(ImportError):
            from chop.tools.huggingface import nonsense  # noqa: F401
        with self.assertRaises(ImportError):
            import chop.tools.nonsense  # noqa: F401


if __name__ == "__main__":
    package.main()
