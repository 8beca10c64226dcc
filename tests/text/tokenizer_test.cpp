// SPDX-License-Identifier: Apache-2.0
// Tokenizers against the ids, offsets and texts that Hugging Face's library gives for the same
// files: 64 strings, pairs, truncations, padded batches and windows.
#include "mase/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "mase/base/file.h"
#include "support/support.h"

namespace mase::tokenizer_test {
namespace {

namespace fs = std::filesystem;

std::string golden(const std::string& name) {
  return (fs::path(test::source_path("tests/golden/text")) / name).string();
}

std::vector<int32_t> numbers(const Value& list) {
  std::vector<int32_t> result;
  for (const int64_t number : list.as_int_list()) result.push_back(static_cast<int32_t>(number));
  return result;
}

std::vector<TextSpan> spans(const Value& list) {
  std::vector<TextSpan> result;
  for (const Value& pair : list.as_list())
    result.push_back({static_cast<uint32_t>(pair.as_list()[0].as_int()),
                      static_cast<uint32_t>(pair.as_list()[1].as_int())});
  return result;
}

template <class List>
std::vector<int32_t> as_numbers(const List& list) {
  return {list.begin(), list.end()};
}

// The folder of the files, and the tokenizer's name there.
void check_strings(const std::string& folder, const std::string& name) {
  const Tokenizer tokenizer = Tokenizer::load(folder + "/" + name + ".tokenizer.json");
  const Value file = read_json(folder + "/" + name + ".ids.json");
  const std::vector<std::string> strings =
      read_json(folder + "/strings.json").as_string_list("strings");
  EXPECT_EQ(static_cast<int64_t>(tokenizer.vocabulary().count()), file["vocab_size"].as_int());
  ASSERT_EQ(file["encode"].as_list().size(), strings.size());
  for (const Value& wanted : file["encode"].as_list()) {
    const auto i = static_cast<size_t>(wanted["i"].as_int());
    SCOPED_TRACE(fmt::format("{} {}", name, i));
    const Encoding got = tokenizer.encode(strings[i]);
    const std::vector<int32_t> ids = numbers(wanted["ids"]);
    EXPECT_EQ(got.ids, ids);
    EXPECT_EQ(tokenizer.ids(strings[i]), ids);
    const Value& bare = wanted["ids_nospecial"];
    EXPECT_EQ(tokenizer.encode(strings[i], false).ids, bare.is_list() ? numbers(bare) : ids);
    if (wanted["offsets"].is_list()) {
      EXPECT_EQ(got.offsets, spans(wanted["offsets"]));
      std::vector<std::string> tokens;
      for (const int32_t id : got.ids) tokens.emplace_back(*tokenizer.vocabulary().token(id));
      EXPECT_EQ(tokens, wanted["tokens"].as_string_list());
    }
    if (wanted["normalized"].is_string()) {
      EXPECT_EQ(tokenizer.normalized(strings[i]), wanted["normalized"].as_string());
    }
    const Value& skipped = wanted["decode_skip"];  // left out where it is the same
    EXPECT_EQ(tokenizer.decode(ids), wanted["decode"].as_string());
    EXPECT_EQ(tokenizer.decode(ids, true),
              (skipped.is_string() ? skipped : wanted["decode"]).as_string());
  }
  const std::vector<std::vector<int32_t>> together = tokenizer.ids_batch(strings, true, 3);
  for (size_t i = 0; i < strings.size(); ++i) EXPECT_EQ(together[i], tokenizer.ids(strings[i]));
}

class Files : public testing::TestWithParam<const char*> {};

TEST_P(Files, GiveTheLibrarysIdsOffsetsAndTexts) { check_strings(golden(""), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Tokenizer, Files,
                         testing::Values("bpe_gpt2", "bpe_split_n3", "wordpiece", "unigram",
                                         "bpe_metaspace", "precompiled"),
                         [](const auto& info) { return std::string(info.param); });

// SmolLM2's 49,152 tokens are too large to be kept here.
TEST(Tokenizer, GivesSmolLm2sIds) {
  const std::string folder = test::source_path("../shared/language/tokenizers");
  if (!fs::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  check_strings(folder, "smollm2");
  const Tokenizer tokenizer = Tokenizer::load(folder + "/smollm2.tokenizer.json");
  const Value file = read_json(folder + "/smollm2.ids.json");
  for (const Value& entry : file["decode_only"].as_list()) {
    EXPECT_EQ(tokenizer.decode(numbers(entry["ids"])), entry["decode"].as_string());
    EXPECT_EQ(tokenizer.decode(numbers(entry["ids"]), true), entry["decode_skip"].as_string());
  }
}

TEST(Tokenizer, TakesPairsApartAndCutsThem) {
  Tokenizer tokenizer = Tokenizer::load(golden("wordpiece.tokenizer.json"));
  const Value file = read_json(golden("wordpiece.ids.json"));
  for (const Value& entry : file["pairs"].as_list()) {
    SCOPED_TRACE(to_json(entry));
    tokenizer.truncation.reset();
    if (entry["max_length"].is_int()) {
      const std::string& strategy = entry["strategy"].as_string();
      tokenizer.truncation =
          Truncation{.length = entry["max_length"].as_int(),
                     .strategy = strategy == "only_first"    ? CutStrategy::only_first
                                 : strategy == "only_second" ? CutStrategy::only_second
                                                             : CutStrategy::longest_first};
    }
    const std::string& first = entry["a"].as_string();
    const std::string& second = entry["b"].as_string();
    if (!entry["error"].is_null()) {
      EXPECT_THROW(tokenizer.encode(first, second), Error);
      continue;
    }
    const Encoding got = tokenizer.encode(first, second);
    EXPECT_EQ(got.ids, numbers(entry["ids"]));
    EXPECT_EQ(got.types, numbers(entry["type_ids"]));
    EXPECT_EQ(as_numbers(got.mask), numbers(entry["mask"]));
    EXPECT_EQ(as_numbers(got.special), numbers(entry["special"]));
  }
}

TEST(Tokenizer, FillsBatchesUpAndGivesWindows) {
  Tokenizer tokenizer = Tokenizer::load(golden("wordpiece.tokenizer.json"));
  const List batches = read_json(golden("wordpiece.ids.json"))["batches"].as_list();
  ASSERT_EQ(batches.size(), 5u);
  for (size_t i = 0; i < batches.size(); ++i) {
    SCOPED_TRACE(batches[i]["what"].as_string());
    tokenizer.truncation.reset();
    tokenizer.padding =
        Padding{.length = i == 3 ? 10 : 0, .multiple = i == 2 ? 8 : 0, .left = i == 1};
    if (i >= 3) tokenizer.truncation = Truncation{.length = 6, .stride = i == 4 ? 2 : 0};
    if (i == 4) tokenizer.padding.reset();
    std::vector<Encoding> got = tokenizer.encode_batch(batches[i]["texts"].as_string_list());
    if (i == 4) {
      const std::vector<Encoding> windows = got.at(0).windows;
      got.insert(got.end(), windows.begin(), windows.end());
    }
    const List& wanted = batches[i]["out"].as_list();
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t row = 0; row < wanted.size(); ++row) {
      EXPECT_EQ(got[row].ids, numbers(wanted[row]["ids"]));
      EXPECT_EQ(got[row].types, numbers(wanted[row]["type_ids"]));
      EXPECT_EQ(as_numbers(got[row].mask), numbers(wanted[row]["mask"]));
    }
  }
}

// The same vocabulary as a text, one token on each line.
TEST(Tokenizer, ReadsBertsVocabularies) {
  const Tokenizer whole = Tokenizer::load(golden("wordpiece.tokenizer.json"));
  const Tokenizer text = Tokenizer::load(golden("wordpiece.vocab.txt"));
  for (const std::string& string : read_json(golden("strings.json")).as_string_list("strings")) {
    EXPECT_EQ(whole.encode(string).ids, text.encode(string).ids);
    EXPECT_EQ(whole.encode(string).offsets, text.encode(string).offsets);
    EXPECT_EQ(whole.decode(whole.ids(string)), text.decode(text.ids(string)));
  }
  EXPECT_EQ(whole.encode("a", "b").types, text.encode("a", "b").types);
}

TEST(Tokenizer, ReadsGpt2sVocabularyAndMerges) {
  const Value file = read_json(golden("bpe_gpt2.tokenizer.json"));
  const fs::path folder = fs::path(test::temporary_folder()) / "gpt2";
  fs::create_directories(folder);
  std::string merges = "#version: 0.2\n";
  for (const Value& merge : file["model"]["merges"].as_list())
    merges += merge.as_list()[0].as_string() + " " + merge.as_list()[1].as_string() + "\n";
  write_file_atomically((folder / "vocab.json").string(), to_json(file["model"]["vocab"]));
  write_file_atomically((folder / "merges.txt").string(), merges);
  const Tokenizer whole = Tokenizer::load(golden("bpe_gpt2.tokenizer.json"));
  const Tokenizer parts = Tokenizer::load(folder.string());
  for (const std::string& string : read_json(golden("strings.json")).as_string_list("strings"))
    EXPECT_EQ(whole.encode(string).offsets, parts.encode(string).offsets);
}

TEST(Tokenizer, RefusesWhatItCannotMean) {
  const std::string name = golden("bpe_gpt2.tokenizer.json");
  const auto refused = [&](const std::function<void(Value&)>& change) {
    Value file = read_json(name);
    change(file);
    try {
      make_tokenizer(file, name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  const auto split = [](const std::string& pattern) {
    return Dict{{"type", "Split"},
                {"pattern", Dict{{"Regex", pattern}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  };
  EXPECT_THAT(refused([](Value& file) {
                file["normalizer"] = Dict{{"type", "Unheard"}};
              }),
              testing::HasSubstr("the normaliser 'Unheard' is not known"));
  EXPECT_THAT(refused([](Value& file) { file["model"]["dropout"] = 0.1; }),
              testing::HasSubstr("at random"));
  EXPECT_THAT(refused([](Value& file) { file["colour"] = "red"; }),
              testing::HasSubstr("unknown key 'colour'"));
  EXPECT_THAT(refused([](Value& file) { file["decoder"]["colour"] = "red"; }),
              testing::HasSubstr("colour"));
  for (const char* pattern : {"(?<=a)b", "(?=ab)", "(a)\\1", "\\bword", "\\p{Greek}+", "(?:ab)++"})
    EXPECT_THAT(refused([&](Value& file) { file["pre_tokenizer"] = split(pattern); }),
                testing::HasSubstr("the pattern '"))
        << pattern;
  EXPECT_EQ(refused([&](Value& file) { file["pre_tokenizer"] = split("\\p{L}++|\\s++$|."); }),
            "taken");
  EXPECT_EQ(refused([&](Value& file) { file["pre_tokenizer"] = split("[\\p{Han}a]+|\\P{Han}"); }),
            "taken");
}

TEST(Tokenizer, RefusesTextsAndIdsThatAreNone) {
  const Tokenizer tokenizer = Tokenizer::load(golden("bpe_gpt2.tokenizer.json"));
  EXPECT_THROW(tokenizer.ids("a\xFF"), Error);
  EXPECT_THROW(tokenizer.encode("\xC0\x80"), Error);
  EXPECT_THROW(tokenizer.decode(std::vector<int32_t>{2000}), Error);
  EXPECT_THROW(tokenizer.decode(std::vector<int32_t>{-1}), Error);
}

// A pattern that a matcher which tries one way after another would be busy with for ever.
TEST(Tokenizer, PatternsTakeLinearTime) {
  const std::string text(200000, 'x');
  const TextPattern clever("(?:x+x+)+y|x", "test");
  EXPECT_THROW(clever.matches(text), Error);  // more than linear: said, not done
  const TextPattern spaces("\\s+(?!\\S)|\\s+|\\S+", "test");
  EXPECT_EQ(spaces.matches(std::string(1000000, ' ') + "x").size(), 3u);
  EXPECT_THROW(TextPattern("(((a{200}){200}){200}){200}", "test"), Error);
}

}  // namespace
}  // namespace mase::tokenizer_test
