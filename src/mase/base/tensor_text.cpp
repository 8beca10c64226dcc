// SPDX-License-Identifier: Apache-2.0
#include "mase/base/tensor_text.h"

#include <cmath>

#include "mase/base/text.h"

namespace mase {
namespace {

constexpr int line_width = 80;
constexpr int64_t edge_items = 3;
constexpr int64_t threshold = 1000;  // above this many values only the edges are shown

struct Printer {
  const Tensor& tensor;
  bool shortened = false;
  bool whole_numbers = true;
  bool scientific = false;
  bool floating = true;
  int width = 1;

  explicit Printer(const Tensor& t) : tensor(t), shortened(t.numel() > threshold) {
    floating = t.dtype() == DType::f64 || t.dtype() == DType::f32 || t.dtype() == DType::f16 ||
               t.dtype() == DType::bf16;
    std::vector<int64_t> shown;
    collect(0, 0, shown);
    double largest = 0, smallest = INFINITY;
    for (const int64_t i : shown) {
      const double value = t.item(i);
      if (!floating) {
        width = std::max(width, static_cast<int>(text_of(value).size()));
        continue;
      }
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, std::abs(value));
      smallest = std::min(smallest, std::abs(value));
    }
    if (!floating) return;
    for (const int64_t i : shown)
      whole_numbers = whole_numbers && t.item(i) == std::ceil(t.item(i));
    if (largest > 0)
      scientific =
          largest / smallest > 1000 || largest > 1e8 || (!whole_numbers && smallest < 1e-4);
    for (const int64_t i : shown) {
      const double value = t.item(i);
      if (std::isfinite(value) && value != 0)
        width = std::max(width, static_cast<int>(text_of(value).size()));
    }
  }

  std::string text_of(double value) const {
    if (tensor.dtype() == DType::boolean) return value != 0 ? "True" : "False";
    if (!floating) return fmt::format("{:.0f}", value);
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (scientific) return fmt::format("{:.4e}", value);
    if (whole_numbers) return fmt::format("{:.0f}.", value);
    return fmt::format("{:.4f}", value);
  }

  int64_t stride(size_t dim) const {
    int64_t product = 1;
    for (size_t d = dim + 1; d < tensor.shape().size(); ++d) product *= tensor.shape()[d];
    return product;
  }

  // The places along a dimension that are shown; -1 stands for the dots.
  std::vector<int64_t> places(int64_t size) const {
    std::vector<int64_t> list;
    for (int64_t i = 0; i < size; ++i) {
      if (shortened && size > 2 * edge_items && i == edge_items) {
        list.push_back(-1);
        i = size - edge_items;
      }
      list.push_back(i);
    }
    return list;
  }

  void collect(size_t dim, int64_t offset, std::vector<int64_t>& shown) const {
    if (tensor.numel() == 0) return;
    if (dim == tensor.shape().size()) {
      shown.push_back(offset);
      return;
    }
    for (const int64_t i : places(tensor.shape()[dim]))
      if (i >= 0) collect(dim + 1, offset + i * stride(dim), shown);
  }

  std::string body(size_t dim, int64_t offset, int indent) const {
    const Shape& shape = tensor.shape();
    if (shape.empty()) return pad_left(text_of(tensor.item(0)), width);
    std::vector<std::string> parts;
    if (dim + 1 == shape.size()) {
      const int per_line = std::max(1, (line_width - indent) / (width + 2));
      std::string line;
      int count = 0;
      for (const int64_t i : places(shape[dim])) {
        if (count == per_line) {
          parts.push_back(line);
          line.clear();
          count = 0;
        }
        line += (count++ ? ", " : "") +
                (i < 0 ? " ..." : pad_left(text_of(tensor.item(offset + i)), width));
      }
      parts.push_back(line);
      return "[" + join(parts, ",\n" + std::string(static_cast<size_t>(indent) + 1, ' ')) + "]";
    }
    for (const int64_t i : places(shape[dim]))
      parts.push_back(i < 0 ? "..." : body(dim + 1, offset + i * stride(dim), indent + 1));
    return "[" +
           join(parts, "," + std::string(shape.size() - dim - 1, '\n') +
                           std::string(static_cast<size_t>(indent) + 1, ' ')) +
           "]";
  }
};

}  // namespace

std::string tensor_text(const Tensor& tensor, const std::vector<std::string>& suffixes) {
  const std::string prefix = "tensor(";
  const size_t indent = prefix.size();
  std::string text = prefix + (tensor.numel() == 0 && tensor.shape().size() > 0
                                   ? std::string("[]")
                                   : Printer(tensor).body(0, 0, static_cast<int>(indent)));
  const size_t line_start = text.rfind('\n');
  size_t last = line_start == std::string::npos ? text.size() + 2 : text.size() - line_start + 1;
  for (const std::string& suffix : suffixes) {
    if (last + suffix.size() + 2 > static_cast<size_t>(line_width)) {
      text += ",\n" + std::string(indent, ' ') + suffix;
      last = indent + suffix.size();
    } else {
      text += ", " + suffix;
      last += suffix.size() + 2;
    }
  }
  return text + ")";
}

std::string parameter_text(const Tensor& tensor) {
  return "Parameter containing:\n" + tensor_text(tensor, {"requires_grad=True"});
}

}  // namespace mase
