// SPDX-License-Identifier: Apache-2.0
// getitem: x[index] with Python's indices: a number, a slice {slice = [start, stop, step]}, "..."
// for all dimensions between, "None" for a new one; or a list of these. Of a call with several
// results it is the one of that number.
#include "mase/ops/dimensions.h"
#include "mase/ops/moving.h"

namespace mase::getitem_op {
namespace {

struct Range {
  int64_t start, step, count;
  bool all = false;  // whatever the size is: the batch is not known when an index is read
};

// What the index makes of the dimensions of x: a range of each, and the result's shape.
struct Selection {
  std::vector<Range> ranges;  // of each dimension
  Shape out;

  Selection(const Value& index, const Shape& x);

 private:
  void take(const Value& entry, int64_t size);
};

bool is_word(const Value& entry, const char* word) {
  return (entry.is_string() && entry.as_string() == word) ||
         (entry.is_symbol() && entry.symbol() == word);
}
bool is_rest(const Value& entry) { return is_word(entry, "...") || is_word(entry, "Ellipsis"); }
bool is_new(const Value& entry) { return entry.is_null() || is_word(entry, "None"); }

// As Python's slice.indices: limits beyond the ends are the ends.
Range range_of(const List& slice, int64_t size) {
  const int64_t step = slice[2].is_null() ? 1 : slice[2].as_int("step");
  const auto limit = [&](const Value& value, int64_t otherwise) {
    if (value.is_null()) return otherwise;
    const int64_t given = value.as_int("slice");
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const int64_t start = limit(slice[0], 0), stop = limit(slice[1], size);
  return {start, step, stop > start ? (stop - start - 1) / step + 1 : 0,
          start == 0 && step == 1 && slice[1].is_null()};
}

void Selection::take(const Value& entry, int64_t size) {
  if (entry.is_dict()) {
    ranges.push_back(range_of(entry["slice"].as_list(), size));
    out.push_back(ranges.back().count);
    return;
  }
  int64_t number = entry.as_int("index");
  if (number < -size || number >= size)
    throw Error("", fmt::format("index {} of {}", number, size), "indices are below the size");
  if (number < 0) number += size;
  ranges.push_back({number, 1, 1});
}

Selection::Selection(const Value& index, const Shape& x) {
  const List entries = index.is_list() ? index.as_list() : List{index};
  size_t named = 0;
  for (const Value& entry : entries) named += !is_rest(entry) && !is_new(entry);
  if (named > x.size())
    throw Error("", fmt::format("{} indices of a tensor of shape {}", named, shape_text(x)),
                "take fewer indices");
  const Value all = Dict{{"slice", List{Value(), Value(), Value()}}};
  size_t rest = x.size() - named;
  for (const Value& entry : entries) {
    if (is_new(entry)) {
      out.push_back(1);
    } else if (is_rest(entry)) {
      for (; rest > 0; --rest) take(all, x[ranges.size()]);
    } else {
      take(entry, x[ranges.size()]);
    }
  }
  while (ranges.size() < x.size()) take(all, x[ranges.size()]);
}

std::vector<size_t> sources(const OpCall& call) {
  const Shape& x = call.inputs[0]->shape;
  const Selection selection(call.attributes["index"], x);
  const std::vector<Range>& ranges = selection.ranges;
  std::vector<size_t> places(static_cast<size_t>(element_count(selection.out)));
  std::vector<int64_t> position(x.size(), 0);
  for (size_t& place : places) {
    int64_t from = 0;
    for (size_t i = 0; i < x.size(); ++i)
      from = from * x[i] + ranges[i].start + position[i] * ranges[i].step;
    place = static_cast<size_t>(from);
    for (size_t i = x.size(); i-- > 0;) {
      if (++position[i] < ranges[i].count) break;
      position[i] = 0;
    }
  }
  return places;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Shape x = lowering.shape(inputs[0]);
  if (x.empty()) return -1;
  const Selection selection(attributes["index"], x);
  Slot slot = inputs[0];
  for (size_t i = 0; i < x.size(); ++i) {
    const Range& range = selection.ranges[i];
    if (range.all) continue;
    slot = lowering.slice(slot, static_cast<int64_t>(i), range.start, range.step, range.count);
  }
  return lowering.shape(slot) == selection.out ? slot : lowering.reshape(slot, selection.out);
}

std::optional<std::string> index_fault(const Value& value) {
  const List entries = value.is_list() ? value.as_list() : List{value};
  int rests = 0;
  for (const Value& entry : entries) {
    rests += is_rest(entry);
    if (entry.is_int() || is_rest(entry) || is_new(entry)) continue;
    const bool slice =
        entry.is_dict() && entry["slice"].is_list() && entry["slice"].as_list().size() == 3;
    if (!slice) return "expected numbers, slices, \"...\" and \"None\"";
    for (const Value& part : entry["slice"].as_list())
      if (!part.is_null() && !part.is_int()) return "a slice is three numbers or nulls";
    const Value& step = entry["slice"].as_list()[2];
    if (step.is_int() && step.as_int() < 1) return "the step of a slice is at least 1";
  }
  if (rests > 1) return "\"...\" stands once";
  return {};
}

const Register<OpRecord> registered{moving(
    {
        .name = "getitem",
        .function = "operator.getitem",
        .mase_type = "builtin_func",
        .summary = "parts of a tensor by Python's indices, or one of several results",
        .attributes =
            {{{.name = "index",
               .default_value = 0,
               .help = "a number, {slice = [start, stop, step]}, \"...\", \"None\", or a list",
               .check = index_fault}}},
        .infer =
            [](const Value& attributes, const std::vector<Shape>& inputs) {
              return Selection(attributes["index"], inputs[0]).out;
            },
        .lower = lower,
    },
    sources)};

}  // namespace
}  // namespace mase::getitem_op
