// SPDX-License-Identifier: Apache-2.0
// Every rule of fusion as data: golden/fusion/CASE.toml is a network, its first line how it is
// compiled; CASE.txt has its primitives in => its primitives out, and in training what they are
// differentiated to.
#include <filesystem>
#include <set>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/plan.h"
#include "mase/formats/ggml_blocks.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/train/loss.h"
#include "support/support.h"

namespace mase::fusion_test {
namespace {

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden_path("fusion")))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Fusion, EveryRuleHasAnExample) {
  std::set<std::string> applied;
  for (const std::filesystem::path& path : cases()) {
    const std::string how = split(test::read(path.string()), '\n').at(0);
    const auto says = [&](const char* word) { return how.find(word) != std::string::npos; };
    const std::vector<int64_t> in_registers = {16, 8, 8, 5};
    if (says("layers in registers") && !kernels::layers_in_registers(in_registers)) {
      applied.insert("linear_behind_gathered");  // not a rule of this machine
      continue;
    }
    Graph graph = make_model(path.string());
    if (says("integers")) {
      PassContext context;
      run_pass(graph, "quantize",
               Dict{{"linear", Dict{{"config", Dict{{"name", "integer"},
                                                    {"data_in_width", 8},
                                                    {"data_in_frac_width", 4},
                                                    {"weight_width", 8},
                                                    {"weight_frac_width", 4}}}}}},
               context);
    }
    if (says("packed weights"))
      for (auto& [path_of_module, module] : graph.modules())
        for (auto& [name, value] : module.parameters)
          if (value.shape().size() == 2) {
            const PackedTypePtr type = packed_type(*find_gguf_type(8));  // Q8_0
            const auto blocks =
                aligned_bytes(static_cast<size_t>(value.numel() / type->values * type->bytes));
            value = Tensor(value.shape(), type, blocks.get(), blocks);
          }
    CompileOptions options;
    options.batch_size = std::stoll(how.substr(how.find("batch ") + 6));
    options.training = says("training");
    if (options.training) options.loss = make_loss("mse", {}, false);
    const std::string after = stage_text(graph, options, Stage::fuse);
    for (const std::string& line : split(after, '\n'))
      if (starts_with(line, "by ")) applied.insert(line.substr(3));
    std::string text = stage_text(graph, options, Stage::lower) + "=>\n" + after;
    if (options.training) text += "=>\n" + stage_text(graph, options, Stage::differentiate);
    test::expect_golden(text, "fusion/" + path.stem().string() + ".txt");
  }
  for (const std::string& rule : engine::fusion_rules())
    EXPECT_TRUE(applied.count(rule)) << rule << " is in no case of tests/golden/fusion";
}

}  // namespace
}  // namespace mase::fusion_test
