// SPDX-License-Identifier: Apache-2.0
// The tests of a folder are one program. With --file=NAME_test.cpp it runs those of one file: what
// CTest starts, so that files stay apart in its list and cannot disturb each other.
#include <gmock/gmock.h>

#include <cstdio>
#include <string>

namespace {

// The full names of the tests that the file defines; ":" separates them.
std::string tests_of(const std::string& file) {
  std::string names;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const auto& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const auto& test = *suite.GetTestInfo(j);
      if (!std::string(test.file()).ends_with("/" + file)) continue;
      names += (names.empty() ? "" : ":") + std::string(suite.name()) + "." + test.name();
    }
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const std::string option = "--file=";
  if (argc > 1 && std::string(argv[1]).starts_with(option)) {
    const std::string file = std::string(argv[1]).substr(option.size()), names = tests_of(file);
    if (names.empty()) {
      std::fprintf(stderr, "%s defines no test of this program\n", file.c_str());
      return 2;
    }
    GTEST_FLAG_SET(filter, names);
  }
  return RUN_ALL_TESTS();
}
