// SPDX-License-Identifier: Apache-2.0
// ch perplexity: how well a network predicts the next token of a text.
#include <cstdio>

#include "mase/base/text.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/run/language.h"

namespace mase::perplexity_command {
namespace {

int run(const Arguments& arguments) {
  catch_interrupts();
  const Settings settings = merge_settings("perplexity", arguments);
  const Logger log(settings, true);
  for (const std::string& warning : settings.warnings) log.warning(warning);
  ExperimentSpec spec = experiment_spec(settings);
  if (spec.network.load.empty())
    throw Error("--load", "is missing", "name the network's folder or .gguf file: --load FOLDER");
  if (!settings.has("input"))
    throw Error("--input", "is missing", "name a text or token numbers: --input text.txt");
  const std::string input = settings["input"].as_string(), folder = spec.network.load;
  const int threads = spec.threads;
  const std::vector<int32_t> ids = text_tokens(folder, input);
  const int64_t length = settings["length"].as_int();
  const bool layered = settings["layer_by_layer"].as_bool();
  if (layered && !spec.passes.calls.empty())
    throw Error("--layer-by-layer", "a network that passes change is not measured so",
                "leave the passes out");
  const Perplexity result =
      layered ? layered_perplexity(spec.network, ids, length, threads, log.observer())
              : perplexity(language_network(std::move(spec), log.observer()), ids, length, threads,
                           log.observer());
  fmt::print(
      "perplexity {:.6g}\nloss       {:.6g}  (mean of {} predictions)\ntokens     {} in {} "
      "windows of {}\n",
      result.value(), result.loss(), with_thousands(result.predictions),
      with_thousands(result.tokens), result.windows, settings["length"].as_int());
  if (result.tokens < static_cast<int64_t>(ids.size()))
    fmt::print("left out   {} token at the end, which alone predicts nothing\n",
               static_cast<int64_t>(ids.size()) - result.tokens);
  return 0;
}

std::vector<Field> own_options() {
  const char* group = "Perplexity options";
  return {{.name = "input",
           .type = FieldType::text,
           .help = "a text in UTF-8, or a .npy of token numbers, read row after row",
           .group = group},
          {.name = "length",
           .type = FieldType::integer,
           .default_value = 512,
           .help = "tokens of a window; the first of each is not predicted",
           .minimum = 2,
           .maximum = 1 << 20,
           .group = group},
          {.name = "layer_by_layer",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "all windows through one layer after the other: only one layer's weights are in "
                   "memory",
           .group = group}};
}

const Register<CommandRecord> registered{{
    .name = "perplexity",
    .group = CommandGroup::train,
    .summary = "Measure how well a language model predicts a text",
    .help = "The text is cut into windows one behind the other. Perplexity is exp of the mean loss "
            "over all predicted tokens of all windows, not a mean of windows.",
    .positionals = {network_word()},
    .options = {without(general_options(), {"task", "seed", "project", "project_dir"}) +
                config_options() + own_options()},
    .tables = {"passes"},
    .examples = {"ch perplexity FOLDER --input text.txt --length 16",
                 "ch perplexity FOLDER --input text.txt --length 16 --threads 2",
                 "ch perplexity --load FOLDER --input text.txt --length 2048",
                 "ch perplexity --load FOLDER --input text.txt --length 16 --layer-by-layer"},
    .run = run,
}};

}  // namespace
}  // namespace mase::perplexity_command
