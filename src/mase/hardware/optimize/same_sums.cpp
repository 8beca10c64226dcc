// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/same_sums.h"

#include <algorithm>

#include "mase/base/text.h"

namespace mase {

void require_same_sums(const std::vector<LinearForm>& forms, const std::vector<char>& is_head,
                       const IntegerGraph& after, const std::vector<IntegerId>& renamed,
                       const std::vector<int64_t>& offsets) {
  std::vector<std::vector<size_t>> heads(after.nodes.size());  // of every node
  for (size_t i = 0; i < forms.size(); ++i)
    if (is_head[i]) heads[static_cast<size_t>(renamed[i])].push_back(i);
  const auto wanted_form = [&](size_t head) {
    LinearForm wanted{{}, forms[head].constant};
    for (const auto& [root, factor] : forms[head].terms) {
      if (!offsets.empty()) wanted.constant += factor * offsets[static_cast<size_t>(root)];
      // Exact intervals may show that a root has one value only.
      const IntegerNode& now = after.at(renamed[static_cast<size_t>(root)]);
      if (now.op->name == "constant")
        wanted.constant += factor * now.numbers[0];
      else
        wanted.terms.emplace_back(renamed[static_cast<size_t>(root)], factor);
    }
    std::sort(wanted.terms.begin(), wanted.terms.end());
    return wanted;
  };
  visit_linear_forms(after, [&](size_t i, const LinearForm& written) {
    for (const size_t head : heads[i])
      MASE_CHECK(written == wanted_form(head), "the sum %{} is another one", head);
  });
}

}  // namespace mase
