// SPDX-License-Identifier: Apache-2.0
#include "mase/train/resumption.h"

#include "mase/base/text.h"

namespace mase {

std::string difference_of_makers(const Value& before, const Dict& now) {
  if (!before.is_dict()) return "";
  std::vector<std::string> differences;
  for (const auto& [name, mine] : now) {
    const Value& then = before[name];
    if (then == mine) continue;
    differences.push_back(
        fmt::format("{} {}, was {}", replace_all(name, "_", " "),
                    mine.is_int() ? std::to_string(mine.as_int()) : mine.as_string(),
                    then.is_int()      ? std::to_string(then.as_int())
                    : then.is_string() ? printable(then.as_string())
                                       : "unknown"));
  }
  if (differences.empty()) return "";
  return fmt::format(
      "resumed elsewhere ({}): its last bits may differ from those of a run that "
      "was not interrupted",
      join(differences, "; "));
}

}  // namespace mase
