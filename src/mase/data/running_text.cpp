// SPDX-License-Identifier: Apache-2.0
// Running text in windows of tokens, one behind the other: what comes next at each place is to be
// told (lm), or which tokens were hidden (mlm; Devlin et al., 2019).
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/data/dataset.h"
#include "mase/data/digest.h"
#include "mase/data/prepare.h"
#include "mase/io/numpy/numpy_tensors.h"
#include "mase/text/tokenizer.h"

namespace mase::running_text_dataset {
namespace {

constexpr int32_t does_not_count = -100;  // as PyTorch's cross-entropy has it

struct Windows {
  std::vector<int32_t> ids;  // [windows][length]
  int64_t length = 0, left_out = 0;
  int64_t count() const { return static_cast<int64_t>(ids.size()) / length; }
};

std::string text_option(const DatasetOptions& options, const char* key) {
  const Value& value = options.arguments[key];
  return value.is_string() ? value.as_string() : "";
}

// The files of a list "a.txt,b.txt", one behind the other.
std::vector<std::string> files_of(const std::string& list) {
  std::vector<std::string> files;
  for (const std::string& file : split(list, ','))
    if (!file.empty()) files.push_back(file);
  return files;
}

int32_t id_of(double number, const std::string& path) {
  if (!(number >= 0 && number < double{1 << 24}) || number != std::floor(number))
    throw Error(path, fmt::format("{} is no token number", number));
  return static_cast<int32_t>(number);
}

Windows windows_of(const std::string& list, const std::string& tokenizer, int64_t length) {
  Windows result;
  result.length = length;
  std::optional<Tokenizer> words;
  std::vector<int32_t> stream;
  for (const std::string& path : files_of(list)) {
    if (lower_case(std::filesystem::path(path).extension().string()) != ".npy") {
      if (!words) {
        if (tokenizer.empty())
          throw Error(path, "no tokenizer is named",
                      "give --dataset-tokenizer, or a network's folder that has one");
        words = Tokenizer::load(tokenizer);
      }
      const std::vector<int32_t> ids = words->ids(read_text_file(path), false);
      stream.insert(stream.end(), ids.begin(), ids.end());
      continue;
    }
    const TensorTable tensors = read_numpy_tensors(path);
    if (tensors.size() != 1) throw Error(path, "holds no array of token numbers");
    const Tensor& ids = tensors[0].second;
    if (ids.shape().size() == 2 && ids.dim(1) != length)
      throw Error(path, fmt::format("has windows of {} tokens, {} are wanted", ids.dim(1), length),
                  fmt::format("give --dataset-length {}", ids.dim(1)));
    for (int64_t i = 0; i < ids.numel(); ++i) stream.push_back(id_of(ids.item(i), path));
  }
  const auto whole = static_cast<int64_t>(stream.size()) / length * length;
  result.left_out = static_cast<int64_t>(stream.size()) - whole;
  stream.resize(static_cast<size_t>(whole));
  result.ids = std::move(stream);
  return result;
}

Split next_tokens(const Windows& windows, int64_t first, int64_t count) {
  Split split;
  const int64_t length = windows.length;
  split.x = Tensor({count, length});
  split.labels = Tensor({count, length}, DType::i32);
  float* x = split.x.mutable_data<float>();
  auto* labels = split.labels.mutable_data<int32_t>();
  const int32_t* from = windows.ids.data() + first * length;
  for (int64_t i = 0; i < count * length; ++i) {
    x[i] = static_cast<float>(from[i]);
    labels[i] = (i + 1) % length == 0 ? does_not_count : from[i + 1];
  }
  return split;
}

struct Hiding {
  double share = 0.15;
  int32_t token = 0;       // that stands for a hidden one
  int64_t vocabulary = 0;  // some are replaced by any other
  int64_t copies = 1;      // of each training window, hidden anew
  uint64_t seed = 0;
};

// Of the hidden ones eight in ten become the token, one any other, one stays.
Split hidden_tokens(const Windows& windows, int64_t first, int64_t count, const Hiding& hiding,
                    int64_t copies) {
  Split split;
  const int64_t length = windows.length;
  split.x = Tensor({count * copies, length});
  split.labels = Tensor({count * copies, length}, DType::i32);
  float* x = split.x.mutable_data<float>();
  auto* labels = split.labels.mutable_data<int32_t>();
  for (int64_t copy = 0; copy < copies; ++copy)
    for (int64_t w = first; w < first + count; ++w) {
      Random random(hiding.seed, "hidden tokens",
                    static_cast<uint64_t>(copy * windows.count() + w));
      for (int64_t i = 0; i < length; ++i) {
        const int32_t id = windows.ids[static_cast<size_t>(w * length + i)];
        const double draw = random.uniform(), kind = random.uniform();
        const auto other =
            static_cast<int32_t>(random.below(static_cast<uint64_t>(hiding.vocabulary)));
        const bool hidden = draw < hiding.share;
        *labels++ = hidden ? id : does_not_count;
        *x++ = static_cast<float>(!hidden      ? id
                                  : kind < 0.8 ? hiding.token
                                  : kind < 0.9 ? other
                                               : id);
      }
    }
  return split;
}

Hiding hiding_of(const DatasetOptions& options, const std::string& tokenizer) {
  if (tokenizer.empty())
    throw Error("--task", "which token hides others only a tokenizer says",
                "give --dataset-tokenizer");
  const Tokenizer words = Tokenizer::load(tokenizer);
  Hiding hiding;
  hiding.share = options.arguments["hidden"].as_double();
  hiding.copies = options.arguments["copies"].as_int();
  hiding.seed = options.seed;
  hiding.vocabulary = words.vocabulary().end();
  for (const char* name : {"[MASK]", "<mask>"})
    if (const auto id = words.vocabulary().id(name)) {
      hiding.token = *id;
      return hiding;
    }
  throw Error(tokenizer, "has neither [MASK] nor <mask>",
              "for the next token, leave --task mlm away");
}

Dataset load(const DatasetOptions& options) {
  const std::string files = text_option(options, "file"), test = text_option(options, "test_file"),
                    tokenizer = text_option(options, "tokenizer");
  if (files.empty())
    throw Error("running_text", "no text is named", "give --dataset-file text.txt, or ids.npy");
  if (options.task == "classification" || options.task == "regression")
    throw Error("--task", "running text is for lm and mlm", "leave it away");
  const int64_t length = options.arguments["length"].as_int();
  const Windows windows = windows_of(files, tokenizer, length);
  const Windows held = test.empty() ? Windows{{}, length, 0} : windows_of(test, tokenizer, length);
  const int64_t count = windows.count();
  // What is measured lies behind what is trained on: windows beside each other know of each other.
  const int64_t tested = test.empty() ? count / 10 : 0;
  const std::optional<double> share = validation_share(options.validation_split);
  const auto kept =
      share ? static_cast<int64_t>(std::llround(*share * static_cast<double>(count - tested)))
            : int64_t{0};
  const int64_t trained = count - tested - kept;
  if (trained < 1)
    throw Error(
        files,
        fmt::format("has {} windows of {} tokens, and none is left to train on", count, length),
        "choose a smaller --dataset-length or --val-split, or a longer text");
  const bool hides = options.task == "mlm";
  const Hiding hiding = hides ? hiding_of(options, tokenizer) : Hiding{};
  const auto split = [&](const Windows& from, int64_t first, int64_t rows, bool training) {
    return hides ? hidden_tokens(from, first, rows, hiding, training ? hiding.copies : 1)
                 : next_tokens(from, first, rows);
  };
  Dataset dataset;
  dataset.name = std::filesystem::path(files_of(files)[0]).stem().string();
  dataset.variant = hides ? "hidden tokens" : "running text";
  dataset.train = split(windows, 0, trained, true);
  dataset.validation = share ? split(windows, trained, kept, false) : dataset.train;
  dataset.test = test.empty() ? split(windows, trained + kept, tested, false)
                              : split(held, 0, held.count(), false);
  std::vector<std::string> notices;
  for (const Windows* one : {&windows, &held})
    if (one->left_out > 0)
      notices.push_back(fmt::format("{} tokens at the end fill no window", one->left_out));
  dataset.notice = join(notices, "; ");
  Sha256 digest;
  for (const Split* one : {&dataset.train, &dataset.validation, &dataset.test})
    for (const Tensor* tensor : {&one->x, &one->labels})
      digest.add({tensor->raw(), tensor->bytes()});
  dataset.identity = "sha256:" + digest.hex();
  dataset.preprocessing.feature_names = FeatureNames::of_places("token", {length});
  dataset.preprocessing.offset.assign(static_cast<size_t>(length), 0.0f);
  dataset.preprocessing.scale.assign(static_cast<size_t>(length), 1.0f);
  dataset.preprocessing.description =
      Dict{{"kind", dataset.variant},
           {"scaling", "none"},
           {"order", options.arguments["shuffle"].as_bool() ? "drawn" : "kept"}};
  return dataset;
}

const Register<DatasetRecord> registered{
    {.name = "running_text",
     .aliases = {"text"},
     .summary = "Running text in windows: the next token at each place, or hidden ones",
     .help =
         "--dataset-file is one text or several (a.txt,b.txt), which the tokenizer, by default the "
         "network's own, cuts into tokens, or a .npy of token numbers; a .npy of rows has a window "
         "in each. Windows lie one behind the other; the first token of each is not predicted. "
         "The last tenth of the windows is for the test, --val-split of the rest for validation. "
         "With --task mlm some tokens of each window are hidden, and told.",
     .options = {{{.name = "file",
                   .type = FieldType::text,
                   .help = "texts (.txt) or token numbers (.npy)"},
                  {.name = "test_file",
                   .type = FieldType::text,
                   .help = "for the test (default: the last tenth of the windows)"},
                  {.name = "tokenizer",
                   .type = FieldType::text,
                   .help = "a tokenizer's file or folder (default: that of the network's folder)"},
                  {.name = "length",
                   .type = FieldType::integer,
                   .default_value = 128,
                   .help = "tokens of a window",
                   .minimum = 2,
                   .maximum = 65536},
                  {.name = "shuffle",
                   .type = FieldType::boolean,
                   .default_value = true,
                   .help = "false: training takes the windows as they stand, in every epoch"},
                  {.name = "hidden",
                   .type = FieldType::number,
                   .default_value = 0.15,
                   .help = "mlm: the share of tokens that is hidden",
                   .minimum = 0.001,
                   .maximum = 0.999},
                  {.name = "copies",
                   .type = FieldType::integer,
                   .default_value = 1,
                   .help = "mlm: how often each training window is there, with other tokens hidden",
                   .minimum = 1,
                   .maximum = 1000}}},
     .where = [](const DatasetOptions&) { return "--dataset-file"; },
     .load = load}};

}  // namespace
}  // namespace mase::running_text_dataset
