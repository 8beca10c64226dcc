// SPDX-License-Identifier: Apache-2.0
// Values and tensors printed as Python and PyTorch print them, against Python itself and against
// texts PyTorch wrote.
#include <cmath>

#include "mase/base/random.h"
#include "mase/base/tensor_text.h"
#include "mase/base/value.h"
#include "support/support.h"

namespace mase::python_text_test {
namespace {

Value random_value(Random& random, int depth) {
  const uint64_t kind = random.below(depth > 3 ? 5 : 8);
  if (kind == 0) return static_cast<int64_t>(random.below(100000)) - 500;
  if (kind == 1)
    return random.normal() * std::pow(10.0, static_cast<double>(random.below(30)) - 12);
  if (kind == 2) return random.below(2) == 0;
  if (kind == 3) return nullptr;
  if (kind == 4) {
    std::string text;
    const char* words[] = {"stat", "it's", "a \"b\"", "line\nbreak", "verylongwordindeed",
                           "x",    "\\"};
    for (uint64_t i = random.below(12); i > 0; --i)
      text += std::string(words[random.below(7)]) + (random.below(4) ? " " : "");
    return text;
  }
  if (kind == 5) {
    List list;
    for (uint64_t i = random.below(9); i > 0; --i) list.push_back(random_value(random, depth + 1));
    return list;
  }
  Dict dict;
  for (uint64_t i = random.below(6); i > 0; --i)
    dict.set("key_" + std::to_string(random.below(1000)), random_value(random, depth + 1));
  return dict;
}

TEST(PythonText, PrettyPrintsAsPythonDoes) {
  const std::string folder = test::temporary_folder();
  Random random(7, "pprint");
  List values;
  std::string ours;
  for (int i = 0; i < 300; ++i) {
    values.push_back(random_value(random, 0));
    ours += python_pprint(values.back()) + "\n" + python_repr(values.back()) + "\n";
  }
  test::write(folder + "/values.json", to_json(values));
  test::write(folder + "/print.py",
              "import json, pprint\n"
              "for value in json.load(open('values.json')):\n"
              "    print(pprint.pformat(value))\n"
              "    print(repr(value))\n");
  const test::RunResult python = test::run({"/usr/bin/python3", "print.py"}, folder);
  if (python.exit_code != 0) GTEST_SKIP() << "no python3 here";
  EXPECT_EQ(ours, python.out);
}

TEST(TensorText, IsPyTorchs) {
  const Value cases = read_json(test::golden_path("passes/tensor_text.json"));
  for (const Value& item : cases.as_list()) {
    std::vector<float> values;
    for (const Value& value : item["values"].as_list())
      values.push_back(value.is_string() ? (value.as_string() == "nan" ? NAN : INFINITY)
                                         : static_cast<float>(value.as_double()));
    const Tensor tensor = Tensor::of(item["shape"].as_int_list(), values);
    EXPECT_EQ(tensor_text(tensor), item["text"].as_string());
    EXPECT_EQ(parameter_text(tensor), item["parameter"].as_string());
  }
}

}  // namespace
}  // namespace mase::python_text_test
