// SPDX-License-Identifier: Apache-2.0
// Sizes in which the batch is a symbol: 3 * N + 1, N being the batch. A model's shapes are lists of
// them, and so are the whole numbers that it computes from its shapes. Where a number is wanted and
// the batch is in it, BatchNeeded says so: no number ever stands for the batch.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/error.h"
#include "mase/ir/op.h"

namespace mase::onnx {

// The model can be read only where the size of its batch is known. `place` is the node that wants
// it; empty where that is added later.
class BatchNeeded : public Error {
 public:
  using Error::Error;
};

struct Size {
  int64_t batches = 0, constant = 0;

  Size() = default;
  template <std::integral T>
  Size(T number) : constant(static_cast<int64_t>(number)) {}  // NOLINT: a size is a number, too
  static Size batch() { return of(1, 0); }
  static Size of(int64_t batches, int64_t constant);

  bool has_batch() const { return batches != 0; }
  bool is_batch() const { return batches == 1 && constant == 0; }
  int64_t number() const;                        // BatchNeeded if the batch is in it
  operator int64_t() const { return number(); }  // NOLINT
  std::string text() const;                      // "16", "batch", "2 * batch", "batch + 1"

  bool operator==(const Size&) const = default;
  template <std::integral T>
  bool operator==(T other) const {
    return batches == 0 && constant == static_cast<int64_t>(other);
  }
};

// Exact, or an Error where 64 bits do not hold the result; BatchNeeded where it is no such sum.
Size sum_of(const Size& a, const Size& b);
Size product_of(const Size& a, const Size& b);
// Nothing if the division leaves a rest, or is by zero.
std::optional<Size> quotient_of(const Size& a, const Size& b);
// -1, 0 or 1 if a is below, equal to or above b whatever the batch is, which is 1 at least.
std::optional<int> order_of(const Size& a, const Size& b);

struct Sizes : std::vector<Size> {
  using std::vector<Size>::vector;
  Sizes(const Shape& shape) : std::vector<Size>(shape.begin(), shape.end()) {}  // NOLINT
  operator Shape() const { return numbers(); }                                  // NOLINT
  Shape numbers() const;  // BatchNeeded if the batch is in one
  bool has_batch() const;
  friend bool operator==(const Sizes& a, const Sizes& b) {
    return static_cast<const std::vector<Size>&>(a) == static_cast<const std::vector<Size>&>(b);
  }
};

Size element_count(const Sizes& sizes);
std::string shape_text(const Sizes& sizes);

// The shape of an op's result.
Sizes infer(const OpRecord& op, const Value& attributes, const std::vector<Sizes>& inputs);

}  // namespace mase::onnx

template <>
struct fmt::formatter<mase::onnx::Size> : fmt::formatter<std::string> {
  template <typename Context>
  auto format(const mase::onnx::Size& size, Context& context) const {
    return fmt::formatter<std::string>::format(size.text(), context);
  }
};
