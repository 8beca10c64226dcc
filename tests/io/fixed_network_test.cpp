// SPDX-License-Identifier: Apache-2.0
// Fixed-point networks of other trainers: read as they are, refused with the file and the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/importer.h"
#include "support/support.h"

namespace mase::test::fixed_network_test {
namespace {

// A network of one layer, 2 -> 1, in a folder of its own.
struct Files {
  std::string folder = temporary_folder(), json = folder + "/net.json";
  TensorTable tensors = {{"layer0.weight", Tensor::of({2, 1}, {0.75f, -2.0f})},
                         {"layer0.bias", Tensor::of({1}, {0.5f})},
                         {"layer0.in_k", Tensor::of({2}, {1, 0})},
                         {"layer0.in_i", Tensor::of({2}, {2, 3})},
                         {"layer0.in_f", Tensor::of({2}, {1, 0})}};
  std::string text =
      R"({"layers": [{"inputs": 2, "outputs": 1, "in_round": "RND", "in_overflow": "WRAP",
          "relu": true}]})";

  std::string save() const {
    write(json, text);
    save_safetensors(folder + "/net.safetensors", tensors);
    return json;
  }
  std::string fault() const {
    try {
      import_network(save());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(fixed_network, is_a_quantised_graph) {
  const ImportedNetwork network = import_network(Files{}.save());
  EXPECT_EQ(network.format, "fixed_point");
  EXPECT_TRUE(network.integers);
  const Module& layer = network.graph.modules().at("layer0");
  EXPECT_EQ(layer.find("weight")->shape(), (Shape{1, 2}));
  const Fixed& input = *layer.quantization.find("data_in")->type->as<Fixed>();
  EXPECT_EQ(input.widths, (std::vector<int>{4, 3}));
  EXPECT_EQ(input.fracs, (std::vector<int>{1, 0}));
  EXPECT_EQ(input.signs, (std::vector<int>{1, 0}));
  EXPECT_EQ(input.rounding, Rounding::half_up);
  EXPECT_EQ(input.overflow, Overflow::wrap);
  // 0.75 and -2: two bits after the point, four with the sign.
  const Fixed& weight = *layer.quantization.find("weight")->type->as<Fixed>();
  EXPECT_EQ(weight.width, 4);
  EXPECT_EQ(weight.frac, 2);
  EXPECT_TRUE(quantize(*layer.quantization.operands.at("weight"), *layer.find("weight"))
                  .same_bits(*layer.find("weight")));
}

TEST(fixed_network, faults_name_file_and_cause) {
  const auto with = [](const auto& change) {
    Files files;
    change(files);
    return files.fault();
  };
  EXPECT_EQ(with([](Files&) {}), "");
  EXPECT_THAT(with([](Files& f) { f.tensors.pop_back(); }),
              testing::HasSubstr("no tensor 'layer0.in_f'"));
  EXPECT_THAT(with([](Files& f) {
                f.tensors[0].second = Tensor::of({1, 2}, {1, 1});
              }),
              testing::HasSubstr("has shape [1, 2], not [2, 1]"));
  EXPECT_THAT(with([](Files& f) { f.tensors[1].second = Tensor::of({1}, {INFINITY}); }),
              testing::HasSubstr("no finite number"));
  EXPECT_THAT(with([](Files& f) {
                f.tensors[2].second = Tensor::of({2}, {2, 0});
              }),
              testing::HasSubstr("not 0 or 1"));
  EXPECT_THAT(with([](Files& f) {
                f.tensors[3].second = Tensor::of({2}, {40, 3});
              }),
              testing::HasSubstr("the limit is 32"));
  EXPECT_THAT(with([](Files& f) {
                f.tensors[3].second = Tensor::of({2}, {0.5f, 3});
              }),
              testing::HasSubstr("not a number of bits"));
  EXPECT_THAT(with([](Files& f) {
                f.tensors[0].second = Tensor::of({2, 1}, {1e-9f, 1e9f});
              }),
              testing::HasSubstr("the limit is 32"));
  EXPECT_THAT(with([](Files& f) { f.text = "{}"; }), testing::HasSubstr("lists no layers"));
  EXPECT_THAT(with([](Files& f) {
                f.text = R"({"layers": [{"inputs": 2, "outputs": 1, "in_round": "UP",
                             "in_overflow": "SAT", "relu": true}]})";
              }),
              testing::HasSubstr("unknown rounding 'UP'"));
  EXPECT_THAT(with([](Files& f) { f.text = R"({"layers": [{"inputs": 0, "outputs": 1}]})"; }),
              testing::HasSubstr("'inputs' is 0"));
}

TEST(importer, unknown_files_are_refused_with_the_known_formats) {
  const std::string folder = temporary_folder();
  write(folder + "/net.xyz", "text");
  try {
    import_network(folder + "/net.xyz");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("net.xyz"),
                                             testing::HasSubstr("fixed_point (.json)")));
  }
  EXPECT_THROW(import_network(folder + "/nothing.json"), Error);
}

TEST(importer, the_command_writes_an_mz_that_others_take) {
  const std::string folder = temporary_folder();
  const RunResult imported = ch({"import", golden_path("hardware/w4_toy.json")}, folder);
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, testing::HasSubstr("written to w4_toy.mz"));
  const RunResult inspected = ch({"inspect", "w4_toy.mz"}, folder);
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, testing::HasSubstr("layer2"));
  const RunResult refused = ch({"import", golden_path("hardware/w4_toy.1.txt")}, folder);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder + "/w4_toy.1.mz"));
}

}  // namespace
}  // namespace mase::test::fixed_network_test
