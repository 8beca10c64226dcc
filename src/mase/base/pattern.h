// SPDX-License-Identifier: Apache-2.0
// Regular expressions that users write. Matched by RE2, in time that grows with the text and not
// with the expression's cleverness: std::regex backtracks for ever on (x+x+)+y and overflows the
// stack on long names.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace mase {

class Pattern {
 public:
  // What is wrong with an expression is an Error without a place; the caller knows where it stands.
  explicit Pattern(const std::string& expression);

  bool matches(std::string_view text) const;  // the whole of it
  bool occurs_in(std::string_view text) const;

 private:
  std::shared_ptr<const void> compiled_;
};

}  // namespace mase
