// SPDX-License-Identifier: Apache-2.0
// Sentences and running text as data: files of every kind, pairs, GLUE's folders, windows, and that
// what a row is filled up with, or who is beside it, changes nothing.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "mase/data/text_rows.h"
#include "mase/data/token_rows.h"
#include "mase/engine/program.h"
#include "mase/models/hf.h"
#include "mase/run/experiment.h"
#include "mase/text/tokenizer.h"
#include "support/support.h"

namespace mase::text_data_test {
namespace {

namespace fs = std::filesystem;

std::string written(const std::string& name, const std::string& text) {
  static const fs::path base = test::temporary_folder();
  const fs::path path = base / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string fault(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TextRows, AreReadFromEveryKindOfFile) {
  const std::string csv =
      written("a.csv", "id,text,label\r\n1,\"one, \"\"two\"\"\nthree\",good\r\n2,four,bad\r\n");
  TextRows rows = read_text_rows(csv, {});
  EXPECT_EQ(rows.first, (std::vector<std::string>{"one, \"two\"\nthree", "four"}));
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"good", "bad"}));
  EXPECT_TRUE(rows.second.empty());
  rows = read_text_rows(written("a.tsv", "0\tsays \"hello\n1\tworld\n"),
                        {.texts = {"2"}, .label = "1"});
  EXPECT_EQ(rows.first, (std::vector<std::string>{"says \"hello", "world"}));
  rows = read_text_rows(written("b.tsv", "sentence1\tsentence2\tlabel\na\tb\t1\nc\td\t0\n"), {});
  EXPECT_EQ(rows.first, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(rows.second, (std::vector<std::string>{"b", "d"}));
  rows = read_text_rows(
      written("a.jsonl", "{\"text\": \"x\", \"label\": 2}\n\n{\"label\": 0, \"text\": \"y\"}\n"),
      {});
  EXPECT_EQ(rows.first, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"2", "0"}));
  written("films/neg/1.txt", "dull");
  written("films/pos/1.txt", "fine\n");
  rows =
      read_text_rows(fs::path(written("films/pos/2.txt", "good")).parent_path().parent_path(), {});
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"neg", "pos", "pos"}));
  EXPECT_EQ(rows.first[1], "fine\n");
}

TEST(TextRows, FaultsNameTheirLine) {
  const auto said = [](const std::string& name, const std::string& text,
                       const TextColumns& columns = {}) {
    const std::string path = written(name, text);
    return fault([&] { read_text_rows(path, columns); }).substr(path.size());
  };
  EXPECT_EQ(said("x.csv", "text,label\na,\n"), ":2: has no label");
  EXPECT_EQ(said("x.csv", "text,label\n\"a,b\n"), ":2: a quote is not closed");
  EXPECT_EQ(said("x.tsv", "a\tb\nc\n", {.texts = {"1"}, .label = "2"}),
            ":2: has 1 cells, column 2 is wanted");
  EXPECT_NE(said("x.tsv", "a\tb\nc\td\n").find("which column is the label is not said"),
            std::string::npos);
  EXPECT_EQ(said("x.jsonl", "{\"text\": \"a\", \"label\": 1}\n[1]\n"),
            ":2: is no table of columns");
  EXPECT_EQ(said("x.csv", "text,label\na\xff,1\n"),
            ":2: is not UTF-8; convert the file, for instance with iconv");
  EXPECT_NE(said("x.csv", "text,label\na,1\n", {.texts = {"txet"}}).find("did you mean 'text'"),
            std::string::npos);
  EXPECT_NE(said("x.bin", "a").find("is no file of sentences"), std::string::npos);
}

const char* const words = "tests/golden/text/wordpiece.tokenizer.json";

Dataset dataset(const std::string& name, Dict arguments, const std::string& task = "auto",
                const std::string& data_dir = "") {
  DatasetOptions options;
  arguments.set("tokenizer", test::source_path(words));
  options.arguments = std::move(arguments);
  options.task = task;
  options.data_dir = data_dir;
  return load_dataset(name, options);
}

TEST(Sentences, ArePackedIdsWithClassesInOrder) {
  std::string text = "text,label\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("to be or not to be{},{}\n", i % 3 == 0 ? " my lord" : "",
                        i % 2 == 0 ? "10" : "9");
  const Dataset data = dataset("sentences", Dict{{"file", written("s.csv", text)}});
  EXPECT_TRUE(has_packed_tokens(data));
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"9", "10"}));
  const Tokenizer tokenizer = Tokenizer::load(test::source_path(words));
  std::vector<int32_t> ids = tokenizer.ids("to be or not to be");
  const auto longest = static_cast<int64_t>(tokenizer.ids("to be or not to be my lord").size());
  EXPECT_EQ(data.sample_shape(), Shape{longest});
  ids.resize(static_cast<size_t>(longest), static_cast<int32_t>(token_padding));
  bool found = false;
  for (int64_t row = 0; row < data.train.rows(); ++row) {
    std::vector<int32_t> own;
    for (int64_t i = 0; i < longest; ++i)
      own.push_back(static_cast<int32_t>(data.train.x.data<float>()[row * longest + i]));
    found = found || own == ids;
  }
  EXPECT_TRUE(found);
  // Cut to a length, and filled up to one.
  EXPECT_EQ(
      dataset("sentences", Dict{{"file", written("s.csv", text)}, {"length", 5}}).sample_shape(),
      Shape{5});
  EXPECT_EQ(
      dataset("sentences", Dict{{"file", written("s.csv", text)}, {"length", 50}}).sample_shape(),
      Shape{50});
}

TEST(Sentences, PairsTellTheirSentencesAndNumbersAreRegression) {
  std::string text = "sentence1\tsentence2\tscore\n";
  for (int i = 0; i < 12; ++i) text += fmt::format("my lord\tthe king\t{}.5\n", i % 5);
  const Dataset data = dataset("sentences", Dict{{"file", written("p.tsv", text)}});
  EXPECT_FALSE(data.classification);
  const Tokenizer tokenizer = Tokenizer::load(test::source_path(words));
  const Encoding pair = tokenizer.encode(std::string_view("my lord"), std::string_view("the king"));
  ASSERT_EQ(data.sample_shape(), Shape{static_cast<int64_t>(pair.size())});
  for (size_t i = 0; i < pair.size(); ++i)
    EXPECT_EQ(data.train.x.data<float>()[i],
              static_cast<float>(pair.ids[i] + (pair.types[i] > 0 ? second_sentence : 0)));
}

TEST(Sentences, GluesFoldersAreReadByName) {
  const fs::path base = fs::path(test::temporary_folder());
  const auto lines = [](const std::string& header, const std::string& row0,
                        const std::string& row1) {
    std::string text = header;
    for (int i = 0; i < 6; ++i) text += (i % 2 ? row1 : row0) + "\n";
    return text;
  };
  const auto put = [&](const char* folder, const char* dev, const std::string& text) {
    fs::create_directories(base / folder);
    std::ofstream(base / folder / "train.tsv") << text;
    std::ofstream(base / folder / dev) << text;
  };
  put("SST-2", "dev.tsv", lines("sentence\tlabel\n", "the king\t0", "my lord\t1"));
  put("CoLA", "dev.tsv", lines("", "x\t1\t\tthe king", "x\t0\t*\tking the"));
  put("MNLI", "dev_matched.tsv",
      lines("index\tsentence1\tsentence2\tgold_label\n", "0\ta\tb\tneutral",
            "1\tc\td\tentailment"));
  put("MRPC", "dev.tsv",
      lines("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", "1\t1\t2\ta\tb", "0\t3\t4\tc\td"));
  put("STS-B", "dev.tsv", lines("sentence1\tsentence2\tscore\n", "a\tb\t5", "c\td\t2"));
  for (const auto& [name, classes] :
       {std::pair<std::string, std::vector<std::string>>{"sst2", {"0", "1"}},
        {"cola", {"0", "1"}},
        {"mnli", {"entailment", "neutral"}},
        {"mrpc", {"0", "1"}},
        {"stsb", {}}}) {
    const Dataset data = dataset(name, {}, "auto", base.string());
    EXPECT_EQ(data.class_names, classes) << name;
    EXPECT_EQ(data.classification, name != "stsb");
    EXPECT_EQ(data.test.rows(), 6) << name;
  }
  EXPECT_NE(fault([&] { dataset("qqp", {}, "auto", base.string()); }).find("no folder QQP"),
            std::string::npos);
}

TEST(RunningText, WindowsTellTheNextToken) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "to be, or not to be, that is the question. ";
  const std::string path = written("t.txt", text);
  const std::vector<int32_t> ids = Tokenizer::load(test::source_path(words)).ids(text, false);
  const Dataset data = dataset("running_text", Dict{{"file", path}, {"length", 16}});
  EXPECT_TRUE(has_token_labels(data));
  const auto windows = static_cast<int64_t>(ids.size()) / 16;
  EXPECT_EQ(data.train.rows() + data.validation.rows() + data.test.rows(), windows);
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(data.train.x.data<float>()[i], static_cast<float>(ids[static_cast<size_t>(i)]));
    EXPECT_EQ(data.train.labels.data<int32_t>()[i],
              i % 16 == 15 ? -100 : ids[static_cast<size_t>(i + 1)]);
  }
  // The test lies behind everything else.
  EXPECT_EQ(data.test.x.data<float>()[0],
            static_cast<float>(ids[static_cast<size_t>((windows - data.test.rows()) * 16)]));
  const Dataset hidden =
      dataset("running_text", Dict{{"file", path}, {"length", 16}, {"copies", 3}}, "mlm");
  EXPECT_EQ(hidden.train.rows(), 3 * data.train.rows());
  int64_t told = 0;
  for (int64_t i = 0; i < hidden.train.labels.numel(); ++i) {
    const int32_t label = hidden.train.labels.data<int32_t>()[i];
    const auto id = ids[static_cast<size_t>(i % (data.train.rows() * 16))];
    if (label < 0)
      ASSERT_EQ(hidden.train.x.data<float>()[i], static_cast<float>(id));
    else
      ASSERT_EQ(label, id);
    told += label >= 0;
  }
  const double share = static_cast<double>(told) / static_cast<double>(hidden.train.labels.numel());
  EXPECT_NEAR(share, 0.15, 0.05);
}

// Over all families: packed rows give what ids, mask and kinds give, and neither what a row is
// filled up with nor who is beside it changes anything.
TEST(Sentences, PackedRowsAreIdsMasksAndKinds) {
  for (const char* name : {"bert_cls", "roberta_cls", "distilbert_cls", "llama_sharded", "gpt2",
                           "opt", "mistral", "qwen3"}) {
    const std::string path = test::golden_path(std::string("language/") + name);
    const bool decoder = std::string(name).find("_cls") == std::string::npos;
    const bool bert = std::string(name) == "bert_cls";
    Checkpoint folder = load_checkpoint(path);
    const auto network = [&](int64_t length, bool packed) {
      TensorTable tensors = folder.tensors;
      HfOptions options{.shapes = {{length}}};
      if (packed)
        options.packed = second_sentence;
      else
        options.shapes.assign(bert ? 3 : 2, Shape{length});
      Graph graph = make_hf_network(folder.contents, tensors, options, path);
      Checkpoint weights = folder;
      weights.tensors = tensors;
      load_into(graph, weights, path);
      return graph;
    };
    constexpr int64_t rows = 3, length = 12;
    const int64_t sizes[rows] = {12, 7, 5};
    Tensor packed({rows, length}), ids({rows, length}), mask({rows, length}), kinds({rows, length});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = r * length + i;
        const bool there = i < sizes[r], second = bert && there && i >= 4;
        const int64_t id = 5 + (r * 31 + i * 17) % 240;
        ids.mutable_data<float>()[at] = static_cast<float>(there ? id : 0);
        mask.mutable_data<float>()[at] = there;
        kinds.mutable_data<float>()[at] = second;
        packed.mutable_data<float>()[at] =
            static_cast<float>(!there ? token_padding : id + (second ? second_sentence : 0));
      }
    const Tensor got = run(network(length, true), {packed}).at(0);
    std::vector<Tensor> inputs = {ids, mask};
    if (bert) inputs.push_back(kinds);
    const Tensor wanted = run(network(length, false), inputs).at(0);
    ASSERT_EQ(got.shape(), wanted.shape());
    const int64_t each = got.numel() / rows, width = decoder ? got.dim(2) : each;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t real = decoder ? sizes[r] * width : each;
      Tensor alone({1, sizes[r]});
      std::copy_n(packed.data<float>() + r * length, sizes[r], alone.mutable_data<float>());
      const Tensor own = run(network(sizes[r], true), {alone}).at(0);
      double most = 1;
      for (int64_t i = 0; i < real; ++i) most = std::max(most, std::fabs(own.item(i)));
      for (int64_t i = 0; i < real; ++i) {
        ASSERT_NEAR(got.item(r * each + i), wanted.item(r * each + i), 1e-6 * most) << name;
        ASSERT_NEAR(got.item(r * each + i), own.item(i), 1e-6 * most) << name << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace mase::text_data_test
