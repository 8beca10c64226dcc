// SPDX-License-Identifier: Apache-2.0
// A small table with the shape of the jets, and ch search on it.
#pragma once

#include <string>
#include <vector>

#include "mase/base/random.h"
#include "support/support.h"

namespace mase::test {

// A table with the shape of the jets (16 features, 5 classes) that takes no time to load.
inline const std::string& search_folder() {
  static const std::string path = [] {
    const std::string fresh = temporary_folder();
    Random random(1, "search_test");
    std::string csv;
    for (int f = 0; f < 16; ++f) csv += fmt::format("f{},", f);
    csv += "kind\n";
    for (int row = 0; row < 600; ++row) {
      const uint64_t kind = random.below(5);
      for (uint64_t f = 0; f < 16; ++f)
        csv += fmt::format("{:.4f},", random.normal() + (f % 5 == kind ? 2 : 0));
      csv += fmt::format("class{}\n", kind);
    }
    write(fresh + "/table.csv", csv);
    return fresh;
  }();
  return path;
}

inline RunResult search_jets(std::vector<std::string> words) {
  std::vector<std::string> all = {"search", "jsc-tiny", "table.csv", "--target", "kind"};
  all.insert(all.end(), words.begin(), words.end());
  return ch(all, search_folder(), {"MASE_DATA=" + search_folder() + "/data"});
}

}  // namespace mase::test
