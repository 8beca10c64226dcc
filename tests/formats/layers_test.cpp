// SPDX-License-Identifier: Apache-2.0
// Every registered format in a layer of a network, as a user puts it there: ch transform quantises
// data, weight and bias of every linear layer, ch test evaluates the result.
#include <cmath>

#include "formats/every_format.h"
#include "mase/io/networks/checkpoint.h"

namespace mase::layers_test {
namespace {

std::string toml(const Value& value) { return to_json(value, -1); }

TEST(FormatsInLayers, TransformAndTestTakeEveryOne) {
  const std::string folder = test::temporary_folder();
  for (const test::FormatCase& item : test::one_case_each()) {
    SCOPED_TRACE(item.text());
    std::string text =
        "model = \"jsc-tiny\"\ndataset = \"jsc-sim\"\nsim_rows = 500\nproject = \"" + item.format +
        "\"\n[passes.quantize]\nby = \"type\"\n[passes.quantize.linear.config]\nname = \"" +
        item.format + "\"\n";
    for (const std::string operand : {"data_in", "weight", "bias"}) {
      // A format without keys is asked for by any of them.
      Dict keys = item.config.as_dict();
      if (keys.empty()) {
        const Field& any =
            Registry<FormatRecord>::instance().get(item.format).schema.fields.front();
        keys.set(any.name, any.default_value);
      }
      for (const auto& [key, value] : keys)
        text += operand + "_" + key + " = " + toml(value) + "\n";
    }
    test::write(folder + "/format.toml", text);
    const auto transformed =
        test::ch({"transform", "--config", "format.toml", "--data-dir", folder}, folder);
    ASSERT_EQ(transformed.exit_code, 0) << text << transformed.err;
    const std::string base = folder + "/mase_output/" + item.format + "/software/transform/";
    const Checkpoint checkpoint = load_checkpoint(base + "transformed.mz");
    ASSERT_TRUE(checkpoint.graph);
    for (const auto& [path, module] : checkpoint.graph->modules()) {
      if (module.op != "linear") continue;
      for (const char* operand : {"data_in", "weight", "bias"}) {
        ASSERT_TRUE(module.quantization.find(operand)) << path << " " << operand;
        EXPECT_EQ(module.quantization.find(operand)->format, item.format);
      }
    }
    const auto tested =
        test::ch({"test", "jsc-tiny", "jsc-sim", "--load", base + "transformed.mz", "--sim-rows",
                  "500", "--data-dir", folder, "--project", item.format + "-test"},
                 folder);
    ASSERT_EQ(tested.exit_code, 0) << tested.err;
    const Value run = read_json(folder + "/mase_output/" + item.format + "-test/run.json");
    EXPECT_TRUE(std::isfinite(run["evaluation"]["loss"].as_double()));
  }
}

}  // namespace
}  // namespace mase::layers_test
