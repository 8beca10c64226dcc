// SPDX-License-Identifier: Apache-2.0
// Sentences with labels as rows of token numbers: any file of them, and GLUE's folders by name
// (Wang et al., 2018).
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/data/arrays.h"
#include "mase/data/text_rows.h"
#include "mase/text/tokenizer.h"

namespace mase::sentences_dataset {
namespace {

namespace fs = std::filesystem;
constexpr int64_t usual_longest = 512;

// Token numbers, with those of a second sentence moved up.
struct Rows {
  std::vector<std::vector<int32_t>> rows;
  int64_t cut = 0;
};

Rows encoded(const Tokenizer& tokenizer, const TextRows& texts) {
  Rows result;
  std::vector<Encoding> encodings;
  const auto room = static_cast<size_t>(tokenizer.truncation->length);
  if (texts.second.empty()) {
    encodings = tokenizer.encode_batch(texts.first);
    for (const Encoding& encoding : encodings) result.cut += !encoding.windows.empty();
  } else {
    for (size_t i = 0; i < texts.size(); ++i) {
      encodings.push_back(tokenizer.encode(texts.first[i], texts.second[i]));
      result.cut += encodings.back().size() == room;  // or just as long
    }
  }
  for (size_t i = 0; i < encodings.size(); ++i) {
    const Encoding& encoding = encodings[i];
    std::vector<int32_t>& row = result.rows.emplace_back(encoding.ids);
    if (row.empty()) throw Error("sentences", fmt::format("row {} has no tokens", i + 1));
    for (size_t k = 0; k < row.size(); ++k) {
      if (row[k] >= second_sentence)
        throw Error("tokenizer", fmt::format("token number {}", row[k]), "4194303 is the largest");
      if (encoding.types[k] > 0) row[k] += static_cast<int32_t>(second_sentence);
    }
  }
  return result;
}

Tokenizer tokenizer_for(const SentenceSpec& spec, const std::string& place) {
  if (spec.tokenizer.empty())
    throw Error(place, "no tokenizer is named",
                "give --dataset-tokenizer, or a network's folder that has one");
  Tokenizer tokenizer = Tokenizer::load(spec.tokenizer);
  tokenizer.padding.reset();
  if (!tokenizer.truncation) tokenizer.truncation.emplace();
  Truncation& cut = *tokenizer.truncation;
  const int64_t most = spec.length > 0 ? spec.length : usual_longest;
  cut.length = cut.length > 0 && spec.length == 0 ? std::min(cut.length, most) : most;
  cut.stride = 0;
  return tokenizer;
}

Tensor filled(const Rows& rows, int64_t length) {
  Tensor ids({static_cast<int64_t>(rows.rows.size()), length}, DType::i32);
  auto* out = ids.mutable_data<int32_t>();
  std::fill_n(out, ids.numel(), static_cast<int32_t>(token_padding));
  for (const std::vector<int32_t>& row : rows.rows) {
    std::copy(row.begin(), row.end(), out);
    out += length;
  }
  return ids;
}

// Numbers in their order, words as words.
std::vector<std::string> classes_of(const TextRows& train, const TextRows& test) {
  std::set<std::string> names(train.labels.begin(), train.labels.end());
  names.insert(test.labels.begin(), test.labels.end());
  std::vector<std::string> sorted(names.begin(), names.end());
  if (std::all_of(sorted.begin(), sorted.end(),
                  [](const std::string& name) { return parse_integer(name).has_value(); }))
    std::sort(sorted.begin(), sorted.end(), [](const std::string& a, const std::string& b) {
      return *parse_integer(a) < *parse_integer(b);
    });
  return sorted;
}

bool are_numbers(const TextRows& rows) {
  return std::all_of(rows.labels.begin(), rows.labels.end(),
                     [](const std::string& label) { return parse_number(label).has_value(); });
}

// Fractions are nobody's names of classes.
bool are_targets(const TextRows& rows, const std::string& task, const std::string& place) {
  if (task == "classification" || !are_numbers(rows)) {
    if (task == "regression") throw Error(place, "labels are no numbers", "leave --task away");
    return false;
  }
  if (task == "regression") return true;
  return std::any_of(rows.labels.begin(), rows.labels.end(),
                     [](const std::string& label) { return !parse_integer(label).has_value(); });
}

Tensor class_numbers(const TextRows& rows, const std::vector<std::string>& classes) {
  std::map<std::string, int64_t> numbers;
  for (const std::string& name : classes) numbers.emplace(name, std::ssize(numbers));
  Tensor labels({static_cast<int64_t>(rows.size())}, DType::i64);
  for (size_t i = 0; i < rows.size(); ++i)
    labels.mutable_data<int64_t>()[i] = numbers.at(rows.labels[i]);
  return labels;
}

Tensor numbers(const TextRows& rows) {
  Tensor targets({static_cast<int64_t>(rows.size()), 1});
  for (size_t i = 0; i < rows.size(); ++i)
    targets.mutable_data<float>()[i] = static_cast<float>(*parse_number(rows.labels[i]));
  return targets;
}

std::string text_option(const DatasetOptions& options, const char* key) {
  const Value& value = options.arguments[key];
  return value.is_string() ? value.as_string() : "";
}

Dataset load(const DatasetOptions& options) {
  const std::string file = text_option(options, "file"), test = text_option(options, "test_file");
  if (file.empty())
    throw Error("sentences", "no file is named",
                "give --dataset-file: .csv, .tsv, .jsonl, a folder");
  TextColumns columns;
  for (const std::string& name : split(text_option(options, "text"), ','))
    if (!name.empty()) columns.texts.push_back(name);
  columns.label = text_option(options, "label");
  std::error_code none;
  // train/ and test/ in a folder are its splits.
  const auto within = [&](const char* split) {
    const fs::path inner = fs::path(file) / split;
    return fs::is_directory(inner, none) ? inner.string() : std::string();
  };
  const std::string inner = within("train");
  const TextRows train = read_text_rows(inner.empty() ? file : inner, columns);
  TextRows held;
  if (!test.empty())
    held = read_text_rows(test, columns);
  else if (!inner.empty() && !within("test").empty())
    held = read_text_rows(within("test"), columns);
  return sentence_dataset(fs::path(file).stem().string(), file, train, held, sentence_spec(options),
                          options);
}

const Register<DatasetRecord> registered{
    {.name = "sentences",
     .summary = "Sentences, or pairs of them, with classes or numbers, from files of any kind",
     .help =
         "--dataset-file is a .csv, .tsv or .jsonl, or a folder with a folder of .txt files for "
         "each class (train/ and test/ in it, if they are there). Columns are named, or "
         "numbered from 1 in a file without a header. Each row is encoded by the tokenizer, "
         "by default the network's own, with its special tokens; what is filled up is never "
         "attended to. Two text columns are pairs.",
     .options = {[] {
       std::vector<Field> fields = {
           {.name = "file", .type = FieldType::text, .help = "the rows"},
           {.name = "test_file",
            .type = FieldType::text,
            .help = "the test rows (default: a fifth of the others)"},
           {.name = "text",
            .type = FieldType::text,
            .help = "the column of the text, or two: a,b (default: text, sentence, ...)"},
           {.name = "label",
            .type = FieldType::text,
            .help = "the column of the label (default: label, ...)"}};
       for (Field& field : sentence_fields()) fields.push_back(std::move(field));
       return fields;
     }()},
     .where = [](const DatasetOptions&) { return "--dataset-file"; },
     .load = load}};

// GLUE's folders as they are published.
struct GlueTask {
  const char *name, *folder, *summary;
  std::vector<std::string> texts;
  const char *label, *dev;
};

Dataset load_glue(const GlueTask& task, const DatasetOptions& options) {
  const fs::path base = options.data_dir.empty() ? fs::path(".") : fs::path(options.data_dir);
  std::string folder = text_option(options, "folder");
  std::error_code none;
  if (folder.empty()) {
    for (const char* name : {task.folder, task.name})
      for (const fs::path& above : {base, base / "glue", base / "GLUE"})
        if (folder.empty() && fs::is_directory(above / name, none))
          folder = (above / name).string();
    if (folder.empty())
      throw Error(task.name, fmt::format("no folder {} in {}", task.folder, base.string()),
                  "name it: --dataset-folder, or the folder above it: --data-dir");
  }
  const auto file = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (fs::is_regular_file(fs::path(folder) / name, none))
        return (fs::path(folder) / name).string();
    throw Error(folder, fmt::format("has no file {}", names[0]));
  };
  const TextColumns columns{task.texts, task.label};
  const std::string train = file({"train.tsv", "msr_paraphrase_train.txt"}),
                    dev = file({task.dev, "dev.tsv", "msr_paraphrase_test.txt"});
  DatasetOptions own = options;
  if (own.task == "auto")
    own.task = std::string(task.name) == "stsb" ? "regression" : "classification";
  return sentence_dataset(task.name, folder, read_text_rows(train, columns),
                          read_text_rows(dev, columns), sentence_spec(options), own);
}

Register<DatasetRecord> glue(GlueTask task) {
  DatasetRecord record;
  record.name = task.name;
  record.summary = task.summary;
  record.help = fmt::format(
      "GLUE's {}, from the folder {} as it is published; its development rows, whose labels are "
      "known, are the test rows.",
      task.folder, task.folder);
  std::vector<Field> fields = {{.name = "folder",
                                .type = FieldType::text,
                                .help = fmt::format("the folder of the files (default: {} in "
                                                    "--data-dir)",
                                                    task.folder)}};
  for (Field& field : sentence_fields()) fields.push_back(std::move(field));
  record.options = {std::move(fields)};
  record.where = [task](const DatasetOptions& options) {
    return (fs::path(options.data_dir) / task.folder).string();
  };
  record.load = [task](const DatasetOptions& options) { return load_glue(task, options); };
  return Register<DatasetRecord>(std::move(record));
}

const Register<DatasetRecord> sst2 = glue(
    {"sst2", "SST-2", "GLUE: is a sentence of a review good", {"sentence"}, "label", "dev.tsv"});
const Register<DatasetRecord> cola =
    glue({"cola", "CoLA", "GLUE: is a sentence grammatical", {"4"}, "2", "dev.tsv"});
const Register<DatasetRecord> mnli = glue({"mnli",
                                           "MNLI",
                                           "GLUE: does one sentence follow from another",
                                           {"sentence1", "sentence2"},
                                           "gold_label",
                                           "dev_matched.tsv"});
const Register<DatasetRecord> qnli = glue({"qnli",
                                           "QNLI",
                                           "GLUE: does a sentence answer a question",
                                           {"question", "sentence"},
                                           "label",
                                           "dev.tsv"});
const Register<DatasetRecord> rte = glue({"rte",
                                          "RTE",
                                          "GLUE: does one sentence follow from another",
                                          {"sentence1", "sentence2"},
                                          "label",
                                          "dev.tsv"});
const Register<DatasetRecord> qqp = glue({"qqp",
                                          "QQP",
                                          "GLUE: do two questions ask the same",
                                          {"question1", "question2"},
                                          "is_duplicate",
                                          "dev.tsv"});
const Register<DatasetRecord> mrpc = glue({"mrpc",
                                           "MRPC",
                                           "GLUE: do two sentences say the same",
                                           {"#1 String", "#2 String"},
                                           "Quality",
                                           "dev.tsv"});
const Register<DatasetRecord> stsb = glue({"stsb",
                                           "STS-B",
                                           "GLUE: how alike are two sentences, from 0 to 5",
                                           {"sentence1", "sentence2"},
                                           "score",
                                           "dev.tsv"});

}  // namespace
}  // namespace mase::sentences_dataset

namespace mase {

std::vector<Field> sentence_fields() {
  return {{.name = "tokenizer",
           .type = FieldType::text,
           .help = "a tokenizer's file or folder (default: that of the network's folder)"},
          {.name = "length",
           .type = FieldType::integer,
           .default_value = 0,
           .help = "tokens of a row; 0: of the longest, at most 512",
           .minimum = 0,
           .maximum = 65536}};
}

SentenceSpec sentence_spec(const DatasetOptions& options) {
  return {sentences_dataset::text_option(options, "tokenizer"),
          options.arguments["length"].is_int() ? options.arguments["length"].as_int() : 0};
}

Tensor packed_sentences(const std::string& path, const SentenceSpec& spec, std::string& notice) {
  using namespace sentences_dataset;
  const TextRows texts = read_lines(path);
  const Tokenizer tokenizer = tokenizer_for(spec, path);
  const Rows rows = encoded(tokenizer, texts);
  size_t longest = 1;
  for (const auto& row : rows.rows) longest = std::max(longest, row.size());
  if (rows.cut > 0)
    notice = fmt::format("{} of {} rows fill all {} tokens or were cut to them", rows.cut,
                         rows.rows.size(), tokenizer.truncation->length);
  return filled(rows, spec.length > 0 ? spec.length : static_cast<int64_t>(longest));
}

Dataset sentence_dataset(const std::string& name, const std::string& place, const TextRows& train,
                         const TextRows& test, const SentenceSpec& spec,
                         const DatasetOptions& options) {
  using namespace sentences_dataset;
  if (options.task != "auto" && options.task != "classification" && options.task != "regression")
    throw Error("--task", fmt::format("{} are no data for '{}'", name, printable(options.task)),
                "data for it: running_text");
  const Tokenizer tokenizer = tokenizer_for(spec, place);
  const Truncation& cut = *tokenizer.truncation;
  const Rows rows = encoded(tokenizer, train), held = encoded(tokenizer, test);
  size_t longest = 1;
  for (const Rows* all : {&rows, &held})
    for (const auto& row : all->rows) longest = std::max(longest, row.size());
  const int64_t length = spec.length > 0 ? spec.length : static_cast<int64_t>(longest);
  ArrayData data;
  data.name = name;
  data.place = place;
  data.train.inputs = filled(rows, length);
  const bool numeric = are_targets(train, options.task, place);
  if (numeric && test.size() > 0 && !are_numbers(test))
    throw Error(place, "test labels are no numbers");
  if (!numeric) data.classes = classes_of(train, test);
  const auto targets = [&](const TextRows& texts) {
    return numeric ? numbers(texts) : class_numbers(texts, data.classes);
  };
  data.train.targets = targets(train);
  if (test.size() > 0) data.test = ArrayRows{filled(held, length), targets(test)};
  if (rows.cut + held.cut > 0)
    data.notice = fmt::format("{} of {} rows fill all {} tokens or were cut to them",
                              rows.cut + held.cut, rows.rows.size() + held.rows.size(), cut.length);
  DatasetOptions own = options;
  own.task = numeric ? "regression" : "classification";
  Dataset dataset = array_dataset(std::move(data), own);
  dataset.variant = "sentences";
  dataset.preprocessing.description["kind"] = dataset.variant;  // token_rows.h
  return dataset;
}

}  // namespace mase
