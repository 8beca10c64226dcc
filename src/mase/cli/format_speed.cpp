// SPDX-License-Identifier: Apache-2.0
// ch format speed: how fast the formats round, against a plain copy, on one core.
#include "mase/cli/format_speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/tensor.h"
#include "mase/formats/measure.h"

namespace mase {
namespace {

using Work = std::function<void(const float* in, float* out, const Shape& shape)>;

struct Contender {
  std::string name;
  Work work;
  double in_cache = 0, in_memory = 0;  // values per second
};

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Best of several; the contenders take turns, so that a busy machine is busy for all of them.
void race(std::vector<Contender>& contenders, int64_t values, int repeat, int rounds,
          double Contender::*result) {
  Tensor in({values / 64, 64}), out({values / 64, 64});
  Random random(1, "format speed");
  float* x = in.mutable_data<float>();
  for (int64_t i = 0; i < values; ++i) x[i] = static_cast<float>(random.normal());
  float* y = out.mutable_data<float>();
  for (int round = 0; round < rounds; ++round)
    for (Contender& contender : contenders) {
      const double seconds = seconds_of([&] {
        for (int i = 0; i < repeat; ++i) contender.work(x, y, in.shape());
      });
      contender.*result =
          std::max(contender.*result, static_cast<double>(values) * repeat / seconds);
    }
}

}  // namespace

int format_speed(const Arguments& arguments) {
  std::vector<Contender> contenders;
  contenders.push_back({"copy", [](const float* in, float* out, const Shape& shape) {
                          std::memcpy(out, in, static_cast<size_t>(element_count(shape)) * 4);
                        }});
  const std::pair<const char*, Dict> formats[] = {
      {"integer", {{"width", 8}, {"frac_width", 4}}},
      {"e4m3", {}},
      {"float", {{"exponent_width", 5}, {"mantissa_width", 4}}},
      {"bfloat16", {}},
      {"minifloat_ieee", {{"width", 8}, {"exponent_width", 4}}},
      {"log", {{"width", 8}}},
      {"scale_integer", {{"width", 8}}},
      {"block_fp", {{"width", 8}, {"block_size", List{Value(1), Value(16)}}}},
      {"block_minifloat",
       {{"width", 8},
        {"exponent_width", 4},
        {"exponent_bias_width", 8},
        {"block_size", List{Value(1), Value(16)}}}},
      {"block_log",
       {{"width", 8}, {"exponent_bias_width", 8}, {"block_size", List{Value(1), Value(16)}}}},
      {"mxint", {{"width", 8}}},
      {"mxfp", {{"exponent_width", 4}, {"frac_width", 3}}},
  };
  for (const auto& [name, config] : formats) {
    const QuantizerPtr quantizer = make_quantizer(name, Value(config));
    contenders.push_back({name, [quantizer](const float* in, float* out, const Shape& shape) {
                            quantizer->quantize(in, out, shape);
                          }});
  }
  race(contenders, 1 << 13, 400, 15, &Contender::in_cache);
  race(contenders, 1 << 24, 1, 6, &Contender::in_memory);

  Table table({"Format", "In cache [Gvalue/s]", "From memory [Gvalue/s]", "Time / copy's"});
  Dict record;
  for (const Contender& contender : contenders) {
    table.add({contender.name, fmt::format("{:.2f}", contender.in_cache * 1e-9),
               fmt::format("{:.2f}", contender.in_memory * 1e-9),
               fmt::format("{:.2f}", contenders[0].in_memory / contender.in_memory)});
    record.set(contender.name,
               Dict{{"in_cache", contender.in_cache}, {"in_memory", contender.in_memory}});
  }
  fmt::print("{}", table.str());
  if (!arguments["json"].is_null()) {
    FILE* file = std::fopen(arguments["json"].as_string().c_str(), "w");
    if (!file) throw Error(arguments["json"].as_string(), "cannot be written");
    fmt::print(file, "{}\n", to_json(Value(record), 1));
    std::fclose(file);
  }
  return 0;
}

}  // namespace mase
