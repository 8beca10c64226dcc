// SPDX-License-Identifier: Apache-2.0
// Sentences as token ids: an array of ids, or a text with a sample on each line and a vocabulary
// with a token on each line, whose id is the line's number from 0 on.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_map>

#include "mase/base/fields.h"
#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/data/arrays.h"
#include "mase/data/tokens.h"
#include "mase/io/numpy/numpy_tensors.h"
#include "mase/text/tokenizer.h"

namespace mase::tokens_dataset {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (starts_with(text, "\xEF\xBB\xBF")) text.remove_prefix(3);  // some editors mark UTF-8 so
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  if (lines.empty()) throw Error(path, "is empty");
  return lines;
}

class Vocabulary {
 public:
  explicit Vocabulary(const std::string& path) : path_(path) {
    const std::vector<std::string> lines = lines_of(path);
    for (size_t i = 0; i < lines.size(); ++i)
      if (!ids_.emplace(lines[i], static_cast<int32_t>(i)).second)
        throw Error(fmt::format("{}:{}", path, i + 1),
                    fmt::format("the token '{}' stands there twice", printable(lines[i])));
  }

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  std::optional<int32_t> padding() const { return first_of({"[PAD]", "<pad>"}); }

  // A word, or the pieces of it: the longest that fit, those behind the first marked with ##.
  void append(const std::string& word, const std::string& place, std::vector<int32_t>& ids) const {
    std::vector<int32_t> pieces;
    for (size_t at = 0; at < word.size();) {
      size_t length = word.size() - at;
      auto found = ids_.end();
      for (; length > 0 && found == ids_.end(); --length)
        found = ids_.find((at > 0 ? "##" : "") + word.substr(at, length));
      if (found == ids_.end()) {
        const std::optional<int32_t> unknown = first_of({"[UNK]", "<unk>"});
        if (!unknown)
          throw Error(place, fmt::format("the word '{}' is not in {}", printable(word), path_),
                      "a vocabulary with [UNK] or <unk> takes any word");
        ids.push_back(*unknown);
        return;
      }
      pieces.push_back(found->second);
      at += length + 1;
    }
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }

 private:
  std::optional<int32_t> first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    return {};
  }

  std::string path_;
  std::unordered_map<std::string, int32_t> ids_;
};

constexpr int64_t most_ids = int64_t{1} << 24;

int32_t id_of(const std::string& word, const std::string& place) {
  const std::optional<int64_t> id = parse_integer(word);
  if (!id)
    throw Error(place,
                fmt::format("'{}' is no token id, and words need a vocabulary", printable(word)),
                "name a text with a token on each line: --vocabulary tokens.txt");
  if (*id < 0 || *id >= most_ids)
    throw Error(place, fmt::format("{} is no token id", *id), "ids are 0 to 16777215");
  return static_cast<int32_t>(*id);
}

constexpr size_t longest_line = 1 << 16;  // tokens

// By words: those of the vocabulary, or, where that is null, ids.
SentenceRows rows_by_words(const std::string& path, const Vocabulary* vocabulary) {
  constexpr size_t longest_word = 200;
  SentenceRows result;
  for (const std::string& line : lines_of(path)) {
    const std::string place = fmt::format("{}:{}", path, result.rows.size() + 1);
    std::vector<int32_t>& row = result.rows.emplace_back();
    for (const std::string& word : split(replace_all(line, "\t", " "), ' ')) {
      if (word.empty()) continue;
      if (word.size() > longest_word) throw Error(place, "has a word of more than 200 bytes");
      if (vocabulary)
        vocabulary->append(word, place, row);
      else
        row.push_back(id_of(word, place));
      if (row.size() > longest_line) throw Error(place, "has more than 65536 tokens");
    }
  }
  if (vocabulary) result.padding = vocabulary->padding();
  return result;
}

SentenceRows rows_by_tokenizer(const std::string& path, Tokenizer tokenizer, int64_t longest) {
  SentenceRows result;
  const std::vector<std::string> lines = lines_of(path);
  for (size_t i = 0; i < lines.size(); ++i)
    if (first_invalid_utf8(lines[i]) < lines[i].size())
      throw Error(fmt::format("{}:{}", path, i + 1), "is not UTF-8",
                  "convert the file, for instance with iconv");
  result.padding = tokenizer.padding_id();
  tokenizer.padding.reset();
  if (!tokenizer.truncation) tokenizer.truncation.emplace();
  Truncation& cut = *tokenizer.truncation;
  const auto most = longest > 0 ? longest : static_cast<int64_t>(longest_line);
  cut.length = cut.length > 0 ? std::min(cut.length, most) : most;
  cut.stride = 0;
  for (Encoding& encoding : tokenizer.encode_batch(lines)) {
    if (!encoding.windows.empty()) ++result.cut;
    result.rows.push_back(std::move(encoding.ids));
  }
  return result;
}

// Whether a text of tokens is one of BERT's vocabularies.
bool is_of_bert(const std::string& path) {
  const std::vector<std::string> lines = lines_of(path);
  return std::find(lines.begin(), lines.end(), "[CLS]") != lines.end() &&
         std::find(lines.begin(), lines.end(), "[SEP]") != lines.end();
}

// Of one length: `length`, or that of the longest.
Tensor filled_up(const std::string& path, const SentenceRows& sentences, bool known, int64_t length,
                 std::string& notice) {
  size_t longest = 1;
  for (const auto& row : sentences.rows) longest = std::max(longest, row.size());
  const auto width = length > 0 ? static_cast<size_t>(length) : longest;
  const auto count = [&](const auto& rule) {
    return std::count_if(sentences.rows.begin(), sentences.rows.end(), rule);
  };
  const auto shorter = count([&](const auto& row) { return row.size() < width; });
  const auto cut = sentences.cut + count([&](const auto& row) { return row.size() > width; });
  const std::optional<int32_t>& padding = sentences.padding;
  if (!padding && shorter > 0)
    throw Error(
        path,
        fmt::format("has samples of fewer than {} tokens, and {}", width,
                    known ? "the vocabulary no [PAD] or <pad>"
                          : "without a vocabulary nobody knows the padding"),
        known ? "add one, or make the samples equally long" : "make the samples equally long");
  std::vector<std::string> notices;
  const size_t all = sentences.rows.size();
  if (cut > 0) notices.push_back(fmt::format("{} of {} samples cut to {} tokens", cut, all, width));
  if (shorter > 0)
    notices.push_back(
        fmt::format("{} of {} samples filled up to {} tokens, and the network takes "
                    "what they are filled up with for tokens",
                    shorter, all, width));
  notice = join(notices, "; ");
  Tensor ids({static_cast<int64_t>(all), static_cast<int64_t>(width)}, DType::i32);
  auto* out = ids.mutable_data<int32_t>();
  for (const std::vector<int32_t>& row : sentences.rows)
    for (size_t i = 0; i < width; ++i) *out++ = i < row.size() ? row[i] : *padding;
  return ids;
}

Tensor array_of(const std::string& path) {
  const TensorTable tensors = read_numpy_tensors(path);
  if (tensors.empty()) throw Error(path, "holds no numbers");
  return tensors[0].second;
}

Dataset load(const DatasetOptions& options) {
  const auto text = [&](const char* key) {
    return options.arguments[key].is_string() ? options.arguments[key].as_string() : std::string();
  };
  const std::string file = text("file"), labels = text("labels"), words = text("vocabulary");
  if (file.empty()) throw Error("tokens", "no file is named", "give --dataset-file");
  if (labels.empty()) throw Error("tokens", "no labels are named", "give --dataset-labels");
  const int64_t length =
      options.arguments["length"].is_int() ? options.arguments["length"].as_int() : 0;
  ArrayData data;
  data.name = std::filesystem::path(file).stem().string();
  data.place = file;
  if (is_sentence_file(file)) {
    if (words.empty()) throw Error(file, "words need a vocabulary", "give --dataset-vocabulary");
    data.train.inputs = read_sentences(file, words, length, data.notice);
  } else {
    data.train.inputs = array_of(file);
    if (length > 0 && (data.train.inputs.shape().size() != 2 || data.train.inputs.dim(1) != length))
      throw Error(
          "--dataset-length",
          fmt::format("{} has ids of shape {}", file, shape_text(data.train.inputs.shape())),
          "only texts are cut and filled up");
    const int64_t known = words.empty()             ? most_ids
                          : is_sentence_file(words) ? Vocabulary(words).size()
                                                    : Tokenizer::load(words).vocabulary().end();
    for (int64_t i = 0; i < data.train.inputs.numel(); ++i) {
      const double id = data.train.inputs.item(i);
      if (!(id >= 0 && id < static_cast<double>(known)) || id != static_cast<double>(int64_t(id)))
        throw Error(file, fmt::format("{} is no token of a vocabulary of {}", id, known));
    }
    data.train.inputs = data.train.inputs.to(DType::i32);
  }
  if (is_sentence_file(labels)) {
    const std::vector<std::string> names = lines_of(labels);
    if (const auto blank = std::find(names.begin(), names.end(), ""); blank != names.end())
      throw Error(fmt::format("{}:{}", labels, blank - names.begin() + 1),
                  "an empty line is no class",
                  "there is a class on each line, one for each sample");
    const std::set<std::string> different(names.begin(), names.end());
    data.classes.assign(different.begin(), different.end());
    data.train.targets = Tensor({static_cast<int64_t>(names.size())}, DType::i32);
    auto* out = data.train.targets.mutable_data<int32_t>();
    for (const std::string& name : names)
      *out++ = static_cast<int32_t>(
          std::lower_bound(data.classes.begin(), data.classes.end(), name) - data.classes.begin());
  } else {
    data.train.targets = array_of(labels);
  }
  return array_dataset(std::move(data), options);
}

const Register<DatasetRecord> registered{
    {.name = "tokens",
     .summary = "Sentences as token ids: an array of ids, or a text and a vocabulary",
     .help =
         "--dataset-file is a .npy of ids [samples, tokens] or a .txt with a sample on each "
         "line, whose words (or pieces of them, marked with ##) --dataset-vocabulary lists, one "
         "on each line, or a tokenizer (tokenizer.json, or a vocab.txt with [CLS] and [SEP]), "
         "which "
         "puts its special tokens around each. --dataset-labels is a .npy or a .txt with a class "
         "on "
         "each line. "
         "Samples shorter than the longest (or --dataset-length) are filled up with [PAD] or "
         "<pad>, unknown words are [UNK] or <unk>.",
     .options =
         {{text_field("file", "ids (.npy) or sentences (.txt)"),
           text_field("labels", "the class of each sample, .npy or .txt"),
           text_field("vocabulary", "a text with a token on each line, or a tokenizer"),
           integer_field("length", "tokens of a sample; 0: of the longest", 0).between(0, 65536)}},
     .where = [](const DatasetOptions&) { return "--dataset-file"; },
     .load = load}};

}  // namespace
}  // namespace mase::tokens_dataset

namespace mase {

bool is_sentence_file(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string()) == ".txt";
}

Tensor read_sentences(const std::string& path, const std::string& vocabulary, int64_t length,
                      std::string& notice) {
  return tokens_dataset::filled_up(path, read_sentence_rows(path, vocabulary, length),
                                   !vocabulary.empty(), length, notice);
}

SentenceRows read_sentence_rows(const std::string& path, const std::string& vocabulary,
                                int64_t longest) {
  if (vocabulary.empty()) return tokens_dataset::rows_by_words(path, nullptr);
  if (!is_sentence_file(vocabulary) || tokens_dataset::is_of_bert(vocabulary))
    return tokens_dataset::rows_by_tokenizer(path, Tokenizer::load(vocabulary), longest);
  const tokens_dataset::Vocabulary words(vocabulary);
  return tokens_dataset::rows_by_words(path, &words);
}

std::string vocabulary_in(const std::string& folder) {
  return Tokenizer::is_in(folder) ? folder : "";
}

}  // namespace mase
