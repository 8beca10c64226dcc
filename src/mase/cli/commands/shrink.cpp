// SPDX-License-Identifier: Apache-2.0
// ch shrink: a quantised network with fewer bits and digits, the loss watched.
#include "mase/run/hardware/shrink.h"

#include <cstdio>

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/cli/hardware_setup.h"
#include "mase/io/networks/checkpoint.h"

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

// "25ns" or "25".
double nanoseconds_of(const std::string& text) {
  const bool unit = text.size() > 2 && text.substr(text.size() - 2) == "ns";
  const std::optional<double> number =
      parse_number(strip(unit ? text.substr(0, text.size() - 2) : text));
  if (!number || !(*number > 0) || *number > 1e9)
    throw Error("--latency", fmt::format("'{}' is no time", printable(text)), "give 25ns");
  return *number;
}

std::string missed_budget(const ShrinkSpec& spec, const ShrinkStep& last) {
  return spec.luts > 0 && last.luts > spec.luts
             ? fmt::format("{:.0f} LUTs are as few as a loss {:.3g} % higher allows", last.luts,
                           100 * spec.max_loss)
             : fmt::format("{:.1f} ns are as quick as a loss {:.3g} % higher allows", last.delay_ns,
                           100 * spec.max_loss);
}

// The front, the accuracies, and the network itself: written before designs are made of it.
void tell(const ShrinkResult& result, const std::string& output) {
  Table table({"LUTs (estimate)", "Levels", "ns (model)", "Loss (train)", "Accuracy (val)",
               "Accuracy (test)"});
  for (const ShrinkPoint& point : result.front)
    table.add({fmt::format("{:.0f}", point.step.luts), fmt::format("{:.0f}", point.step.levels),
               fmt::format("{:.1f}", point.step.delay_ns), figure_text(point.step.train_loss, 5),
               figure_text(point.step.validation), figure_text(point.test)});
  fmt::print("\nFront:\n{}\n", table.str());
  fmt::print("accuracy on {} test rows of {}: {} before, {} after\n", result.test_rows,
             result.dataset, figure_text(result.test_before), figure_text(result.test_after));
  save_mz(output, result.graph, result.contents);
  fmt::print("written to {}\n", output);
  std::fflush(stdout);
}

int run(const Arguments& arguments) {
  ShrinkSpec spec;
  spec.network = read_hardware_spec(arguments);
  spec.max_loss = share_of(arguments["max_loss"].as_string());
  if (!arguments["luts"].is_null()) spec.luts = arguments["luts"].as_double();
  if (!arguments["latency"].is_null())
    spec.delay_ns = nanoseconds_of(arguments["latency"].as_string());
  spec.rounds = arguments["rounds"].as_int();
  spec.retrain_epochs = arguments["retrain_epochs"].as_int();
  spec.learning_rate = arguments["learning_rate"].as_double();
  if (!arguments["designs"].is_null()) spec.designs = arguments["designs"].as_string();
  fmt::print("{:<10} {:>7} {:>5} {:>16} {:>18} {:>14} {:>15}\n", "", "digits", "bits",
             "LUTs (estimate)", "levels (estimate)", "training loss", "accuracy (val)");
  const std::string output = arguments["output"].as_string();
  ShrinkObserver observer;
  observer.step = [](const ShrinkStep& step) {
    fmt::print("{:<10} {:>7} {:>5} {:>16.0f} {:>18.0f} {:>14} {:>15}\n", step.what, step.digits,
               step.bits, step.luts, step.levels, figure_text(step.train_loss, 5),
               figure_text(step.validation));
    std::fflush(stdout);
  };
  observer.shrunk = [&](const ShrinkResult& result) { tell(result, output); };
  observer.emitted = [](const ShrinkPoint& point) {
    fmt::print("{}: {}\n", point.folder, point.proof);
    std::fflush(stdout);
  };
  const ShrinkResult result = shrink(spec, observer);
  if (!result.reached)
    throw Error(spec.luts > 0 ? "--luts" : "--latency", missed_budget(spec, result.steps.back()),
                "allow more with --max-loss");
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "shrink",
    .group = CommandGroup::hardware,
    .summary = "Shrink a quantised network to a budget of hardware",
    .help = "Features lose bits or leave with their neurons, weights lose signed digits, those "
            "whose loss should rise least first, while the loss on the training rows stays within "
            "--max-loss of what it was, or until the estimate is down to --luts and --latency. "
            "Between rounds weights are trained within the digits they have left. The result is "
            "another function: compare it at equal accuracy.",
    .positionals = hardware_positionals("whose training rows the loss is watched on"),
    .options = {[] {
      std::vector<Field> fields = hardware_network_options();
      fields.push_back({.name = "max_loss",
                        .type = FieldType::text,
                        .default_value = "1%",
                        .help = "how much the training loss may rise"});
      fields.push_back({.name = "luts",
                        .type = FieldType::number,
                        .help = "stop at an estimate of so many look-up tables",
                        .minimum = 1});
      fields.push_back({.name = "latency",
                        .type = FieldType::text,
                        .help = "stop at an estimated delay without registers, as 25ns"});
      fields.push_back({.name = "rounds",
                        .type = FieldType::integer,
                        .default_value = 4,
                        .help = "of taking away and training further",
                        .minimum = 1,
                        .maximum = 1000});
      fields.push_back({.name = "retrain_epochs",
                        .type = FieldType::integer,
                        .default_value = 20,
                        .help = "between rounds; 0: weights are not trained",
                        .minimum = 0});
      fields.push_back({.name = "learning_rate",
                        .type = FieldType::number,
                        .default_value = 2e-3,
                        .help = "of training between rounds",
                        .minimum = 0});
      fields.push_back({.name = "designs",
                        .type = FieldType::text,
                        .help = "a folder: every network of the front emitted and proved"});
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
    .examples = {"ch shrink --load quantised.mz --dataset jsc --max-loss 3%",
                 "ch shrink --load best.mz --config configs/examples/hardware_8bit.toml --dataset "
                 "jsc --max-loss 1%",
                 "ch shrink --load point.mz --dataset jsc --luts 1500 --designs designs"},
    .run = run,
}};

}  // namespace
}  // namespace mase::shrink_command
