// SPDX-License-Identifier: Apache-2.0
// ch format speed: how fast the formats round, against a plain copy, on one core.
#include "mase/cli/format_speed.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>

#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/tensor.h"
#include "mase/cli/format_sweep.h"
#include "mase/cli/json_option.h"
#include "mase/formats/measure.h"

namespace mase {
namespace {

constexpr int64_t columns = 64, values_in_cache = 1 << 13, values_in_memory = 1 << 23;

struct Contender {
  std::string name;
  std::function<void(const float* in, float* out, const Shape& shape)> work;
  int64_t values = 0;
  int repeat = 1;
  double best = 0;  // values per second
};

// Processor time of this thread: what others take of a busy core does not count.
double thread_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Best of several; the contenders take turns, so that a busy machine is busy for all of them.
void race(std::vector<Contender>& contenders, int rounds) {
  Tensor in({values_in_memory / columns, columns}), out(in.shape());
  Random random(1, "format speed");
  float* x = in.mutable_data<float>();
  for (int64_t i = 0; i < in.numel(); ++i) x[i] = static_cast<float>(random.normal());
  float* y = out.mutable_data<float>();
  for (int round = 0; round < rounds; ++round)
    for (Contender& contender : contenders) {
      const Shape shape = {contender.values / columns, columns};
      const double start = thread_seconds();
      for (int i = 0; i < contender.repeat; ++i) contender.work(x, y, shape);
      const double seconds = thread_seconds() - start;
      contender.best = std::max(contender.best,
                                static_cast<double>(contender.values * contender.repeat) / seconds);
    }
}

// The config nearest to eight bits that the format is swept with.
QuantizerPtr eight_bits(const FormatRecord& record) {
  const std::vector<Value> configs = record.ladder ? record.ladder(4) : List{Value(Dict())};
  QuantizerPtr best;
  for (const Value& config : configs) {
    const QuantizerPtr quantizer = make_quantizer(record.name, config);
    if (!best || std::abs(quantizer->code_bits - 8) < std::abs(best->code_bits - 8))
      best = quantizer;
  }
  return best;
}

constexpr const char* measures[] = {"in_cache", "in_memory", "encode", "decode"};
constexpr size_t measure_count = std::size(measures);

void add(std::vector<Contender>& contenders, const QuantizerPtr& quantizer) {
  const auto round = [quantizer](const float* in, float* out, const Shape& shape) {
    quantizer->quantize(in, out, shape);
  };
  const auto encode = [quantizer](const float* in, float*, const Shape& shape) {
    quantizer->encode(in, shape);
  };
  std::vector<float> ones(values_in_cache, 1.0f);
  const auto decode =
      [quantizer, codes = quantizer->encode(ones.data(), {values_in_cache / columns, columns})](
          const float*, float* out, const Shape& shape) { quantizer->decode(codes, out, shape); };
  contenders.push_back({quantizer->format, round, values_in_cache, 100});
  contenders.push_back({quantizer->format, round, values_in_memory, 1});
  contenders.push_back({quantizer->format, encode, values_in_cache, 50});
  contenders.push_back({quantizer->format, decode, values_in_cache, 50});
}

}  // namespace

int format_speed(const Arguments& arguments) {
  const auto copy = [](const float* in, float* out, const Shape& shape) {
    std::memcpy(out, in, static_cast<size_t>(element_count(shape)) * sizeof(float));
  };
  std::vector<Contender> contenders;
  for (size_t i = 0; i < measure_count; ++i)
    contenders.push_back(
        {"copy", copy, i == 1 ? values_in_memory : values_in_cache, i == 1 ? 1 : 100});
  const std::vector<std::string> only = formats_of(arguments["only"]);
  std::map<std::string, std::string> configs;
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    if (!std::count(only.begin(), only.end(), record->name)) continue;
    const QuantizerPtr quantizer = eight_bits(*record);
    configs[record->name] = config_text(*record, quantizer->config);
    add(contenders, quantizer);
  }
  race(contenders, 12);

  Table table({"Format", "Config", "In cache", "From memory", "Encode", "Decode", "Time / copy's"});
  Dict record;
  for (size_t i = 0; i < contenders.size(); i += measure_count) {
    const std::string& name = contenders[i].name;
    std::vector<std::string> cells = {name, configs[name]};
    Dict speeds;
    for (size_t k = 0; k < measure_count; ++k) {
      cells.push_back(fmt::format("{:.2f}", contenders[i + k].best * 1e-9));
      speeds.set(measures[k], contenders[i + k].best);
    }
    cells.push_back(fmt::format("{:.2f}", contenders[1].best / contenders[i + 1].best));
    table.add(cells);
    record.set(name, Value(speeds));
  }
  fmt::print("{}", table.str());
  fmt::print(
      "10^9 values/s on one core: rounding {} values, rounding {} values, codes of the former and "
      "back;\ntime of the second against a plain copy's\n",
      values_in_cache, values_in_memory);
  if (!arguments["json"].is_null()) write_json(arguments["json"].as_string(), Value(record));
  return 0;
}

}  // namespace mase
