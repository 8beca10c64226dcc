// SPDX-License-Identifier: Apache-2.0
// Tokenizers from files: tokenizer.json as Hugging Face's library writes it; BERT's vocab.txt and
// GPT-2's vocab.json with merges.txt become the same value and are read by the same code.
#include <algorithm>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/text/tokenizer.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

constexpr int64_t longest_tokens = int64_t{1} << 20;

std::optional<Truncation> read_truncation(const Value& table) {
  if (table.is_null()) return {};
  static const Schema schema{{{.name = "direction",
                               .type = FieldType::text,
                               .default_value = "Right",
                               .choices = {"Left", "Right"}},
                              {.name = "max_length",
                               .type = FieldType::integer,
                               .required = true,
                               .minimum = 0,
                               .maximum = double(longest_tokens)},
                              {.name = "strategy",
                               .type = FieldType::text,
                               .default_value = "LongestFirst",
                               .choices = {"LongestFirst", "OnlyFirst", "OnlySecond"}},
                              {.name = "stride",
                               .type = FieldType::integer,
                               .default_value = 0,
                               .minimum = 0,
                               .maximum = double(longest_tokens)}}};
  const Value keys = validate(table, schema, "truncation");
  const std::string& strategy = keys["strategy"].as_string();
  return Truncation{.length = keys["max_length"].as_int(),
                    .strategy = strategy == "OnlyFirst"    ? CutStrategy::only_first
                                : strategy == "OnlySecond" ? CutStrategy::only_second
                                                           : CutStrategy::longest_first,
                    .stride = keys["stride"].as_int(),
                    .left = keys["direction"].as_string() == "Left"};
}

std::optional<Padding> read_padding(const Value& table, const TokenVocabulary& vocabulary) {
  if (table.is_null()) return {};
  static const Schema schema{
      {{.name = "strategy", .type = FieldType::any, .default_value = "BatchLongest"},
       {.name = "direction",
        .type = FieldType::text,
        .default_value = "Right",
        .choices = {"Left", "Right"}},
       {.name = "pad_to_multiple_of",
        .type = FieldType::integer,
        .minimum = 0,
        .maximum = double(longest_tokens)},
       {.name = "pad_id", .type = FieldType::integer, .default_value = 0, .minimum = 0},
       {.name = "pad_type_id",
        .type = FieldType::integer,
        .default_value = 0,
        .minimum = 0,
        .maximum = 1000},
       {.name = "pad_token", .type = FieldType::any, .default_value = "[PAD]"}}};
  const Value keys = validate(table, schema, "padding");
  Padding padding;
  const Value& strategy = keys["strategy"];
  if (strategy.is_dict() && strategy["Fixed"].is_int() && strategy.as_dict().size() == 1)
    padding.length = strategy["Fixed"].as_int();
  else if (!strategy.is_string() || strategy.as_string() != "BatchLongest")
    throw Error(table.position(), "padding.strategy", "is neither BatchLongest nor Fixed");
  if (padding.length < 0 || padding.length > longest_tokens)
    throw Error(table.position(), "padding.strategy", "a length of that many tokens");
  padding.multiple = keys["pad_to_multiple_of"].is_int() ? keys["pad_to_multiple_of"].as_int() : 0;
  padding.left = keys["direction"].as_string() == "Left";
  const int64_t id = keys["pad_id"].as_int();
  const auto token = vocabulary.token(id);
  const std::string name = part_text(keys["pad_token"], "pad_token");
  if (!token || *token != name)
    throw Error(table.position(), "padding",
                fmt::format("'{}' has not the id {}", printable(name.substr(0, 80)), id));
  padding.id = static_cast<int32_t>(id);
  padding.type = static_cast<int32_t>(keys["pad_type_id"].as_int());
  return padding;
}

// The names of the parts, in order, for people.
Value part_names(const Value& part, const char* list) {
  if (part.is_null()) return Value();
  if (!part["type"].is_string()) return Value();
  if (part["type"].as_string() != "Sequence" || !part[list].is_list())
    return part["type"].as_string();
  List names;
  for (const Value& inner : part[list].as_list()) names.push_back(part_names(inner, list));
  return names;
}

std::vector<std::string> lines_of_file(const std::string& path) {
  std::string text = read_text_file(path);
  if (const size_t bad = first_invalid_utf8(text); bad < text.size())
    throw Error(
        fmt::format(
            "{}:{}", path,
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1),
        "is not UTF-8");
  if (starts_with(text, "\xEF\xBB\xBF")) text.erase(0, 3);
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::string& line : lines)
    if (!line.empty() && line.back() == '\r') line.pop_back();
  return lines;
}

Value special_token(const std::string& content, int64_t id, bool left_strip = false) {
  return Dict{
      {"id", id},        {"content", content},  {"single_word", false}, {"lstrip", left_strip},
      {"rstrip", false}, {"normalized", false}, {"special", true}};
}

Value template_of(const std::string& first, int64_t first_id, const std::string& last,
                  int64_t last_id) {
  return Dict{
      {"type", "BertProcessing"}, {"sep", List{last, last_id}}, {"cls", List{first, first_id}}};
}

// What tokenizer_config.json beside it says, or null.
Value beside(const std::string& path, const char* key) {
  const fs::path config = fs::path(path).parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  if (!fs::exists(config, ignored)) return Value();
  const Value file = read_json(config.string());
  return file.is_dict() ? file[key] : Value();
}

// BERT's vocabulary: a token on each line, its id the line's number from 0 on.
Value bert_tokenizer(const std::string& path) {
  Dict vocabulary;
  List added;
  std::optional<int64_t> cls, sep;
  StringIndex seen;
  int64_t id = 0;
  for (const std::string& token : lines_of_file(path)) {
    const std::string place = fmt::format("{}:{}", path, id + 1);
    if (seen.find(token) != StringIndex::none)
      throw Error(place,
                  fmt::format("the token '{}' stands there twice", printable(token.substr(0, 80))));
    seen.add(token);
    for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      if (token == name) added.push_back(special_token(token, id));
    if (token == "[CLS]") cls = id;
    if (token == "[SEP]") sep = id;
    vocabulary.add(token, id++);
  }
  if (seen.find("[UNK]") == StringIndex::none)
    throw Error(path, "has no token [UNK]", "a vocabulary of BERT has one");
  const Value lower = beside(path, "do_lower_case"), accents = beside(path, "strip_accents");
  const bool lowers = lower.is_bool() ? lower.as_bool() : true;
  Dict file{{"version", "1.0"},
            {"added_tokens", std::move(added)},
            {"normalizer", Dict{{"type", "BertNormalizer"},
                                {"lowercase", lowers},
                                {"strip_accents", accents.is_bool() ? accents : Value()}}},
            {"pre_tokenizer", Dict{{"type", "BertPreTokenizer"}}},
            {"decoder", Dict{{"type", "WordPiece"}}},
            {"model", Dict{{"type", "WordPiece"}, {"vocab", std::move(vocabulary)}}}};
  if (cls && sep) file.set("post_processor", template_of("[CLS]", *cls, "[SEP]", *sep));
  return file;
}

// GPT-2's and RoBERTa's: {"token": id} and pairs, one on each line.
Value byte_level_tokenizer(const std::string& path) {
  const std::string merges_path = (fs::path(path).parent_path() / "merges.txt").string();
  Value vocabulary = read_json(path);
  if (!vocabulary.is_dict()) throw Error(path, "is no table of tokens and ids");
  List merges, added;
  for (const std::string& line : lines_of_file(merges_path)) {
    if (line.empty() || starts_with(line, "#version")) continue;
    merges.push_back(Value(line).set_position({std::make_shared<const std::string>(merges_path),
                                               static_cast<int>(merges.size()) + 1, 0}));
  }
  std::optional<int64_t> first, last;
  for (const auto& [token, id] : vocabulary.as_dict()) {
    if (!id.is_int()) continue;
    if (token == "<s>") first = id.as_int();
    if (token == "</s>") last = id.as_int();
    for (const char* name : {"<s>", "</s>", "<pad>", "<unk>", "<mask>", "<|endoftext|>"})
      if (token == name) added.push_back(special_token(token, id.as_int(), token == "<mask>"));
  }
  const Value space = beside(path, "add_prefix_space");
  const bool prefix = space.is_bool() && space.as_bool();
  Dict file{
      {"version", "1.0"},
      {"added_tokens", std::move(added)},
      {"pre_tokenizer", Dict{{"type", "ByteLevel"}, {"add_prefix_space", prefix}}},
      {"post_processor", Dict{{"type", "ByteLevel"}, {"trim_offsets", false}}},
      {"decoder", Dict{{"type", "ByteLevel"}}},
      {"model",
       Dict{{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", std::move(merges)}}}};
  if (first && last)
    file.set("post_processor", Dict{{"type", "RobertaProcessing"},
                                    {"sep", List{"</s>", *last}},
                                    {"cls", List{"<s>", *first}},
                                    {"trim_offsets", true},
                                    {"add_prefix_space", prefix}});
  return file;
}

const char* const known_files[] = {"tokenizer.json", "vocab.txt", "vocab.json"};

const TokenizerFileRecord* record_of(const std::string& path) {
  const std::string suffix = lower_case(fs::path(path).extension().string());
  for (const TokenizerFileRecord* record : Registry<TokenizerFileRecord>::instance().all())
    if (record->suffix == suffix) return record;
  return nullptr;
}

}  // namespace

Tokenizer make_tokenizer(const Value& file, const std::string& place) {
  if (!file.is_dict() || !file["model"].is_dict())
    throw Error(place, "is no tokenizer: it has no 'model'");
  static const std::vector<std::string> known{"version",        "truncation", "padding",
                                              "added_tokens",   "normalizer", "pre_tokenizer",
                                              "post_processor", "decoder",    "model"};
  for (const auto& [key, value] : file.as_dict())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw Error(value.position(), "",
                  fmt::format("unknown key '{}'", printable(key.substr(0, 80))),
                  suggestion(key, known));
  auto parts = std::make_shared<TokenizerParts>();
  parts->model = make_token_model(file["model"], "model");
  auto vocabulary = std::make_shared<TokenVocabulary>(*parts->model.vocabulary);
  parts->added = read_added_tokens(file["added_tokens"], *vocabulary);
  parts->vocabulary = vocabulary;
  parts->normalize = make_normalizer(file["normalizer"], "normalizer");
  parts->split = make_splitter(file["pre_tokenizer"], "pre_tokenizer");
  parts->decode = make_decoder(file["decoder"], "decoder");
  parts->processor = make_processor(file["post_processor"], "post_processor", *vocabulary);
  for (const AddedToken& token : parts->added) {
    if (!token.normalized) {
      parts->plain.add(token, token.content);
      continue;
    }
    AlignedText searched(token.content, 0);
    parts->normalize(searched);
    parts->normalized.add(token, searched.text());
  }
  parts->summary = Dict{{"model", file["model"]["type"]},
                        {"normalizer", part_names(file["normalizer"], "normalizers")},
                        {"pre_tokenizer", part_names(file["pre_tokenizer"], "pretokenizers")},
                        {"post_processor", part_names(file["post_processor"], "processors")},
                        {"decoder", part_names(file["decoder"], "decoders")}};
  return Tokenizer(parts, read_truncation(file["truncation"]),
                   read_padding(file["padding"], *vocabulary));
}

Value tokenizer_file(const std::string& path) {
  const TokenizerFileRecord* record = record_of(path);
  if (!record) throw Error(path, "has no tokenizer inside");
  return record->read(path);
}

bool Tokenizer::is_in(const std::string& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return record_of(path) != nullptr;
  return std::any_of(std::begin(known_files), std::end(known_files), [&](const char* name) {
    return fs::is_regular_file(fs::path(path) / name, ignored);
  });
}

Tokenizer Tokenizer::load(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    for (const char* name : known_files) {
      const fs::path file = fs::path(path) / name;
      if (fs::is_regular_file(file, ignored)) return load(file.string());
    }
    throw Error(path, "has no tokenizer", "it would be tokenizer.json, vocab.txt or vocab.json");
  }
  const fs::path file(path);
  if (lower_case(file.extension().string()) == ".txt")
    return make_tokenizer(bert_tokenizer(path), path);
  if (const TokenizerFileRecord* record = record_of(path))
    return make_tokenizer(record->read(path), path);
  if (file.filename() == "vocab.json") return make_tokenizer(byte_level_tokenizer(path), path);
  return make_tokenizer(read_json(path), path);
}

}  // namespace mase
