// SPDX-License-Identifier: Apache-2.0
#include "mase/base/value.h"

#include "mase/base/schema.h"
#include "support/support.h"

namespace mase::value_test {
namespace {

TEST(Toml, KeepsFileOrderAndPositions) {
  const Value value =
      parse_toml("b = 1\na = 2\n[passes.quantize]\nby = 'type'\n[passes.prune]\n", "x.toml");
  EXPECT_EQ(value.as_dict().keys(), (std::vector<std::string>{"b", "a", "passes"}));
  EXPECT_EQ(value["passes"].as_dict().keys(), (std::vector<std::string>{"quantize", "prune"}));
  EXPECT_EQ(value["passes"]["quantize"]["by"].position().line, 4);
}

TEST(Toml, RoundTrips) {
  const Value value = parse_toml(
      "a = 1.5\nb = 'x\"y'\nc = [1, 2]\n[t]\nd = true\n[t.u]\ne = 1e-05\n[[t.v]]\nf = 1\n", "x");
  EXPECT_EQ(parse_toml(to_toml(value), "y"), value) << to_toml(value);
}

TEST(Json, RoundTripsSymbolsAndNonFiniteNumbers) {
  const Value value(
      Dict{{"s", Symbol{"torch.float32"}}, {"inf", INFINITY}, {"l", List{1, 2.5, nullptr}}});
  EXPECT_EQ(parse_json(to_json(value), "x"), value);
}

TEST(Json, ErrorsNameTheLine) {
  try {
    parse_json("{\n\"a\": 1,\n oops}", "bad.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "bad.json:3: not valid JSON");
  }
}

TEST(Schema, NamesTheNearestKey) {
  const Schema schema{{{.name = "weight_width", .type = FieldType::integer, .minimum = 1}}};
  const Value given = parse_toml("\nweigth_width = 8\n", "a.toml");
  try {
    validate(given, schema, "config");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "a.toml:2: config: unknown key 'weigth_width'; did you mean 'weight_width'?");
  }
}

TEST(Python, PrintsDictsAsPprintDoes) {
  const Value value(
      Dict{{"results", Dict{{"data_out_0", Dict{{"stat", Dict{}}}}}},
           {"args", Dict{{"bias", Dict{{"stat", Dict{}}}}, {"weight", Dict{{"stat", Dict{}}}}}}});
  EXPECT_EQ(python_pprint(value),
            "{'args': {'bias': {'stat': {}}, 'weight': {'stat': {}}},\n"
            " 'results': {'data_out_0': {'stat': {}}}}");
  EXPECT_EQ(python_float(1e-5), "1e-05");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(3), "3.0");
}

}  // namespace
}  // namespace mase::value_test
