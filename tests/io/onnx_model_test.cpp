// SPDX-License-Identifier: Apache-2.0
// The messages of ONNX files: what is read is written again the same, and what is damaged or
// hostile is an Error with a place, never more.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/file/tensor.h"
#include "mase/io/onnx/file/write_model.h"
#include "mase/io/onnx/read/import.h"
#include "support/support.h"

namespace mase::onnx::onnx_model_test {
namespace {

namespace fs = std::filesystem;

Model parsed(const std::string& bytes) {
  MemoryBudget budget({}, bytes.size());
  auto owner = std::make_shared<std::string>(bytes);
  return read_model(std::as_bytes(std::span(*owner)), owner, "model.onnx", budget);
}

std::string import_error(const Model& model, const std::string& folder = "") {
  MemoryBudget budget({}, 0);
  ExternalFiles files(folder);
  try {
    import_model(model, files, "model.onnx", budget);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string parse_error(const std::string& bytes) {
  try {
    parsed(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// y = Relu(x W + b), with the weight as given.
Model small_model(TensorData weight) {
  Model model;
  model.ir_version = 10;
  model.operator_sets = {{"", 20}};
  model.graph.name = "small";
  model.graph.inputs = {
      {.name = "x", .element = Element::f32, .shape = {{{.parameter = "n"}, {.size = 2}}}}};
  model.graph.outputs = {{.name = "y", .element = Element::f32}};
  weight.name = "w";
  model.graph.initializers = {std::move(weight)};
  model.graph.nodes = {{.op = "MatMul", .name = "product", .inputs = {"x", "w"}, .outputs = {"h"}},
                       {.op = "Relu", .name = "relu", .inputs = {"h"}, .outputs = {"y"}}};
  return model;
}

Model small_model() {
  return small_model(tensor_data("w", Tensor::of({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})));
}

TEST(OnnxModel, WhatIsReadIsWrittenTheSame) {
  size_t models = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::golden_path("onnx"))) {
    if (entry.path().extension() != ".onnx") continue;
    const Model model = parsed(test::read(entry.path().string()));
    EXPECT_FALSE(model.graph.nodes.empty()) << entry.path();
    const std::string written = model_bytes(model);
    const Model again = parsed(written);
    EXPECT_EQ(model_bytes(again), written) << entry.path();
    ASSERT_EQ(again.graph.nodes.size(), model.graph.nodes.size());
    ASSERT_EQ(again.graph.initializers.size(), model.graph.initializers.size());
    for (size_t i = 0; i < model.graph.initializers.size(); ++i)
      EXPECT_TRUE(
          std::ranges::equal(again.graph.initializers[i].bytes, model.graph.initializers[i].bytes));
    ++models;
  }
  EXPECT_GE(models, 40u);
}

TEST(OnnxModel, EveryTypeOfTensorComesBack) {
  MemoryBudget budget({}, 1 << 20);
  ExternalFiles nowhere("");
  for (const DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
        DType::i8, DType::u64, DType::u32, DType::u16, DType::u8, DType::boolean}) {
    const Tensor tensor = Tensor::of({2, 2}, std::vector<float>{0, 1, 1, 0}).to(dtype);
    const Constant back = read_constant(tensor_data("t", tensor), nowhere, budget, "here");
    EXPECT_TRUE(back.tensor.same_bits(tensor)) << dtype_name(dtype);
  }
  const Tensor small = Tensor::of({5}, std::vector<float>{-8, 7, 0, -1, 3}).to(DType::i8);
  const Constant four =
      read_constant(tensor_data("t", small, Element::i4), nowhere, budget, "here");
  EXPECT_TRUE(four.tensor.same_bits(small));
}

TEST(OnnxModel, SmallFloatsHaveTheirValues) {
  MemoryBudget budget({}, 1 << 20);
  ExternalFiles nowhere("");
  const auto value = [&](Element element, int64_t code) {
    TensorData data{.name = "t",
                    .dims = {1},
                    .element = element,
                    .field = TensorData::Field::int32s,
                    .numbers = {code}};
    return read_constant(data, nowhere, budget, "here").tensor.item();
  };
  EXPECT_EQ(value(Element::f8e4m3fn, 0x7E), 448);
  EXPECT_TRUE(std::isnan(value(Element::f8e4m3fn, 0x7F)));
  EXPECT_EQ(value(Element::f8e5m2, 0x7B), 57344);
  EXPECT_EQ(value(Element::f8e5m2, 0xFC), -INFINITY);
  EXPECT_EQ(value(Element::f8e4m3fnuz, 0x7F), 240);
  EXPECT_TRUE(std::isnan(value(Element::f8e5m2fnuz, 0x80)));
  EXPECT_EQ(value(Element::f4e2m1, 0x7), 6);
  EXPECT_EQ(value(Element::f4e2m1, 0x9), -0.5);
}

TEST(OnnxModel, CutFilesAreErrors) {
  const std::string bytes = test::read(test::golden_path("onnx/f01_jsc_toy_dynamo/model.onnx"));
  for (size_t size = 0; size < bytes.size(); size += 7) {
    MemoryBudget budget({}, size);
    try {
      const Model model = parsed(bytes.substr(0, size));
      import_error(model);
    } catch (const Error&) {
    }
  }
}

TEST(OnnxModel, NestingIsLimited) {
  // A graph in an attribute of a node of a graph, again and again.
  std::string inner;
  for (int i = 0; i < 200; ++i) {
    const auto wrap = [&](char tag) {
      std::string size;
      for (size_t n = inner.size();; n >>= 7) {
        size += static_cast<char>(n >= 0x80 ? (n & 0x7F) | 0x80 : n);
        if (n < 0x80) break;
      }
      inner = tag + size + inner;
    };
    wrap(0x32);  // Attribute.g
    wrap(0x2A);  // Node.attribute
    wrap(0x0A);  // Graph.node
  }
  EXPECT_NE(parse_error("\x08\x0A\x3A" + std::string("\xFF\xFF\x03") + inner).find("byte"),
            std::string::npos);
}

TEST(OnnxModel, DamagedPartsAreNamed) {
  EXPECT_EQ(import_error(small_model()), "");
  Model model = small_model();
  model.graph.nodes[0].inputs[0] = "nowhere";
  EXPECT_EQ(import_error(model),
            "model.onnx: node 'product' (MatMul): uses 'nowhere', which nothing before it gives; "
            "the file is damaged");
  model = small_model();
  model.graph.nodes[1].outputs = {"h"};
  EXPECT_NE(import_error(model).find("two nodes give 'h'"), std::string::npos);
  model = small_model();
  model.graph.initializers.push_back(model.graph.initializers[0]);
  EXPECT_NE(import_error(model).find("two initialisers are named 'w'"), std::string::npos);
  model = small_model();
  model.graph.initializers[0].dims = {2, 4};
  EXPECT_NE(import_error(model).find("24 bytes stand where its shape [2, 4] wants 32"),
            std::string::npos);
  model = small_model();
  model.graph.initializers[0].dims = {int64_t{1} << 62, 1 << 20};
  EXPECT_NE(import_error(model).find("too large"), std::string::npos);
  model = small_model();
  model.graph.nodes[1].op = "Frobnicate";
  model.graph.nodes[1].domain = "org.example";
  EXPECT_NE(import_error(model).find("node 'relu' (org.example::Frobnicate): there is no such "
                                     "operator here (domain 'org.example', operator set 1)"),
            std::string::npos);
}

TEST(OnnxModel, EveryNodeThatCannotBeConvertedIsNamed) {
  Model model = small_model();
  model.graph.nodes[0].op = "Foo";
  model.graph.nodes.push_back({.op = "Bar", .name = "last", .inputs = {"x"}, .outputs = {"z"}});
  const std::string error = import_error(model);
  EXPECT_NE(error.find("node 'product' (Foo)"), std::string::npos) << error;
  EXPECT_NE(error.find("node 'last' (Bar)"), std::string::npos) << error;
  EXPECT_EQ(error.find("relu"), std::string::npos) << error;  // it only lacks what Foo gives
}

TEST(OnnxModel, FunctionsAreInlinedAndMayNotCallThemselves) {
  Model model = small_model();
  model.graph.nodes[1].op = "Activation";
  model.graph.nodes[1].domain = "here";
  FunctionData function{.name = "Activation", .domain = "here", .inputs = {"a"}, .outputs = {"b"}};
  function.nodes = {{.op = "Relu", .inputs = {"a"}, .outputs = {"c"}},
                    {.op = "Identity", .inputs = {"c"}, .outputs = {"b"}}};
  model.functions = {function};
  EXPECT_EQ(import_error(model), "");
  model.functions[0].nodes[1].op = "Activation";
  model.functions[0].nodes[1].domain = "here";
  EXPECT_NE(import_error(model).find("functions call themselves"), std::string::npos);
  // Each calls the one before twice: 2^31 nodes from a few kilobytes.
  model.functions.clear();
  for (int i = 0; i < 31; ++i) {
    FunctionData next{
        .name = fmt::format("f{}", i), .domain = "here", .inputs = {"a"}, .outputs = {"b"}};
    const std::string called = i == 0 ? "Relu" : fmt::format("f{}", i - 1);
    const std::string domain = i == 0 ? "" : "here";
    next.nodes = {{.op = called, .domain = domain, .inputs = {"a"}, .outputs = {"c"}},
                  {.op = called, .domain = domain, .inputs = {"c"}, .outputs = {"b"}}};
    model.functions.push_back(next);
  }
  model.graph.nodes[1].op = "f30";
  EXPECT_NE(import_error(model), "");
}

class OnnxExternalData : public ::testing::Test {
 protected:
  std::string error_for(const std::string& location, uint64_t offset = 0) {
    TensorData weight{.name = "w",
                      .dims = {2, 3},
                      .element = Element::f32,
                      .field = TensorData::Field::external,
                      .location = location,
                      .offset = offset};
    return import_error(small_model(weight), folder_ + "/model");
  }
  void SetUp() override {
    fs::create_directories(folder_ + "/model/inner");
    const std::string values(24, '\0');
    test::write(folder_ + "/secret", values);
    test::write(folder_ + "/model/inner/weights", values);
    fs::create_symlink("../secret", folder_ + "/model/link");
    fs::create_directory_symlink("inner", folder_ + "/model/folder_link");
    fs::create_hard_link(folder_ + "/secret", folder_ + "/model/hard");
  }
  std::string folder_ = test::temporary_folder();
};

TEST_F(OnnxExternalData, OnlyFromBeneathTheModelsFolder) {
  EXPECT_EQ(error_for("inner/weights"), "");
  EXPECT_EQ(error_for("./inner//weights"), "");
  for (const char* location : {"../secret", "inner/../../secret", "/etc/passwd", "link", "hard",
                               "folder_link/weights", "", ".", "inner", "missing"})
    EXPECT_NE(error_for(location).find("external data"), std::string::npos) << location;
  EXPECT_NE(error_for(std::string("inner/weights\0x", 15)).find("is no path"), std::string::npos);
  EXPECT_NE(error_for(folder_ + "/model/inner/weights").find("not beneath"), std::string::npos);
  EXPECT_NE(error_for("inner/weights", 8).find("wanted are 24 from byte 8 on"), std::string::npos);
  EXPECT_NE(error_for("inner/weights", UINT64_MAX - 4).find("wanted are"), std::string::npos);
}

// A sparse file takes no space and may claim any size: no memory for its zeros is the user's to
// know, in one line, whichever command reads it.
TEST_F(OnnxExternalData, MoreThanThereIsMemoryForIsAnError) {
  constexpr int64_t rows = 2, columns = int64_t{1} << 37;
  constexpr auto size = static_cast<uintmax_t>(rows) * columns * sizeof(float);  // 1 TB
  test::write(folder_ + "/model/sparse", "");
  std::error_code failed;
  fs::resize_file(folder_ + "/model/sparse", size, failed);
  if (failed) GTEST_SKIP() << "no sparse file: " << failed.message();
  Model model = small_model({.dims = {rows, columns},
                             .element = Element::f32,
                             .field = TensorData::Field::external,
                             .location = "sparse"});
  const std::string folder = folder_ + "/model";
  write_model(folder + "/large.onnx", model);
  test::write(folder + "/x.csv", "1,2\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"inspect", "large.onnx"},
        {"inspect", "large.onnx", "--stats", "no"},
        {"summary", "large.onnx"},
        {"import", "large.onnx", "--output", "net.mz"},
        {"export", "large.onnx", "--to", "again.onnx"},
        {"predict", "large.onnx", "--input", "x.csv", "--output", "y.npy"}}) {
    const test::RunResult result = test::ch(command, folder);
    EXPECT_EQ(result.exit_code, 2) << command[0];
    EXPECT_EQ(result.err.find("ch: large.onnx: tensor 'w': its values take 1.0 TB, and "), 0u)
        << command[0] << ": " << result.err;
    EXPECT_NE(result.err.find("; read the model on a machine with more memory"), std::string::npos);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const test::RunResult kept =
      test::ch({"import", "large.onnx", "--partial", "--output", "net.mz"}, folder);
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_NE(kept.out.find("kept, not run: large.onnx: tensor 'w': its values take 1.0 TB"),
            std::string::npos)
      << kept.out;
}

// Whoever tries a second way has the same memory for the weights as the first time.
TEST_F(OnnxExternalData, ASecondWayReadsLargeWeightsToo) {
  constexpr int64_t columns = int64_t{6} << 20;  // 48 MB: more than a model may make by itself
  test::write(folder_ + "/model/large", "");
  fs::resize_file(folder_ + "/model/large", 2 * columns * sizeof(float));
  Model model = small_model({.dims = {2, columns},
                             .element = Element::f32,
                             .field = TensorData::Field::external,
                             .location = "large"});
  model.graph.nodes[1].op = "NobodyKnows";
  MemoryBudget budget({}, 0);
  ExternalFiles files(folder_ + "/model");
  const Imported imported = import_model(model, files, "model.onnx", budget, true);
  ASSERT_EQ(imported.notes.size(), 1u) << imported.notes[0];
  EXPECT_NE(imported.notes[0].find("NobodyKnows"), std::string::npos) << imported.notes[0];
  EXPECT_EQ(imported.graph.parameter_count(), 2 * columns);
}

TEST(OnnxModel, ValuesInTwoFieldsAreRefused) {
  std::string tensor("\x08\x01\x10\x01", 4);             // dims 1, float
  tensor += std::string("\x22\x04\x00\x00\x80\x3F", 6);  // float_data
  tensor += std::string("\x4A\x04\x00\x00\x00\x40", 6);  // raw_data
  const std::string graph = "\x2A" + std::string(1, static_cast<char>(tensor.size())) + tensor;
  const std::string model =
      "\x08\x0A\x3A" + std::string(1, static_cast<char>(graph.size())) + graph;
  EXPECT_NE(parse_error(model).find("gives its values twice"), std::string::npos);
}

}  // namespace
}  // namespace mase::onnx::onnx_model_test
