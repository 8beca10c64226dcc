// SPDX-License-Identifier: Apache-2.0
// Texts, tables and registries: nearest names, numbers as people write them, tabulate's styles.
#include "mase/base/text.h"

#include "mase/base/registry.h"
#include "mase/base/table.h"
#include "support/support.h"

namespace mase::text_test {
namespace {

TEST(Text, NearestNames) {
  const std::vector<std::string> names = {"train", "test", "transform", "summary"};
  EXPECT_EQ(nearest_names("trian", names).at(0), "train");
  EXPECT_EQ(nearest_names("sumary", names).at(0), "summary");
  EXPECT_TRUE(nearest_names("xyzzy", names).empty());
  EXPECT_EQ(suggestion("trian", names).find("did you mean 'train'"), 0u);
  EXPECT_EQ(suggestion("xyzzy", {"a", "b"}), "known: a, b");
}

TEST(Text, Numbers) {
  EXPECT_EQ(with_thousands(3363), "3,363");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(human_count(67784), "67.78 K");
  EXPECT_EQ(human_seconds(75.2), "01:15");
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  EXPECT_FALSE(parse_integer("42 "));
  EXPECT_FALSE(parse_integer("9223372036854775808"));
  EXPECT_FALSE(parse_integer(""));
  EXPECT_EQ(parse_number("1e-3"), 1e-3);
  EXPECT_FALSE(parse_number("1,5"));
}

TEST(Text, DisplayWidthAndPrintable) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("\xff"), 1);
  EXPECT_EQ(printable("a\x1b[31m").find('\x1b'), std::string::npos);
}

Table sample() {
  Table table({"Name", "Count"});
  table.add({"a", "1"});
  table.add({"long name", "12"});
  return table;
}

TEST(Table, Styles) {
  EXPECT_EQ(sample().str(TableStyle::simple),
            "Name       Count\n---------  -----\na              1\nlong name     12\n");
  EXPECT_EQ(sample().str(TableStyle::orgtbl),
            "| Name      |   Count |\n|-----------+---------|\n| a         |       1 |\n"
            "| long name |      12 |\n");
  EXPECT_NE(sample().str(TableStyle::grid).find("+===========+=========+"), std::string::npos);
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  Table table({"a", "b"});
  table.add({"x,y", "say \"hi\""});
  EXPECT_EQ(table.csv(), "a,b\n\"x,y\",\"say \"\"hi\"\"\"\n");
}

struct Thing {
  static constexpr const char* kind = "thing";
  std::string name;
  std::vector<std::string> aliases = {};
};

TEST(Registry, NamesAliasesAndOrder) {
  Registry<Thing>& things = Registry<Thing>::instance();
  Register<Thing> second({"second", {"two"}});
  Register<Thing> first({"first"});
  EXPECT_EQ(things.names(), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(things.get("two").name, "second");
  EXPECT_EQ(things.find("none"), nullptr);
  try {
    things.get("secnd", "here");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "here: unknown thing 'secnd'; did you mean 'second'?");
  }
}

}  // namespace
}  // namespace mase::text_test
