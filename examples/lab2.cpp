// SPDX-License-Identifier: Apache-2.0
// Lab 2 in C++: the same steps, names and printed tables as in MASE's notebook.
//   lab2 [MODEL [CHECKPOINT]]
#include <cstdio>

#include "mase/io/networks/checkpoint.h"
#include "mase/ir/layer_text.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"

using namespace mase;

namespace {

// 1. A model, with the weights of a checkpoint if there is one.
Graph get_model(const std::string& model_name, const char* load_name) {
  Graph model = make_model(model_name);
  if (load_name) load_into(model, load_checkpoint(load_name), load_name);
  return model;
}

void lab2(const std::string& model_name, const char* load_name) {
  PassContext context;
  context.batch_size = 8;
  context.print = [](const std::string& text) { std::fputs(text.c_str(), stdout); };

  // 2. A MaseGraph and its metadata.
  Graph mg = get_model(model_name, load_name);
  run_pass(mg, "init_metadata_analysis_pass", {}, context);
  run_pass(mg, "add_common_metadata_analysis_pass", {}, context);
  run_pass(mg, "add_software_metadata_analysis_pass", {}, context);
  run_pass(mg, "report_graph_analysis_pass", {}, context);

  // 3. Statistics of weights and activations.
  run_pass(
      mg, "profile_statistics_analysis_pass",
      Dict{{"by", "type"},
           {"target_weight_nodes", List{Value("linear")}},
           {"target_activation_nodes", List{Value("relu")}},
           {"weight_statistics",
            Dict{{"variance_precise", Dict{{"device", "cpu"}, {"dims", "all"}}}}},
           {"activation_statistics",
            Dict{{"range_quantile", Dict{{"device", "cpu"}, {"dims", "all"}, {"quantile", 0.97}}}}},
           {"num_samples", 32}},
      context);
  run_pass(mg, "report_node_meta_param_analysis_pass", Dict{{"which", List{Value("software")}}},
           context);

  // 4. Quantise the linear layers. A graph is a value: the original is a copy.
  const Graph ori_mg = mg;
  context.original = &ori_mg;
  run_pass(mg, "quantize_transform_pass",
           Dict{{"by", "type"},
                {"default", Dict{{"config", Dict{{"name", nullptr}}}}},
                {"linear", Dict{{"config", Dict{{"name", "integer"},
                                                {"data_in_width", 8},
                                                {"data_in_frac_width", 4},
                                                {"weight_width", 8},
                                                {"weight_frac_width", 4},
                                                {"bias_width", 8},
                                                {"bias_frac_width", 4}}}}}},
           context);
  run_pass(mg, "summarize_quantization_analysis_pass", {}, context);

  // 5. Traverse both graphs.
  for (const NodeId id : mg.order()) {
    const Node &ori_n = ori_mg.node(id), &n = mg.node(id);
    if (class_text(ori_mg, ori_n) != class_text(mg, n))
      std::printf(
          "difference found at name: %s, mase_type: %s, mase_op: %s\n"
          " original module: %s --> new module %s\n",
          n.name.c_str(), mase_type(mg, n).c_str(), mase_op(mg, n).c_str(),
          class_text(ori_mg, ori_n).c_str(), class_text(mg, n).c_str());
  }
  run_pass(mg, "compare_graphs", {}, context);

  // 6. Show that the weights are quantised when they are used.
  run_pass(mg, "verify_quantization", {}, context);

  // 7. Count operations.
  run_pass(mg, "calculate_flops", Dict{{"batch_size", 8}}, context);
  run_pass(mg, "calculate_bitops", Dict{{"batch_size", 8}}, context);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    lab2(argc > 1 ? argv[1] : "jsc-tiny", argc > 2 ? argv[2] : nullptr);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
