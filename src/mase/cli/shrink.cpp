// SPDX-License-Identifier: Apache-2.0
// ch shrink: a quantised network with fewer signed digits in its weights, the loss watched.
#include "mase/run/shrink.h"

#include "mase/cli/hardware_setup.h"
#include "mase/io/checkpoint.h"

namespace mase::shrink_command {
namespace {

double share_of(const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::optional<double> number =
      parse_number(percent ? text.substr(0, text.size() - 1) : text);
  if (!number || *number < 0 || *number > 1000)
    throw Error("--max-loss", fmt::format("'{}' is no share of the loss", printable(text)),
                "give 1% or 0.01");
  return percent ? *number / 100 : *number;
}

int run(const Arguments& arguments) {
  ShrinkSpec spec;
  spec.network = read_hardware_spec(arguments);
  spec.max_loss = share_of(arguments["max_loss"].as_string());
  spec.luts = arguments["luts"].is_null() ? 0 : arguments["luts"].as_double();
  fmt::print("{:>8} {:>16} {:>18} {:>14}\n", "digits", "LUTs (estimate)", "levels (estimate)",
             "training loss");
  const ShrinkResult result = shrink(spec, [](const ShrinkStep& step) {
    fmt::print("{:>8} {:>16.0f} {:>18.0f} {:>14.5f}\n", step.digits, step.luts, step.levels,
               step.train_loss);
  });
  fmt::print("accuracy on {} test rows of {}: {:.4f} before, {:.4f} after\n", result.test_rows,
             result.dataset, result.test_before, result.test_after);
  const std::string output = arguments["output"].as_string();
  save_mz(output, result.graph, result.contents);
  fmt::print("written to {}\n", output);
  if (!result.reached)
    throw Error("--luts",
                fmt::format("{:.0f} is as small as a loss {:.3g} % higher allows",
                            result.steps.back().luts, 100 * spec.max_loss),
                "allow more with --max-loss");
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "shrink",
    .group = CommandGroup::hardware,
    .summary = "Take signed digits out of a quantised network's weights",
    .help = "Weights lose signed digits, those whose loss should rise least first, while the loss "
            "on the training rows stays within --max-loss of what it was, or until the estimate "
            "is down to --luts. The result is another function: compare it at equal accuracy.",
    .positionals = hardware_positionals(),
    .options = {[] {
      std::vector<Field> fields = hardware_network_options();
      std::erase_if(fields, [](const Field& field) { return field.name == "rows"; });
      fields.push_back({.name = "max_loss",
                        .type = FieldType::text,
                        .default_value = "1%",
                        .help = "how much the training loss may rise"});
      fields.push_back({.name = "luts",
                        .type = FieldType::number,
                        .help = "stop at an estimate of so many look-up tables",
                        .minimum = 1});
      fields.push_back({.name = "seed",
                        .type = FieldType::integer,
                        .default_value = 0,
                        .help = "of the data's split",
                        .minimum = 0});
      fields.push_back({.name = "output",
                        .type = FieldType::text,
                        .default_value = "shrunk.mz",
                        .help = "the network to write"});
      return fields;
    }()},
    .examples = {"ch shrink --load best.mz --config configs/examples/hardware_8bit.toml --dataset "
                 "jsc --max-loss 1%"},
    .run = run,
}};

}  // namespace
}  // namespace mase::shrink_command
