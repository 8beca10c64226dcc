// SPDX-License-Identifier: Apache-2.0
#include "mase/base/pattern.h"

#include <re2/re2.h>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {

constexpr size_t longest_expression = 4096;
constexpr int64_t most_memory = int64_t{1} << 20;  // of a compiled one

const re2::RE2& engine(const std::shared_ptr<const void>& compiled) {
  return *static_cast<const re2::RE2*>(compiled.get());
}

}  // namespace

Pattern::Pattern(const std::string& expression) {
  const std::string shown = printable(expression.substr(0, 80));
  if (expression.size() > longest_expression)
    throw Error("", fmt::format("'{}...' is too long for a regular expression", shown),
                fmt::format("at most {} characters", longest_expression));
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(most_memory);
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (!compiled->ok()) {
    const bool unsupported = compiled->error_code() == re2::RE2::ErrorRepeatOp ||
                             compiled->error_code() == re2::RE2::ErrorBadPerlOp ||
                             compiled->error_code() == re2::RE2::ErrorBadEscape;
    throw Error(
        "",
        fmt::format("'{}' is not a regular expression: {}", shown, printable(compiled->error())),
        unsupported ? "references back and looking ahead are not supported" : "check its brackets");
  }
  compiled_ = std::move(compiled);
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::FullMatch({text.data(), text.size()}, engine(compiled_));
}

bool Pattern::occurs_in(std::string_view text) const {
  return re2::RE2::PartialMatch({text.data(), text.size()}, engine(compiled_));
}

}  // namespace mase
