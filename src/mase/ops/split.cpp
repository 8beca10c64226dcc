// SPDX-License-Identifier: Apache-2.0
// split: a dimension in parts of a given size, the last smaller where it must be; or in parts of
// the listed sizes.
#include "mase/base/fields.h"
#include "mase/ops/pieces.h"

namespace mase::split_op {
namespace {

std::vector<int64_t> part_sizes(const Value& attributes, const Shape& x, size_t dim) {
  const Value& wanted = attributes["split_size_or_sections"];
  if (wanted.is_list()) {
    int64_t total = 0;
    for (const int64_t size : wanted.as_int_list()) total += size;
    if (total != x[dim])
      throw Error("", fmt::format("parts of {} in all from a dimension of {}", total, x[dim]),
                  "the sizes of the parts add up to the dimension's");
    return wanted.as_int_list();
  }
  const int64_t size = wanted.as_int();
  std::vector<int64_t> sizes;
  for (int64_t rest = x[dim]; rest > 0; rest -= size) {
    constexpr size_t most = 1 << 16;
    if (sizes.size() == most)
      throw Error("", fmt::format("a dimension of {} in parts of {}", x[dim], size),
                  "take larger parts");
    sizes.push_back(std::min(size, rest));
  }
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

size_t dim_of(const Value& attributes, const Shape& x) {
  if (x.empty()) throw Error("", "split wants a tensor of rank 1 or more");
  return static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()));
}

Piece piece_of(const Value& attributes, const Shape& x) {
  Piece piece{dim_of(attributes, x)};
  const std::vector<int64_t> sizes = part_sizes(attributes, x, piece.dim);
  const int64_t wanted = checked_result(attributes, static_cast<int64_t>(sizes.size()));
  for (int64_t i = 0; i < wanted; ++i) piece.start += sizes[static_cast<size_t>(i)];
  piece.length = sizes[static_cast<size_t>(wanted)];
  return piece;
}

std::optional<std::string> sizes_fault(const Value& value) {
  const List sizes = value.is_list() ? value.as_list() : List{value};
  for (const Value& size : sizes)
    if (!size.is_int() || size.as_int() < (value.is_list() ? 0 : 1))
      return "expected a size or a list of sizes";
  if (sizes.empty()) return "expected a size or a list of sizes";
  return {};
}

const Register<OpRecord> registered{taking_piece<piece_of>({
    .name = "split",
    .function = "torch.functional.split",
    .summary = "a dimension in parts of given sizes",
    .attributes = {{{.name = "split_size_or_sections",
                     .default_value = 1,
                     .help = "the size of a part, or a list of sizes",
                     .check = sizes_fault},
                    integer_field("dim", "the dimension", 0),
                    result_field()}},
    .results = ResultsInfo{.count =
                               [](const Value& attributes, const std::vector<Shape>& inputs) {
                                 const size_t dim = dim_of(attributes, inputs[0]);
                                 return static_cast<int64_t>(
                                     part_sizes(attributes, inputs[0], dim).size());
                               }},
})};

}  // namespace
}  // namespace mase::split_op
