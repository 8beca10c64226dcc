// SPDX-License-Identifier: Apache-2.0
// ch quantize: rounds the tensors of a file to number formats and says what it costs.
#include <map>

#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/formats/cases.h"
#include "mase/formats/measure.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/packed.h"
#include "mase/io/numpy/numpy_tensors.h"
#include "mase/run/set_option.h"

namespace mase::quantize_command {
namespace {

std::string number(double value) { return fmt::format("{:.6g}", value); }

// The cases, or one format for all tensors: judged before the file is opened.
struct Wanted {
  std::vector<QuantizeCase> cases;
  QuantizerPtr format;
};

Wanted wanted(const Arguments& arguments) {
  if (arguments["cases"].is_null() == arguments["format"].is_null())
    throw Error("ch quantize", "give either --cases or --format",
                "--cases FILE.json, or --format NAME --set key=value");
  if (!arguments["cases"].is_null()) {
    if (!arguments["set"].is_null())
      throw Error("--set", "belongs to --format", "put the keys into the cases' \"config\"");
    return {quantize_cases(read_json(arguments["cases"].as_string())), {}};
  }
  Registry<FormatRecord>::instance().get(arguments["format"].as_string(), "--format");
  return {{},
          make_quantizer(arguments["format"].as_string(), set_table(arguments["set"]), "--set")};
}

std::vector<QuantizeCase> cases_for(const Wanted& wanted, const TensorTable& tensors) {
  if (!wanted.format) return wanted.cases;
  std::vector<QuantizeCase> cases;
  for (const auto& [name, tensor] : tensors) {
    const DType type = tensor.dtype();
    if (type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16)
      cases.push_back({name, name, wanted.format});
  }
  return cases;
}

// Codes back to values: nothing is rounded.
int unpack(const Arguments& arguments) {
  for (const char* other : {"cases", "format", "set", "packed"})
    if (!arguments[other].is_null())
      throw Error(fmt::format("--{}", other), "does not go with --unpack",
                  "--unpack reads formats from the file");
  if (arguments["output"].is_null())
    throw Error("--unpack", "there is no --output", "say where the values go");
  const TensorTable tensors = load_packed(arguments["input"].as_string());
  save_safetensors(arguments["output"].as_string(), tensors);
  fmt::print("{} tensors written to {}\n", tensors.size(), arguments["output"].as_string());
  return 0;
}

bool is_array_file(const std::string& path) {
  const std::string name = lower_case(path);
  return ends_with(name, ".npy") || ends_with(name, ".npz");
}

int run(const Arguments& arguments) {
  if (arguments["unpack"].as_bool()) return unpack(arguments);
  const Wanted asked = wanted(arguments);
  const std::string& path = arguments["input"].as_string();
  const TensorTable tensors =
      is_array_file(path) ? read_numpy_tensors(path) : load_checkpoint(path).tensors;
  std::map<std::string, const Tensor*> by_name;
  for (const auto& [name, tensor] : tensors) by_name[name] = &tensor;
  TensorTable results;
  std::vector<PackedTensor> packed;
  std::map<std::string, bool> seen;
  Table table({"Tensor", "Format", "Values", "Bits", "Max error", "MSE", "SQNR [dB]", "Saturated"});
  for (const QuantizeCase& item : cases_for(asked, tensors)) {
    const auto found = by_name.find(item.input);
    if (found == by_name.end()) {
      std::vector<std::string> names;
      for (const auto& [name, tensor] : by_name) names.push_back(name);
      throw Error(path, fmt::format("there is no tensor '{}'", printable(item.input)),
                  suggestion(item.input, names));
    }
    if (seen[item.output])
      throw Error(arguments["cases"].as_string(),
                  fmt::format("two cases write '{}'", printable(item.output)),
                  "give every case an output of its own");
    seen[item.output] = true;
    const Tensor out = quantize(*item.quantizer, *found->second);
    const QuantizationError error = measure_error(*item.quantizer, *found->second, out);
    table.add({printable(item.output), item.quantizer->format, std::to_string(out.numel()),
               fmt::format("{:.4g}", error.bits), number(error.max_error),
               number(error.mean_squared_error), fmt::format("{:.2f}", error.sqnr),
               fmt::format("{:.2f}%", 100 * error.saturation)});
    results.emplace_back(item.output, out);
    if (!arguments["packed"].is_null())
      packed.push_back({item.output, item.quantizer, *found->second});
  }
  if (!arguments["quiet"].as_bool()) fmt::print("{}", table.str());
  if (!arguments["output"].is_null()) {
    save_safetensors(arguments["output"].as_string(), results);
    fmt::print("{} tensors written to {}\n", results.size(), arguments["output"].as_string());
  }
  if (!arguments["packed"].is_null()) {
    save_packed(arguments["packed"].as_string(), packed);
    fmt::print("codes of {} tensors written to {}\n", packed.size(),
               arguments["packed"].as_string());
  }
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "quantize",
    .group = CommandGroup::quantise,
    .summary = "Round the tensors of a file to a number format and measure the error",
    .help = "A case of --cases is {\"quantizer\": NAME, \"config\": {...}, \"input\": TENSOR, "
            "\"output\": TENSOR}, or a microscaling one with \"format\", \"block_size\", \"axis\", "
            "\"round\" and \"scale_bits\". The formats: ch format list.",
    .positionals = {{.name = "input",
                     .help = "the tensors: .safetensors, .pt, .ckpt, .mz, .npy or .npz",
                     .option = true}},
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "where the rounded tensors go (.safetensors)"},
                 {.name = "cases", .type = FieldType::text, .help = "a list of cases (.json)"},
                 {.name = "format",
                  .type = FieldType::text,
                  .help = "one format for all floating-point tensors of the file"},
                 {.name = "set",
                  .type = FieldType::list,
                  .help = "a key of the format, key=value; may be repeated"},
                 {.name = "packed",
                  .type = FieldType::text,
                  .help = "where the codes go, as many bits as they have (.safetensors)"},
                 {.name = "unpack",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "the input holds packed codes: write their values"},
                 {.name = "quiet",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "print no table"}}},
    .examples = {"ch quantize --format integer --set width=8 --set frac_width=4 "
                 "--input weights.safetensors --output rounded.safetensors",
                 "ch quantize --cases cases.json --input in.safetensors --output out.safetensors",
                 "ch quantize weights.npy --format e2m1 --packed codes.safetensors",
                 "ch quantize --unpack --input codes.safetensors --output rounded.safetensors"},
    .run = run,
}};

}  // namespace
}  // namespace mase::quantize_command
