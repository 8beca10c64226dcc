// SPDX-License-Identifier: Apache-2.0
// Schemas, and hostile config files: whatever the bytes, there is a value or an Error.
#include "mase/base/random.h"
#include "mase/base/schema.h"
#include "support/support.h"

namespace mase::config_test {
namespace {

const Schema schema = {{
    {.name = "width", .type = FieldType::integer, .default_value = 8, .minimum = 1, .maximum = 64},
    {.name = "mode", .type = FieldType::text, .default_value = "a", .choices = {"a", "b", "none"}},
    {.name = "rate", .type = FieldType::number, .help = "a rate", .required = true},
}};

std::string fault(const std::string& toml) {
  try {
    validate(parse_toml(toml, "f.toml"), schema, "t");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Schema, FillsInDefaults) {
  const Value value = validate(parse_toml("rate = 1\nmode = \"none\"", "f.toml"), schema, "");
  EXPECT_EQ(value["width"].as_int(), 8);
  EXPECT_EQ(value["mode"].as_string(), "none");
  EXPECT_EQ(value["rate"].as_double(), 1);
  EXPECT_EQ(validate(parse_toml("rate = 1\nwidth = \"NA\"", "f"), schema, "")["width"].as_int(), 8);
}

TEST(Schema, SaysWhereWhatAndHow) {
  EXPECT_EQ(fault("rate = 1\nwidht = 3"),
            "f.toml:2: t: unknown key 'widht'; did you mean 'width'?");
  EXPECT_EQ(fault("rate = 1\nwidth = 0"), "f.toml:2: t.width: 0 is too small; the least is 1");
  EXPECT_EQ(fault("rate = 1\nwidth = 1.5"),
            "f.toml:2: t.width: expected an integer, got a number; write width = 8");
  EXPECT_EQ(fault("rate = 1\nmode = \"c\""),
            "f.toml:2: t.mode: unknown choice 'c'; choose one of: a, b, none");
  EXPECT_NE(fault("width = 3").find("'rate' is missing"), std::string::npos);
  // A misspelt key is told as one, not as the lack of the key that was meant.
  EXPECT_EQ(fault("rats = 1"), "f.toml:1: t: unknown key 'rats'; did you mean 'rate'?");
  const std::string both = fault("colour = 1");
  EXPECT_LT(both.find("unknown key 'colour'"), both.find("'rate' is missing")) << both;
  // All problems at once.
  const std::string several = fault("width = 0\nmode = 3");
  EXPECT_EQ(std::count(several.begin(), several.end(), '\n'), 2) << several;
}

// Bytes of a valid file changed, removed, doubled: never a crash, and what is accepted can be
// written and read back.
template <class Parse, class Write>
void mutate(const std::string& seed_text, const Parse& parse, const Write& write) {
  Random random(1, "mutate");
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed_text;
    for (uint64_t change = random.below(4) + 1; change > 0 && !text.empty(); --change) {
      const size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text.erase(at, random.below(8) + 1);
          break;
        case 2:
          text.insert(at, text.substr(random.below(text.size()), random.below(12)));
          break;
        default:
          text[at] = "[]{}=\",.\n#e-0"[random.below(13)];
      }
    }
    try {
      const Value value = parse(text, "m");
      ++accepted;
      EXPECT_EQ(parse(write(value), "m"), value) << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  EXPECT_GT(accepted, 10);
}

TEST(Hostile, Toml) {
  mutate(
      "name = \"n\"\nsize = [1, 2.5, -3]\n[a.b]\nx = true\ny = \"t\\u00e9xt\"\n[[c]]\nz = {p = "
      "1}\n",
      parse_toml, [](const Value& value) { return to_toml(value); });
}

TEST(Hostile, LettersOutsideAscii) {
  const auto text = [](const std::string& toml) { return parse_toml(toml, "f")["a"].as_string(); };
  EXPECT_EQ(text("\xEF\xBB\xBF# \u00e9\na = \"\u00e9\u20ac\" # \u00e9"), "\u00e9\u20ac");
  EXPECT_EQ(text("a = '\u00e9'"), "\u00e9");
  EXPECT_EQ(parse_toml("\"\u00e9\" = 1", "f")["\u00e9"].as_int(), 1);
  EXPECT_EQ(text("a = \"\"\"b\\\n  \u00e9\u00e9\"\"\""), "b\u00e9\u00e9");
  EXPECT_EQ(text("a = \"\"\"b\\ \r\n\n \U0001F600\\\n\u00e9\"\"\"\"\" # \u00e9"),
            "b\U0001F600\u00e9\"\"");
  for (const char* const bad : {"\u00e9 = 1", "a = 1\u00e9", "a\u00a0= 1",
                                "a = \"\"\"b\"\"\"\" \u00e9", "a = \"\"\"\\\u00e9\"\"\"",
                                "a = [1, \u00e9]", "a = \"\\\u00e9\"", "a = \"\"\"b\\\n\xe9\"\"\""})
    EXPECT_THROW(parse_toml(bad, "f"), Error) << bad;
  try {
    parse_toml("b = 1\n\u00e9 = 1", "f.toml");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 9), "f.toml:2:");
  }
}

TEST(Hostile, Json) {
  mutate("{\"name\": \"n\", \"list\": [1, 2.5, -3e4, true, null], \"t\": {\"u\": \"\\u00e9\"}}",
         parse_json, [](const Value& value) { return to_json(value); });
}

TEST(Hostile, DeepNestingIsAnError) {
  EXPECT_THROW(parse_json(std::string(100000, '['), "deep"), Error);
  EXPECT_THROW(parse_toml("a = " + std::string(100000, '['), "deep"), Error);
  // Keys of any number of parts, in every place a key can stand, behind quotes and comments.
  std::string parts = "a";
  for (int i = 0; i < 150000; ++i) parts += ".a";
  for (const std::string& text :
       {parts + " = 1", "[" + parts + "]", "[[" + parts + "]]", "x = {" + parts + " = 1}",
        "# '\nx = '''\n''' # \"\n" + parts + " = 1", "x = \"\\\"\"\n" + parts + " = 1"})
    try {
      parse_toml(text, "deep");
      ADD_FAILURE() << text.substr(0, 30);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("a key has too many parts"), std::string::npos)
          << error.what();
    }
  std::string tables;
  for (int i = 0; i < 30; ++i) tables += "{a.b.c.d.e = ";
  EXPECT_THROW(parse_toml("x = " + tables + "1" + std::string(30, '}'), "deep"), Error);
  std::string values = "a = [0";
  for (int i = 0; i < 200000; ++i) values += ",0";
  EXPECT_THROW(parse_toml(values + "]", "long"), Error);
  // Dots, quotes and brackets inside texts count for nothing.
  EXPECT_EQ(parse_toml("a = \"" + std::string(1000, '.') + "\"\nb = '''" + std::string(1000, '[') +
                           "\n'''\nc = 1.5 # " + std::string(1000, '.'),
                       "f")["c"]
                .as_double(),
            1.5);
  EXPECT_THROW(
      parse_json("{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}", "deep"), Error);
}

}  // namespace
}  // namespace mase::config_test
