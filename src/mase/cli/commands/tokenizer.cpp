// SPDX-License-Identifier: Apache-2.0
// ch tokenizer: texts to token ids and back, what a tokenizer is made of, and learning one.
#include <cstdio>
#include <filesystem>
#include <map>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/cli/terminal.h"
#include "mase/text/tokenizer.h"
#include "mase/text/train_bpe.h"

namespace mase::tokenizer_command {
namespace {

std::vector<std::string> lines_of(const std::string& path, bool keep_ends) {
  const std::string text = read_text_file(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at + (keep_ends && end < text.size() ? 1 : 0)));
    if (!keep_ends && !lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    if (first_invalid_utf8(lines.back()) < lines.back().size())
      throw Error(fmt::format("{}:{}", path, lines.size()), "is not UTF-8",
                  "convert the file, for instance with iconv");
    at = end + 1;
  }
  return lines;
}

// What is to be encoded or decoded: the words, or the lines of a file.
std::vector<std::string> texts_of(const Arguments& arguments, const std::string& action) {
  const bool words = arguments["words"].is_list() && !arguments["words"].as_list().empty();
  const bool file = !arguments["input"].is_null();
  if (words == file)
    throw Error("ch tokenizer " + action,
                words ? "texts and --input are both given" : "nothing is given to " + action,
                fmt::format("ch tokenizer {} TOKENIZER {}, or --input FILE", action,
                            action == "encode" ? "'a text'" : "12 7 1300"));
  if (file) return lines_of(arguments["input"].as_string(), false);
  return arguments["words"].as_string_list("words");
}

const std::map<std::string, CutStrategy>& cut_strategies() {
  static const std::map<std::string, CutStrategy> strategies = {
      {"longest_first", CutStrategy::longest_first},
      {"only_first", CutStrategy::only_first},
      {"only_second", CutStrategy::only_second}};
  return strategies;
}

template <class Numbers>
List list_of(const Numbers& numbers) {
  List list;
  for (const auto number : numbers) list.push_back(static_cast<int64_t>(number));
  return list;
}

Value described(const Tokenizer& tokenizer, const Encoding& encoding) {
  List tokens, offsets, windows;
  for (size_t i = 0; i < encoding.size(); ++i) {
    tokens.push_back(std::string(tokenizer.vocabulary().token(encoding.ids[i]).value_or("")));
    offsets.push_back(List{static_cast<int64_t>(encoding.offsets[i].begin),
                           static_cast<int64_t>(encoding.offsets[i].end)});
  }
  Dict result{{"ids", list_of(encoding.ids)},
              {"tokens", std::move(tokens)},
              {"offsets", std::move(offsets)},
              {"type_ids", list_of(encoding.types)},
              {"attention_mask", list_of(encoding.mask)},
              {"special_tokens_mask", list_of(encoding.special)}};
  for (const Encoding& window : encoding.windows) windows.push_back(described(tokenizer, window));
  if (!windows.empty()) result.set("windows", std::move(windows));
  return result;
}

// What is typed goes before what the file says.
void set_lengths(const Arguments& arguments, Tokenizer& tokenizer) {
  const auto& strategies = cut_strategies();
  if (!arguments["max_length"].is_null()) {
    if (!tokenizer.truncation) tokenizer.truncation.emplace();
    tokenizer.truncation->length = arguments["max_length"].as_int();
  }
  for (const char* key : {"strategy", "stride", "cut"})
    if (!arguments[key].is_null() && !tokenizer.truncation)
      throw Error(fmt::format("--{}", key), "texts are not cut", "say how long: --max-length N");
  if (!arguments["strategy"].is_null())
    tokenizer.truncation->strategy = strategies.at(arguments["strategy"].as_string());
  if (!arguments["stride"].is_null()) tokenizer.truncation->stride = arguments["stride"].as_int();
  if (!arguments["cut"].is_null())
    tokenizer.truncation->left = arguments["cut"].as_string() == "left";
  const Value& pad = arguments["pad"];
  for (const char* key : {"pad_to", "pad_multiple"})
    if (!arguments[key].is_null() && pad.is_null())
      throw Error(fmt::format("--{}", replace_all(key, "_", "-")), "nothing is filled up",
                  "say on which side: --pad right");
  if (pad.is_null()) return;
  if (pad.as_string() == "none") {
    tokenizer.padding.reset();
    return;
  }
  if (!tokenizer.padding) {
    const std::optional<int32_t> id = tokenizer.padding_id();
    if (!id) throw Error("--pad", "the tokenizer has no token for padding");
    tokenizer.padding = Padding{.id = *id};
  }
  tokenizer.padding->left = pad.as_string() == "left";
  if (!arguments["pad_to"].is_null()) tokenizer.padding->length = arguments["pad_to"].as_int();
  if (!arguments["pad_multiple"].is_null())
    tokenizer.padding->multiple = arguments["pad_multiple"].as_int();
}

int encode(const Arguments& arguments, Tokenizer tokenizer) {
  const bool special = arguments["special"].as_bool();
  set_lengths(arguments, tokenizer);
  std::vector<std::string> texts = texts_of(arguments, "encode");
  std::vector<Encoding> encodings;
  if (arguments["pair"].as_bool()) {
    if (texts.size() % 2 != 0)
      throw Error("--pair", fmt::format("{} texts are no pairs", texts.size()));
    std::vector<std::string> first, second;
    for (size_t i = 0; i < texts.size(); ++i)
      (i % 2 == 0 ? first : second).push_back(std::move(texts[i]));
    encodings = tokenizer.encode_batch(first, second, special);
  } else {
    encodings = tokenizer.encode_batch(texts, special);
  }
  if (arguments["json"].as_bool()) {
    List list;
    for (const Encoding& encoding : encodings) list.push_back(described(tokenizer, encoding));
    std::puts(to_json(list).c_str());
    return 0;
  }
  for (const Encoding& encoding : encodings)
    std::puts(fmt::format("{}", fmt::join(encoding.ids, " ")).c_str());
  return 0;
}

int decode(const Arguments& arguments, const Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> rows;
  const bool file = !arguments["input"].is_null();
  for (const std::string& line : texts_of(arguments, "decode")) {
    if (rows.empty() || file) rows.emplace_back();
    for (const std::string& word : split(replace_all(line, ",", " "), ' ')) {
      if (word.empty()) continue;
      const auto id = parse_integer(word);
      if (!id || *id < 0 || *id >= TokenVocabulary::most_ids)
        throw Error("ch tokenizer decode", fmt::format("'{}' is no token id", printable(word)));
      rows.back().push_back(static_cast<int32_t>(*id));
    }
  }
  List texts;
  for (const std::vector<int32_t>& row : rows)
    texts.push_back(tokenizer.decode(row, !arguments["special"].as_bool()));
  if (arguments["json"].as_bool()) {
    std::puts(to_json(texts).c_str());
    return 0;
  }
  for (const Value& text : texts) std::puts(text.as_string().c_str());
  return 0;
}

std::string text_of(const Value& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.as_string();
  if (!value.is_list()) return to_json(value);
  std::vector<std::string> parts;
  for (const Value& part : value.as_list()) parts.push_back(text_of(part));
  return join(parts, ", ");
}

int inspect(const Arguments& arguments, const Tokenizer& tokenizer) {
  Dict facts{{"tokens", tokenizer.vocabulary().count()},
             {"ids_below", tokenizer.vocabulary().end()}};
  for (const auto& [key, value] : tokenizer.parts().summary.as_dict()) facts.set(key, value);
  for (const auto& [key, value] : tokenizer.parts().model.notes.as_dict()) facts.set(key, value);
  List special;
  for (const AddedToken& token : tokenizer.parts().added)
    special.push_back(
        Dict{{"id", int64_t{token.id}}, {"token", token.content}, {"special", token.special}});
  facts.set("added_tokens", special);
  facts.set("special_tokens_per_sentence", tokenizer.special_tokens(false));
  facts.set("longest", tokenizer.truncation ? Value(tokenizer.truncation->length) : Value());
  if (arguments["json"].as_bool()) {
    std::puts(to_json(facts, 2).c_str());
    return 0;
  }
  Table table({"What", "Value"});
  for (const auto& [key, value] : facts) {
    if (key == "added_tokens") continue;
    table.add({replace_all(key, "_", " "), printable(text_of(value))});
  }
  std::fputs(table.str().c_str(), stdout);
  if (special.empty()) return 0;
  Table tokens({"Id", "Added token", "Special"});
  for (const Value& token : special)
    tokens.add({std::to_string(token["id"].as_int()), printable(token["token"].as_string()),
                token["special"].as_bool() ? "yes" : "no"});
  std::fputs(tokens.str().c_str(), stdout);
  return 0;
}

int train(const Arguments& arguments, const std::string& output) {
  if (arguments["input"].is_null())
    throw Error("ch tokenizer train", "no text is named", "give --input text.txt");
  BpeTraining training{.size = arguments["size"].as_int(),
                       .least_count = arguments["min_count"].as_int(),
                       .special = arguments["special_tokens"].as_string_list("special_tokens")};
  std::error_code none;
  if (std::filesystem::is_directory(output, none) || !ends_with(lower_case(output), ".json"))
    throw Error(output, "is no name of a tokenizer file", "name it as NAME.json");
  const Value file = train_byte_level_bpe(lines_of(arguments["input"].as_string(), true), training);
  make_tokenizer(file, output);  // what we write, we read
  write_file_atomically(output, to_json(file, 2) + "\n");
  const size_t tokens = file["model"]["vocab"].as_dict().size();
  if (arguments["json"].as_bool())
    std::puts(to_json(Dict{{"file", output},
                           {"tokens", tokens},
                           {"merges", file["model"]["merges"].as_list().size()}})
                  .c_str());
  else
    std::puts(fmt::format("{} tokens, {} of them joined from pairs, in {}", tokens,
                          file["model"]["merges"].as_list().size(), output)
                  .c_str());
  return 0;
}

int run(const Arguments& arguments) {
  const std::string& action = arguments["action"].as_string();
  std::set<std::string> useful = {"tokenizer", "json"};
  if (action == "encode")
    useful.insert({"words", "input", "special", "pair", "max_length", "strategy", "stride", "cut",
                   "pad", "pad_to", "pad_multiple"});
  else if (action == "decode")
    useful.insert({"words", "input", "special"});
  else if (action == "train")
    useful.insert({"input", "size", "min_count", "special_tokens"});
  else if (action != "inspect")
    throw Error("ch tokenizer", fmt::format("unknown action '{}'", printable(action)),
                suggestion(action, {"encode", "decode", "inspect", "train"}));
  check_typed(arguments, "tokenizer", action, useful);
  const std::string& path = arguments["tokenizer"].as_string();
  if (action == "train") return train(arguments, path);
  Tokenizer tokenizer = Tokenizer::load(path);
  if (action == "encode") return encode(arguments, std::move(tokenizer));
  return action == "decode" ? decode(arguments, tokenizer) : inspect(arguments, tokenizer);
}

const Register<CommandRecord> registered{
    {.name = "tokenizer",
     .group = CommandGroup::data,
     .summary = "Texts to token ids and back; learn a tokenizer",
     .help =
         "A tokenizer is a tokenizer.json, BERT's vocab.txt, GPT-2's vocab.json beside "
         "merges.txt, or a folder that has one of them. encode prints the ids of each text, with "
         "--json also tokens, offsets in characters and masks; decode prints texts; inspect says "
         "what it is made of; train learns a byte-level BPE tokenizer from the lines of a text "
         "and writes it.",
     .positionals = {{"action", "encode, decode, inspect or train"},
                     {"tokenizer", "a tokenizer's file or folder; with train: the file to write"},
                     {"words", "texts to encode, or ids to decode", false, true}},
     .options = {{{.name = "input",
                   .type = FieldType::text,
                   .help = "a file with a text, or ids, on each line"},
                  {.name = "special",
                   .type = FieldType::boolean,
                   .default_value = true,
                   .help = "encode: put special tokens around texts; decode: keep them"},
                  {.name = "pair",
                   .type = FieldType::boolean,
                   .default_value = false,
                   .help = "texts are pairs: the first with the second, ..."},
                  {.name = "max_length",
                   .type = FieldType::integer,
                   .help = "cut texts to so many tokens, special ones among them",
                   .minimum = 1},
                  {.name = "strategy",
                   .type = FieldType::text,
                   .help = "which text of a pair is cut",
                   .choices = {"longest_first", "only_first", "only_second"}},
                  {.name = "stride",
                   .type = FieldType::integer,
                   .help = "tokens that a window shares with the one before; --json shows all "
                           "windows",
                   .minimum = 0},
                  {.name = "cut",
                   .type = FieldType::text,
                   .help = "the side on which texts are cut",
                   .choices = {"left", "right"}},
                  {.name = "pad",
                   .type = FieldType::text,
                   .help = "fill texts up to the longest, on this side (default: as the file says)",
                   .choices = {"left", "right", "none"}},
                  {.name = "pad_to",
                   .type = FieldType::integer,
                   .help = "fill texts up to so many tokens instead",
                   .minimum = 1,
                   .maximum = double(1 << 20)},
                  {.name = "pad_multiple",
                   .type = FieldType::integer,
                   .help = "fill texts up to a multiple of so many tokens",
                   .minimum = 1,
                   .maximum = double(1 << 20)},
                  {.name = "size",
                   .type = FieldType::integer,
                   .default_value = 30000,
                   .help = "train: how many tokens, the special ones and the 256 bytes among them",
                   .minimum = 257},
                  {.name = "min_count",
                   .type = FieldType::integer,
                   .default_value = 2,
                   .help = "train: pairs seen less often are not joined",
                   .minimum = 1},
                  {.name = "special_tokens",
                   .type = FieldType::list,
                   .default_value = List{"<|endoftext|>"},
                   .help = "train: special tokens, which get the first ids"},
                  {.name = "json",
                   .type = FieldType::boolean,
                   .default_value = false,
                   .help = "print JSON"}}},
     .examples = {"ch tokenizer encode tokenizer.json 'To be, or not to be'",
                  "ch tokenizer encode vocab.txt --input lines.txt --json",
                  "ch tokenizer encode FOLDER --pair 'a question' 'a text' --max-length 8 --stride "
                  "2 --json",
                  "ch tokenizer encode FOLDER --input lines.txt --max-length 64 --pad right",
                  "ch tokenizer decode tokenizer.json 384 314 12", "ch tokenizer inspect FOLDER",
                  "ch tokenizer train tokenizer.json --input text.txt --size 2000"},
     .run = run}};

}  // namespace
}  // namespace mase::tokenizer_command
