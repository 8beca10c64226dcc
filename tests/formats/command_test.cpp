// SPDX-License-Identifier: Apache-2.0
// ch quantize and ch format as a user meets them: golden cases, figures, tables and mistakes.
#include <cmath>
#include <map>

#include "formats/every_format.h"
#include "mase/base/random.h"
#include "mase/base/value.h"
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::command_test {
namespace {

std::map<std::string, Tensor> tensors_of(const std::string& path) {
  std::map<std::string, Tensor> result;
  for (auto& [name, tensor] : load_safetensors(path)) result.emplace(name, tensor);
  return result;
}

void golden_through_the_command(const std::string& name) {
  const std::string stem = test::golden_path("formats/" + name);
  const std::string out = test::temporary_folder() + "/out.safetensors";
  const auto result = test::ch(
      {"quantize", "--cases", stem + ".json", "--input", stem + ".safetensors", "--output", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("SQNR"), std::string::npos);
  const auto want = tensors_of(stem + ".safetensors"), got = tensors_of(out);
  const Value cases = read_json(stem + ".json");
  for (const Value& entry : cases.as_list()) {
    // Scaled binary and ternary outputs hold a mean: its last bit depends on the summation.
    const Value& format = entry["quantizer"];
    const bool has_mean =
        format.is_string() && (format.as_string() == "binary" || format.as_string() == "ternary");
    const Tensor& a = got.at(entry["output"].as_string());
    const Tensor& b = want.at(entry["output"].as_string());
    ASSERT_EQ(a.shape(), b.shape());
    for (int64_t i = 0; i < a.numel(); ++i) {
      const float x = a.data<float>()[i], y = b.data<float>()[i];
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)) ||
                  (has_mean && std::fabs(x - y) <= 1e-6 * std::fabs(y)))
          << entry["output"].as_string() << " " << i << " " << x << " " << y;
    }
  }
}

TEST(QuantizeCommand, PublishedCasesOfMase) { golden_through_the_command("quantizers"); }
TEST(QuantizeCommand, PublishedCasesOfMicroscaling) { golden_through_the_command("mx"); }

TEST(QuantizeCommand, OneFormatForAllTensors) {
  const std::string folder = test::temporary_folder();
  save_safetensors(folder + "/in.safetensors", {{"w", Tensor::of({4}, {0.3f, -9, 100, 0.0625f})}});
  const auto result =
      test::ch({"quantize", "--format", "integer", "--set", "width=8", "--set", "frac_width=4",
                "--input", folder + "/in.safetensors", "--output", folder + "/out.safetensors"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("50.00%"), std::string::npos) << result.out;
  const auto out = tensors_of(folder + "/out.safetensors");
  EXPECT_EQ(out.at("w").item(0), 0.3125);
  EXPECT_EQ(out.at("w").item(1), -8);
  EXPECT_EQ(out.at("w").item(2), 7.9375);
}

// Every format that has codes: the packed file takes as many bits as they have and gives the
// rounded values.
TEST(QuantizeCommand, PackedCodesGiveTheRoundedValues) {
  const std::string folder = test::temporary_folder();
  Random random(2, "weights");
  Tensor w({8, 48});
  for (int64_t i = 0; i < w.numel(); ++i)
    w.mutable_data<float>()[i] = static_cast<float>(random.normal());
  save_safetensors(folder + "/in.safetensors", {{"w", w}});
  std::string cases;
  for (const test::FormatCase& item : test::one_case_each()) {
    if (item.quantizer->code_bits == 0) continue;
    cases += fmt::format(
        "{}{{\"quantizer\": \"{}\", \"config\": {}, \"input\": \"w\", \"output\": \"{}\"}}",
        cases.empty() ? "[" : ",\n", item.format, to_json(item.config), item.format);
  }
  test::write(folder + "/cases.json", cases + "]");
  const auto packed = test::ch({"quantize", "--cases", "cases.json", "--input", "in.safetensors",
                                "--output", "out.safetensors", "--packed", "codes.safetensors"},
                               folder);
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const auto unpacked = test::ch(
      {"quantize", "--unpack", "--input", "codes.safetensors", "--output", "back.safetensors"},
      folder);
  ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
  const auto rounded = tensors_of(folder + "/out.safetensors"),
             codes = tensors_of(folder + "/codes.safetensors"),
             back = tensors_of(folder + "/back.safetensors");
  for (const test::FormatCase& item : test::one_case_each()) {
    if (item.quantizer->code_bits == 0) continue;
    EXPECT_EQ(codes.at(item.format).numel(), w.numel() * item.quantizer->code_bits / 8);
    for (int64_t i = 0; i < w.numel(); ++i)
      ASSERT_EQ(back.at(item.format).item(i), rounded.at(item.format).item(i)) << item.text();
  }
}

TEST(QuantizeCommand, BrokenPackedFilesAreTold) {
  const std::string folder = test::temporary_folder();
  const auto attempt = [&](const TensorTable& tensors, const std::string& about) {
    save_safetensors(folder + "/bad.safetensors", tensors, Dict{{"w", about}});
    return test::ch(
        {"quantize", "--unpack", "--input", "bad.safetensors", "--output", "o.safetensors"},
        folder);
  };
  const Tensor four_bytes({4}, DType::u8);
  const char* const good = R"({"format": "e4m3", "config": {}, "shape": [4]})";
  EXPECT_EQ(attempt({{"w", four_bytes}}, good).exit_code, 0);
  for (const char* about :
       {"", "{}", R"({"format": "e4m4", "config": {}, "shape": [4]})",
        R"({"format": "e4m3", "config": {}, "shape": [5]})",
        R"({"format": "e4m3", "config": {}, "shape": [-4]})",
        R"({"format": "e4m3", "config": {}, "shape": [4294967296, 4294967296, 4]})",
        R"({"format": "e4m3", "config": {"width": 4}, "shape": [4]})",
        R"({"format": "mxint", "config": {"width": 8}, "shape": [4]})",
        R"({"format": "scale_integer", "config": {"width": 8}, "shape": [4]})",
        R"({"format": "log", "config": {"width": 8, "rounding": "reference"}, "shape": [4]})"}) {
    const auto result = attempt({{"w", four_bytes}}, about);
    EXPECT_EQ(result.exit_code, 2) << about << result.err;
    EXPECT_NE(result.err.find("bad.safetensors"), std::string::npos) << result.err;
  }
  EXPECT_EQ(attempt({{"w", Tensor({4})}}, good).exit_code, 2);
  EXPECT_EQ(attempt({{"v", four_bytes}}, good).exit_code, 2);
}

// The cause and the remedy of every mistake, with file and line.
TEST(QuantizeCommand, MistakesNameFileLineCauseAndRemedy) {
  const std::string folder = test::temporary_folder();
  save_safetensors(folder + "/in.safetensors", {{"w", Tensor::of({2}, {1, 2})}});
  const auto attempt = [&](const std::string& format, const std::string& config) {
    test::write(folder + "/bad.json", "[\n {\"quantizer\": \"" + format + "\",\n  \"config\": {" +
                                          config + "},\n  \"input\": \"w\", \"output\": \"o\"}]");
    return test::ch(
        {"quantize", "--cases", folder + "/bad.json", "--input", folder + "/in.safetensors"});
  };
  const auto expect = [&](const std::string& format, const std::string& config,
                          const std::vector<std::string>& words) {
    const auto result = attempt(format, config);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_NE(result.err.find("bad.json:3"), std::string::npos) << result.err;
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << " in " << result.err;
  };
  expect("integer", "\"width\": 0", {"width", "too small", "1"});
  expect("integer", "\"width\": 65", {"width", "too large", "64"});
  expect("integer", "\"width\": \"eight\"", {"width", "an integer"});
  expect("integer", "\"width\": 8, \"frac_widht\": 4", {"frac_widht", "frac_width"});
  expect("minifloat_ieee", "\"width\": 4, \"exponent_width\": 6", {"exponent_width", "at most 3"});
  expect("minifloat_denorm", "\"width\": 4, \"exponent_width\": 3",
         {"exponent_width", "at most 2"});
  expect("block_fp", "\"width\": 8, \"block_size\": [0]", {"block_size", "at least 1"});
  expect("block_fp", "\"width\": 8, \"block_size\": \"16\"", {"block_size", "list of integers"});
  expect("mxint", "\"width\": 8, \"block_size\": 0", {"block_size", "too small"});
  expect("integer", "\"width\": 8, \"rounding\": \"reference\"", {"rounding", "nearest_even"});
  const auto unknown = attempt("intger", "\"width\": 8");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'integer'"), std::string::npos) << unknown.err;
}

TEST(FormatCommand, ShowsAllValuesOfASmallFormat) {
  const auto result = test::ch({"format", "show", "e2m1", "--ascii"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* word : {"largest", "6", "smallest positive", "0.5", "0x8", "Spacing"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word << result.out;
  const auto wide = test::ch({"format", "show", "e4m3"});
  EXPECT_EQ(wide.exit_code, 0) << wide.err;
  EXPECT_NE(wide.out.find("448"), std::string::npos);
  EXPECT_NE(wide.out.find("NaN"), std::string::npos);
  const auto keys = test::ch({"format", "show", "integer", "--set", "width=4"});
  EXPECT_EQ(keys.exit_code, 0) << keys.err;
  const auto none = test::ch({"format", "show", "e4m4"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("e4m3"), std::string::npos);
}

TEST(FormatCommand, ListsEveryFormat) {
  const auto result = test::ch({"format", "list"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* name :
       {"integer", "scale_integer", "binary", "binary_residual", "ternary", "minifloat_denorm",
        "minifloat_ieee", "float", "log", "power_of_two", "block_fp", "block_minifloat",
        "block_log", "mxint", "mxfp", "e5m2", "bfloat16", "tf32", "half"})
    EXPECT_NE(result.out.find(name), std::string::npos) << name;
}

TEST(FormatCommand, SweepsANetworkOverAllFormats) {
  const std::string folder = test::temporary_folder();
  const auto result =
      test::ch({"format", "sweep", "jsc-tiny", "jsc-sim", "--sim-rows", "2000", "--rows", "500",
                "--data-dir", folder, "--json", folder + "/sweep.json"},
               folder);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Value rows = read_json(folder + "/sweep.json");
  EXPECT_GT(rows.as_list().size(), 50u);
  double wide = -1, exact = -2;
  for (const Value& row : rows.as_list()) {
    if (row["format"] == Value("float32")) exact = row["accuracy"].as_double();
    if (row["format"] == Value("tf32")) wide = row["accuracy"].as_double();
  }
  EXPECT_NEAR(wide, exact, 0.02);
}

}  // namespace
}  // namespace mase::command_test
