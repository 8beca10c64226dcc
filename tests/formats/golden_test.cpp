// SPDX-License-Identifier: Apache-2.0
// Every published case of MASE's quantisers and of the OCP MX emulation, through the library and
// through ch quantize, bit for bit (-0 equals 0).
#include <cmath>
#include <map>

#include "mase/formats/cases.h"
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::golden_test {
namespace {

std::map<std::string, Tensor> tensors_of(const std::string& path) {
  std::map<std::string, Tensor> result;
  for (auto& [name, tensor] : load_safetensors(path)) result.emplace(name, tensor);
  return result;
}

// Scaled binary and ternary hold a mean, whose last bit depends on the order of summation.
double tolerance(const Quantizer& quantizer) {
  if (quantizer.format == "binary") return quantizer.config["bipolar"].as_bool() ? 0 : 1e-6;
  if (quantizer.format == "ternary") return quantizer.config["scaling_factor"].as_bool() ? 1e-6 : 0;
  return 0;
}

bool agree(float a, float b, double relative) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= relative * std::fabs(b);
}

int compare(const QuantizeCase& item, const Tensor& in, const Tensor& want, const Tensor& got) {
  int wrong = 0;
  if (got.shape() != want.shape()) return 1;
  for (int64_t i = 0; i < want.numel(); ++i)
    if (!agree(got.data<float>()[i], want.data<float>()[i], tolerance(*item.quantizer)) &&
        wrong++ == 0)
      ADD_FAILURE() << item.output << " " << item.quantizer->format << " "
                    << python_repr(item.quantizer->config) << " of " << item.input << "[" << i
                    << "] = " << in.data<float>()[i] << ": got " << got.data<float>()[i]
                    << ", want " << want.data<float>()[i];
  return wrong;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, ThroughTheLibrary) {
  const std::string stem = test::golden_path(std::string("formats/") + GetParam());
  const auto tensors = tensors_of(stem + ".safetensors");
  const auto cases = quantize_cases(read_json(stem + ".json"));
  EXPECT_GT(cases.size(), 600u);
  int failed = 0;
  for (const QuantizeCase& item : cases) {
    const Tensor& in = tensors.at(item.input);
    if (compare(item, in, tensors.at(item.output), quantize(*item.quantizer, in))) ++failed;
    Tensor plain(in.shape());
    item.quantizer->reference(in.data<float>(), plain.mutable_data<float>(), in.shape());
    if (compare(item, in, tensors.at(item.output), plain)) ++failed;
  }
  EXPECT_EQ(failed, 0) << "of " << cases.size();
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::Values("quantizers", "mx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mase::golden_test
