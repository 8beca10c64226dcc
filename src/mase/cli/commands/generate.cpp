// SPDX-License-Identifier: Apache-2.0
// ch generate: a network goes on with a text.
#include <cmath>
#include <cstdio>

#include "mase/base/text.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/models/hf.h"
#include "mase/run/language.h"
#include "mase/run/network.h"
#include "mase/text/tokenizer.h"

namespace mase::generate_command {
namespace {

// eos_token_id: one or several.
std::vector<int32_t> ends_of(const Value& config) {
  std::vector<int32_t> ends;
  const Value& given = config["eos_token_id"];
  if (given.is_int()) ends.push_back(static_cast<int32_t>(given.as_int()));
  if (given.is_list())
    for (const Value& one : given.as_list())
      if (one.is_int()) ends.push_back(static_cast<int32_t>(one.as_int()));
  return ends;
}

// Bytes that are no whole character yet wait for those behind them.
size_t whole_characters(const std::string& text) {
  const std::string broken = "\xEF\xBF\xBD";
  return ends_with(text, broken) ? text.size() - broken.size() : text.size();
}

// To where the text does not go.
void tell_speed(const Graph& graph, const GenerateSpec& spec, size_t tokens,
                const GenerateTimes& times) {
  const auto prompt = static_cast<double>(spec.prompt.size()), made = static_cast<double>(tokens);
  const WeightBytes weights = weight_bytes(graph);
  const double read = static_cast<double>(weights.bytes) * (made - 1) / times.tokens;
  fmt::print(stderr, "prompt   {} tokens, {:.1f} tokens/s\n", spec.prompt.size(),
             prompt / times.prompt);
  if (tokens > 1)
    fmt::print(stderr, "text     {} tokens, {:.1f} tokens/s, {:.2f} GB/s of weights\n", tokens,
               (made - 1) / times.tokens, read / 1e9);
  fmt::print(
      stderr, "weights  {:.1f} MB, {:.2f} bits a value, {:.1f} % of the values packed\n",
      static_cast<double>(weights.bytes) / 1e6,
      8.0 * static_cast<double>(weights.bytes) / static_cast<double>(weights.values),
      100.0 * static_cast<double>(weights.packed_values) / static_cast<double>(weights.values));
  const CacheSize cache = cache_of_token(graph);
  fmt::print(stderr,
             "cache    {} values a token, {} bits in their number formats, kept as floats\n",
             with_thousands(cache.values), with_thousands(std::llround(cache.bits)));
}

int run(const Arguments& arguments) {
  catch_interrupts();
  const Settings settings = merge_settings("generate", arguments);
  const Logger log(settings, false);
  const Logger told(settings, true);
  for (const std::string& warning : settings.warnings) told.warning(warning);
  ExperimentSpec spec = experiment_spec(settings);
  const std::string folder = spec.network.load;
  if (folder.empty())
    throw Error("--load", "is missing", "name the network's folder or .gguf file: --load FOLDER");
  if (settings.has("prompt") == settings.has("input"))
    throw Error("--prompt", "give either this or --input", "a text, or a .npy of token numbers");
  GenerateSpec wanted{.tokens = settings["tokens"].as_int(),
                      .temperature = settings["temperature"].as_double(),
                      .top_k = settings["top_k"].as_int(),
                      .top_p = settings["top_p"].as_double(),
                      .seed = spec.seed,
                      .threads = spec.threads};
  std::optional<Tokenizer> tokenizer;
  if (Tokenizer::is_in(folder)) tokenizer = Tokenizer::load(folder);
  if (settings.has("prompt")) {
    if (!tokenizer) {
      open_checkpoint(spec.network);  // what is not there is told first
      throw Error(folder, "has no tokenizer", "give token numbers: --input ids.npy");
    }
    wanted.prompt = tokenizer->ids(settings["prompt"].as_string());
  } else {
    wanted.prompt = text_tokens(folder, settings["input"].as_string());
  }
  Observer observer = log.observer();
  observer.log = [told](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning) told.warning(line);
  };
  const Graph graph = language_network(std::move(spec), observer);
  if (!settings["ignore_end"].as_bool()) wanted.ends = ends_of(hf_config(graph));
  std::vector<int32_t> all;
  GenerateTimes times;
  size_t shown = 0;
  if (settings.has("prompt")) std::fputs(settings["prompt"].as_string().c_str(), stdout);
  generate(
      graph, wanted,
      [&](int32_t token) {
        all.push_back(token);
        if (settings["ids"].as_bool() || !tokenizer) {
          fmt::print("{}{}", all.size() > 1 ? " " : "", token);
        } else {
          const std::string text = tokenizer->decode(all, true);
          const size_t end = std::max(shown, whole_characters(text));
          std::fwrite(text.data() + shown, 1, end - shown, stdout);
          shown = end;
        }
        std::fflush(stdout);
        return true;
      },
      nullptr, &times);
  std::fputs("\n", stdout);
  if (settings["speed"].as_bool()) tell_speed(graph, wanted, all.size(), times);
  return 0;
}

std::vector<Field> own_options() {
  const char* group = "Generate options";
  return {
      {.name = "prompt", .type = FieldType::text, .help = "the text to go on with", .group = group},
      {.name = "input",
       .type = FieldType::text,
       .help = "the same from a text file, or a .npy of token numbers",
       .group = group},
      {.name = "tokens",
       .type = FieldType::integer,
       .default_value = 64,
       .help = "new tokens at most",
       .minimum = 1,
       .maximum = 1 << 20,
       .group = group},
      {.name = "temperature",
       .type = FieldType::number,
       .default_value = 0.0,
       .help = "0: always the likeliest token; 1: as the network says",
       .minimum = 0,
       .group = group},
      {.name = "top_k",
       .type = FieldType::integer,
       .default_value = 0,
       .help = "draw from so many of the likeliest tokens; 0: from all",
       .minimum = 0,
       .group = group},
      {.name = "top_p",
       .type = FieldType::number,
       .default_value = 1.0,
       .help = "draw from the fewest tokens that have this probability together",
       .minimum = 0,
       .maximum = 1,
       .group = group},
      {.name = "ids",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "print token numbers",
       .group = group},
      {.name = "ignore_end",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "go on behind the token that ends a text",
       .group = group},
      {.name = "speed",
       .type = FieldType::boolean,
       .default_value = false,
       .help =
           "say at the end, on the error stream, how fast it was and what weights and cache take",
       .group = group}};
}

const Register<CommandRecord> registered{{
    .name = "generate",
    .group = CommandGroup::train,
    .summary = "Let a language model go on with a text",
    .help = "Tokens are printed as they come. Keys and values of earlier tokens are kept, so each "
            "new one is computed alone. The same seed gives the same text.",
    .positionals = {network_word()},
    .options = {without(general_options(), {"task", "project", "project_dir"}) + config_options() +
                own_options()},
    .tables = {"passes"},
    .examples = {"ch generate FOLDER --prompt \"To be\"",
                 "ch generate --load FOLDER --prompt \"To be, or\" --tokens 20",
                 "ch generate --load FOLDER --prompt \"Once\" --temperature 0.8 --top-p 0.95 "
                 "--seed 3"},
    .run = run,
}};

}  // namespace
}  // namespace mase::generate_command
