// SPDX-License-Identifier: Apache-2.0
// The command frame: help, version, tables, usage errors with the nearest name, completion, and the
// generated reference.
#include <fmt/format.h>

#include <gmock/gmock.h>

#include "support/support.h"

namespace mase::frame_test {
namespace {

using test::ch;

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& line) {
  const test::RunResult result = ch(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "ch: " + line + "\n");
}

TEST(Frame, HelpAndVersion) {
  const std::string help = ch({"--help"}).out;
  for (const char* word : {"summary", "completion", "--info", "Examples:"})
    EXPECT_NE(help.find(word), std::string::npos) << help;
  EXPECT_EQ(ch({}).out, help);
  EXPECT_EQ(ch({"-h"}).out, help);
  EXPECT_EQ(ch({"-V"}).out, ch({"--version"}).out);
  EXPECT_EQ(ch({"-V"}).out.find("ch 0."), 0u);
  const test::RunResult own = ch({"summary", "--help"});
  EXPECT_EQ(own.exit_code, 0);
  EXPECT_NE(own.out.find("--batch-size"), std::string::npos);
  EXPECT_NE(own.out.find("(default: 1)"), std::string::npos);
}

TEST(Frame, UsageErrors) {
  expect_usage_error({"trian"}, "unknown command 'trian'; did you mean 'train'?");
  expect_usage_error({"--hlep"}, "unknown option '--hlep'; did you mean '--help'?");
  expect_usage_error({"summary"},
                     "summary: 'model' is missing; usage: ch summary MODEL [DATASET]; "
                     "see ch summary --help");
  expect_usage_error({"summary", "jsc-toy", "--bath-size", "3"},
                     "summary: unknown option '--bath-size'; did you mean '--batch-size'?");
  expect_usage_error({"train", "--lr", "1"},
                     "train: unknown option '--lr'; did you mean '--learning-rate'?");
  expect_usage_error({"train", "--epochs", "1"},
                     "train: unknown option '--epochs'; did you mean '--max-epochs'?");
  expect_usage_error({"quantize", "weights.pt", "more.pt"},
                     "quantize: too many arguments; usage: ch quantize INPUT; "
                     "see ch quantize --help");
  expect_usage_error({"quantize"},
                     "quantize: 'input' is missing; usage: ch quantize INPUT; "
                     "see ch quantize --help");
  expect_usage_error({"summary", "a", "b", "c"},
                     "summary: too many arguments; usage: ch summary MODEL [DATASET]; "
                     "see ch summary --help");
  expect_usage_error({"train", "jsc-toy", "jsc", "--dataset", "jsc"},
                     "train: too many arguments; usage: ch train [MODEL] [DATASET]; "
                     "see ch train --help");
  expect_usage_error({"summary", "jsc-toy", "--batch-size", "x"},
                     "--batch-size: 'x' is not an integer");
  expect_usage_error({"summary", "jsc-toy", "--batch-size", "0"},
                     "--batch-size: 0 is too small; the least is 1");
  expect_usage_error({"--info", "modle"}, "--info: unknown choice 'modle'; did you mean 'model'?");
  EXPECT_EQ(ch({"summary", "jsc-tyo"}).exit_code, 2);
  EXPECT_EQ(ch({"summary", std::string("\x1b[31m")}).err.find('\x1b'), std::string::npos);
}

TEST(Frame, InfoTables) {
  const test::RunResult all = ch({"--info"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  for (const char* kind : {"model", "dataset", "op", "pass", "format"}) {
    const test::RunResult one = ch({"--info", kind});
    EXPECT_EQ(one.exit_code, 0) << kind;
    EXPECT_NE(all.out.find(one.out), std::string::npos) << kind;
    EXPECT_EQ(ch({fmt::format("--info={}", kind)}).out, one.out);
  }
  EXPECT_THAT(all.out, testing::ContainsRegex("jsc-10x +3,363 +11 +3,040"));
}

TEST(Frame, SummaryTotals) {
  const std::vector<std::pair<std::string, std::string>> totals = {
      {"jsc-toy", "327"},      {"jsc-tiny", "117"}, {"jsc-10x", "3,363"},
      {"jsc-toy10x", "4,423"}, {"jsc-s", "5,615"},  {"jsc-trt", "3,231"}};
  for (const auto& [model, total] : totals)
    EXPECT_NE(ch({"summary", model}).out.find("Trainable params: " + total + "\n"),
              std::string::npos)
        << model;
  const std::string other = ch({"summary", "toy", "--input-shape", "3,8", "--outputs", "4"}).out;
  EXPECT_NE(other.find("[1, 3, 8]"), std::string::npos) << other;
  EXPECT_NE(other.find("[1, 4]"), std::string::npos) << other;
}

TEST(Frame, CompletionCompletes) {
  const auto complete = [](const std::string& words, int at) {
    const std::string script = ch({"completion", "bash"}).out;
    const test::RunResult result =
        test::run({"bash", "-c",
                   script + fmt::format("COMP_WORDS=({}); COMP_CWORD={}; _ch_complete; "
                                        "printf '%s\\n' \"${{COMPREPLY[@]}}\"",
                                        words, at)},
                  test::temporary_folder());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(complete("ch summ", 1), "summary\n");
  EXPECT_EQ(complete("ch summary jsc-to", 2), "jsc-toy\njsc-toy10x\n");
  EXPECT_EQ(complete("ch summary jsc-toy --bat", 3), "--batch-size\n");
  EXPECT_EQ(complete("ch --info mo", 2), "model\n");
  EXPECT_EQ(ch({"completion", "fish"}).exit_code, 2);
}

TEST(Frame, ReferenceNamesEverything) {
  const std::string reference = ch({"reference"}).out;
  for (const char* heading :
       {"### `ch summary`", "Usage: `ch summary model [dataset] [OPTIONS]`", "### `jsc-toy`",
        "### `linear`", "### `integer`", "### `quantize`", "### `adam`"})
    EXPECT_NE(reference.find(heading), std::string::npos) << heading;
}

}  // namespace
}  // namespace mase::frame_test
