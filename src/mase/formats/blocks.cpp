// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "mase/base/fields.h"
#include "mase/formats/floating.h"
#include "mase/formats/kernels/codes.h"

namespace mase {
namespace {

CodeLayout element_layout(const Block& type) {
  if (const Fixed* fixed = std::get_if<Fixed>(&type.element))
    return {
        .kind = fixed->sign_magnitude ? CodeLayout::Kind::sign_magnitude : CodeLayout::Kind::whole,
        .width = fixed->width};
  if (const Float* element = std::get_if<Float>(&type.element)) return float_codes(*element);
  return float_codes(std::get<Log>(type.element));
}

// A value of single precision has so many bits behind its leading one: with as many in the largest
// of a block, rounding moves it no more.
constexpr int most_precision = 22;

// Whether single precision holds the value of every code of an element, with room to compute.
bool all_elements_fit(const Block& type) {
  if (const Fixed* fixed = std::get_if<Fixed>(&type.element))
    return fixed->width - 1 <= most_precision;
  if (const Float* element = std::get_if<Float>(&type.element))
    return element->exponent < 8 && element->exponent + element->mantissa <= most_precision;
  const Log* element = std::get_if<Log>(&type.element);
  return !element || element->width - 1 < 8;
}

// The single dimension that is blocked, -1 if none is, -2 if several are.
int blocked_axis(const Blocking& blocking) {
  int axis = -1;
  for (size_t i = 0; i < blocking.block.size(); ++i)
    if (blocking.block[i] > 1) axis = axis == -1 ? static_cast<int>(i) : -2;
  return axis;
}

// Rows of consecutive blocks, if that is what the blocks are.
std::optional<BlockRows> block_rows(const Blocking& blocking) {
  const Shape& shape = blocking.shape;
  const int axis = blocked_axis(blocking);
  const auto total = static_cast<size_t>(element_count(shape));
  if (shape.empty() || total == 0) return {};
  if (axis != -1 && axis + 1 != static_cast<int>(shape.size())) return {};
  const auto last = static_cast<size_t>(shape.back());
  return BlockRows{total / last, last, static_cast<size_t>(blocking.block.back())};
}

// Calls visit(rows, first value, first block) for pieces that stay in the first-level cache, unless
// a single row is larger.
template <class Visit>
void for_each_piece(BlockRows all, const Visit& visit) {
  if (all.count % all.block == 0) {
    all.rows *= all.count / all.block;
    all.count = all.block;
  }
  const size_t most = std::max<size_t>(1, 2048 / all.count);
  const size_t blocks_per_row = all.blocks() / all.rows;
  for (size_t row = 0; row < all.rows; row += most) {
    const BlockRows piece{std::min(most, all.rows - row), all.count, all.block};
    visit(piece, row * all.count, row * blocks_per_row);
  }
}

float largest_of(const float* in, std::span<const Run> runs) {
  float largest = 0;
  for (const Run& run : runs)
    largest =
        std::max(largest, block_largest_kernel(in + run.offset, static_cast<size_t>(run.length)));
  return largest;
}

float plain_largest(const float* in, std::span<const Run> runs) {
  float largest = 0;
  for (const Run& run : runs)
    for (int64_t i = run.offset; i < run.offset + run.length; ++i)
      if (std::isfinite(in[i])) largest = std::max(largest, std::fabs(in[i]));
  return largest;
}

// Blocks in rows or along one axis; false for other forms.
bool sweep_blocks(const BlockSpec& spec, const Blocking& blocking, const float* in, float* out) {
  const Shape& shape = blocking.shape;
  if (element_count(shape) == 0) return true;
  if (const auto rows = block_rows(blocking)) {
    block_rows_kernel(spec, *rows, in, out);
    return true;
  }
  const int axis = blocked_axis(blocking);
  if (axis < 0) return false;
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < shape.size(); ++i)
    if (static_cast<int>(i) < axis)
      outer *= shape[i];
    else if (static_cast<int>(i) > axis)
      inner *= shape[i];
  const int64_t length = shape[static_cast<size_t>(axis)];
  const int64_t block = blocking.block[static_cast<size_t>(axis)];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t first = 0; first < length; first += block) {
      const int64_t at = (o * length + first) * inner;
      block_columns_kernel(spec, in + at, out + at,
                           static_cast<size_t>(std::min(block, length - first)),
                           static_cast<size_t>(inner));
    }
  return true;
}

int exponent_of(const GroupRun& run) { return static_cast<int>(run.shared[0]); }

// Codes of the elements, before scaling. Blocks of other forms than rows are rare enough for plain
// loops.
void set_block_codes(Rounder& rounder, const Block& type, const BlockSpec& spec) {
  const CodeLayout layout = element_layout(type);
  rounder.code_bits = layout.width;
  rounder.to_codes = [spec, layout](const GroupRun& run, const float* in, uint32_t* codes,
                                    size_t count) {
    for (size_t i = 0; i < count; ++i)
      codes[i] = code_of(layout, block_element(spec, exponent_of(run), in[i]));
  };
  rounder.to_values = [layout](const GroupRun& run, const uint32_t* codes, float* out,
                               size_t count) {
    for (size_t i = 0; i < count; ++i)
      out[i] = block_value(value_of(layout, codes[i]), exponent_of(run));
  };
  rounder.code_sweep = [type, spec, layout](const float* in, const Shape& shape,
                                            Rounder::Codes& codes) {
    const auto rows = block_rows(block_form(type, shape));
    if (!rows) return false;
    codes.exponents.resize(rows->blocks());
    std::vector<float> elements;
    for_each_piece(*rows, [&](const BlockRows& piece, size_t value, size_t block) {
      elements.resize(piece.rows * piece.count);
      block_split_kernel(spec, piece, in + value, elements.data(), codes.exponents.data() + block);
      encode_kernel(layout, elements.data(), codes.codes.data() + value, elements.size());
    });
    return true;
  };
  rounder.value_sweep = [type, layout](const Rounder::Codes& codes, float* out,
                                       const Shape& shape) {
    const auto rows = block_rows(block_form(type, shape));
    if (!rows) return false;
    for_each_piece(*rows, [&](const BlockRows& piece, size_t value, size_t block) {
      decode_kernel(layout, codes.codes.data() + value, out + value, piece.rows * piece.count);
      block_join_kernel(piece, out + value, codes.exponents.data() + block, out + value);
    });
    return true;
  };
}

}  // namespace

// The kernels' numbers. Whole elements are kept as whole numbers, so their point moves into the
// exponent.
BlockSpec block_spec(const Block& type) {
  BlockSpec spec;
  int point = 0, precision = 0;  // of whole elements; bits after the leading one
  if (const Fixed* fixed = std::get_if<Fixed>(&type.element)) {
    spec.whole = true;
    spec.element.mantissa = 0;
    // What is not above it, where it has more bits than single precision.
    spec.element.largest = static_cast<float>(largest_code(*fixed));
    if (spec.element.largest > largest_code(*fixed))
      spec.element.largest = std::nextafter(spec.element.largest, 0.0f);
    spec.element.rounding = fixed->rounding;
    point = fixed->frac;
    precision = fixed->width - 2;
  } else if (const Float* element = std::get_if<Float>(&type.element)) {
    spec.whole = false;
    spec.element = float_spec(*element);
    if (element->mantissa > most_precision + 1)  // single precision has rounded it up
      spec.element.largest = std::nextafter(spec.element.largest, 0.0f);
    spec.element.has_infinity = false;  // elements saturate
    precision = element->mantissa;
  } else {
    spec.whole = false;
    spec.element = float_spec(std::get<Log>(type.element));
  }
  spec.carry_bits = type.carry && precision <= most_precision ? precision : -1;
  spec.offset = std::ilogb(spec.element.largest);
  spec.least = type.least - point;
  spec.most = type.most - point;
  return spec;
}

int element_bias(int exponent_width, int bias_width) {
  if (exponent_width < 8) return default_bias(exponent_width);
  const int64_t top = (int64_t{1} << exponent_width) - 1;
  return static_cast<int>(std::min<int64_t>(top - 127, (int64_t{1} << bias_width) - 1));
}

Rounder Block::rounder(const Granularity& granularity) const {
  const BlockSpec spec = block_spec(*this);
  Rounder rounder;
  rounder.granularity = granularity;
  rounder.boxes = *this;
  rounder.width =
      std::visit([](const auto& form) { return NumberType{form}.rounder().width; }, element);
  rounder.bits = rounder.width;
  rounder.shared_bits = scale_bits;
  rounder.kept = Rounder::Kept::exponent;
  const auto fit = [spec](float (*largest)(const float*, std::span<const Run>)) -> Rounder::Fit {
    return [spec, largest](const float* in, std::span<const Run> runs) {
      return Shared{static_cast<double>(block_exponent(spec, largest(in, runs)))};
    };
  };
  rounder.fit = fit(largest_of);
  rounder.plain_fit = fit(plain_largest);
  rounder.one = [spec](const GroupRun& run, float x, uint32_t) {
    return block_value(block_element(spec, exponent_of(run), x), exponent_of(run));
  };
  if (!all_elements_fit(*this)) return rounder;  // vectors would overflow, or have too few bits
  rounder.round = [spec](const GroupRun& run, const float* in, float* out, size_t count) {
    block_apply_kernel(spec, exponent_of(run), in, out, count);
  };
  rounder.sweep = [type = *this, spec](const float* in, float* out, const Shape& shape) {
    return sweep_blocks(spec, block_form(type, shape), in, out);
  };
  set_block_codes(rounder, *this, spec);
  return rounder;
}

std::string Block::text() const {
  return fmt::format("block of {}, shared exponent of {} bits",
                     std::visit([](const auto& form) { return form.text(); }, element), scale_bits);
}

Rounder reference_blocks(const Block& like, ReferenceBlockRule rule) {
  Rounder rounder = like.rounder({});
  rounder.code_bits = 0;
  rounder.fit = rounder.plain_fit = {};
  rounder.one = {};
  rounder.round = {};
  // A block of zeros takes the smallest other block's maximum, or 1, so no block stands alone.
  rounder.sweep = [like, rule = std::move(rule)](const float* in, float* out, const Shape& shape) {
    const Blocking blocking = block_form(like, shape);
    std::vector<float> largest;
    blocking.for_each(
        [&](int64_t, const std::vector<Run>& runs) { largest.push_back(plain_largest(in, runs)); });
    float replacement = std::numeric_limits<float>::infinity();
    for (const float value : largest)
      if (value > 0) replacement = std::min(replacement, value);
    if (std::isinf(replacement)) replacement = 1;
    blocking.for_each([&](int64_t number, const std::vector<Run>& runs) {
      const float value = largest[static_cast<size_t>(number)];
      const float shared = rule.shared(value > 0 ? value : replacement);
      for (const Run& run : runs)
        for (int64_t i = run.offset; i < run.offset + run.length; ++i)
          out[i] = rule.element(shared, in[i]);
    });
    return true;
  };
  return rounder;
}

Field block_size_field(Value default_value) {
  return any_field("block_size",
                   "entries of a block per dimension, right-aligned; -1 is the whole dimension",
                   std::move(default_value))
      .checked([](const Value& value) -> std::optional<std::string> {
        const auto good = [](const Value& entry) {
          return entry.is_int() && (entry.as_int() > 0 || entry.as_int() == -1);
        };
        if (value.is_int())
          return good(value) ? std::optional<std::string>()
                             : "a block needs at least 1 entry (-1: the whole dimension)";
        if (!value.is_list())
          return fmt::format("expected an integer or a list of integers, got {}",
                             value.type_name());
        if (value.as_list().empty()) return "the list of block sizes is empty";
        for (const Value& entry : value.as_list())
          if (!good(entry)) return "a block needs at least 1 entry (-1: the whole dimension)";
        return {};
      });
}

Field skip_first_dim_field() {
  return boolean_field("skip_first_dim",
                       "dimension 0 is a batch: no block spans two of its entries", true);
}

Field exponent_bias_width_field() {
  return integer_field("exponent_bias_width", "bits of the shared bias").needed().between(1, 8);
}

void read_block_form(Block& type, const Value& config) {
  if (config["block_size"].is_int())
    type.size = {config["block_size"].as_int()};
  else
    type.size = config["block_size"].as_int_list("block_size");
  type.skip_first_dim = config["skip_first_dim"].as_bool();
}

}  // namespace mase
