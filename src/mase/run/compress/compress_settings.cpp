// SPDX-License-Identifier: Apache-2.0
// What ch compress is asked for, and the network and rows it needs.
#include "mase/run/compress/compress.h"

#include "mase/run/compress/compress_plan.h"
#include "mase/run/options.h"
#include "mase/run/record_options.h"

namespace mase {
namespace {

// What can be judged without the network.
void check_texts(const CompressSpec& spec) {
  Problems problems;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const Error& error) {
      problems.add(error);
    }
  };
  for (const std::string& text : spec.formats) attempt([&] { compress_format(text); });
  for (const std::string& text : spec.methods)
    attempt([&] {
      const CompressMethod method = compress_method(text, spec.calibration_rows);
      for (const auto* steps : {&method.before, &method.after})
        for (const CompressStep& step : *steps)
          if (step.trains)
            attempt([&] { train_spec(experiment_settings(step.call.args)); });
          else
            check_pass_arguments({step.call}, problems);
    });
  problems.throw_if_any();
}

}  // namespace

std::vector<Field> compress_options() {
  const char* group = "Compression options";
  return {{.name = "formats",
           .type = FieldType::list,
           .default_value = Value::of(std::vector<std::string>{
               "group_integer:width=4", "nf4", "mxint:width=4", "group_integer:width=3"}),
           .help = "number formats of weights, NAME or NAME:key=value,key=value; keys of other "
                   "operands as data_in_width=8",
           .group = group},
          {.name = "methods",
           .type = FieldType::list,
           .default_value = Value::of(std::vector<std::string>{"rtn", "gptq"}),
           .help = "rtn (rounding alone), a pass, or a chain of them such as "
                   "smoothquant:alpha=0.8+gptq; train:max_epochs=2 trains on",
           .group = group},
          {.name = "leave",
           .type = FieldType::list,
           .help = "layers that keep their weights: names or expressions over names",
           .group = group},
          {.name = "rows",
           .type = FieldType::integer,
           .help = "test rows to measure on, the first of them (default: all)",
           .minimum = 1,
           .group = group},
          {.name = "calibration_rows",
           .type = FieldType::integer,
           .help = "training rows, or windows of a text, that methods see (default: their own)",
           .minimum = 8,
           .maximum = 1e7,
           .group = group},
          {.name = "input",
           .type = FieldType::text,
           .help = "of a network that predicts the next token: the text it is measured on, or a "
                   ".npy of token numbers",
           .group = group},
          {.name = "calibration",
           .type = FieldType::text,
           .help = "with --input: another text, which methods see",
           .group = group},
          {.name = "length",
           .type = FieldType::integer,
           .default_value = 512,
           .help = "with --input: tokens of a window",
           .minimum = 2,
           .maximum = 1 << 20,
           .group = group},
          {.name = "keep",
           .type = FieldType::text,
           .default_value = "front",
           .help = "networks that are written: those of the front, all, or none",
           .choices = {"front", "all", "none"},
           .group = group},
          {.name = "resume",
           .type = FieldType::text,
           .help = "the folder of a run that was stopped: its rows are kept, and others added",
           .group = group}};
}

CompressSpec compress_spec(const Settings& settings) {
  CompressSpec spec;
  const auto texts = [&](const char* name) {
    return settings.has(name) ? settings[name].as_string_list(name) : std::vector<std::string>();
  };
  const auto text = [&](const char* name) {
    return settings.has(name) ? settings[name].as_string(name) : std::string();
  };
  spec.formats = texts("formats");
  spec.methods = texts("methods");
  if (spec.formats.empty()) throw Error("--formats", "names no format", "see ch format list");
  if (spec.methods.empty()) throw Error("--methods", "names no method", "rtn is rounding alone");
  spec.leave = texts("leave");
  if (settings.has("rows")) spec.rows = settings["rows"].as_int();
  if (settings.has("calibration_rows"))
    spec.calibration_rows = settings["calibration_rows"].as_int();
  spec.text = text("input");
  spec.calibration_text = text("calibration");
  if (spec.text.empty() != spec.calibration_text.empty())
    throw Error(spec.text.empty() ? "--input" : "--calibration", "is missing",
                "a network is measured on one text and methods see another: give both");
  if (spec.text == spec.calibration_text && !spec.text.empty())
    throw Error("--calibration", "is the text that is measured on",
                "give another one, or figures say nothing");
  if (spec.text.empty() && settings.given("length"))
    throw Error("--length", "belongs to --input", "leave it out");
  spec.length = settings["length"].as_int();
  spec.keep = settings["keep"].as_string();
  spec.resume = text("resume");
  check_texts(spec);
  return spec;
}

std::unique_ptr<Experiment> compress_experiment(const Settings& settings, const CompressSpec& spec,
                                                const Observer& observer, const InMemory& memory) {
  ExperimentSpec wanted = experiment_spec(settings);
  take_from_memory(wanted, memory);
  if (spec.text.empty()) {
    wanted.data.needed = true;
  } else if (!wanted.data.name.empty()) {
    throw Error("--input", "and a data set are given", "leave one of them out");
  }
  auto experiment = std::make_unique<Experiment>(std::move(wanted), observer);
  experiment->prepare();
  experiment->apply_passes();
  if (!experiment->network().loaded)
    observer.warning("no --load: the network has its initial random weights");
  return experiment;
}

}  // namespace mase
