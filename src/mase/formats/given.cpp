// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/given.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "mase/base/fields.h"
#include "mase/formats/elementwise.h"

namespace mase {

std::vector<double> given_numbers(const Value& value) {
  if (value.is_null()) return {};
  if (value.is_number()) return {value.as_double()};
  std::vector<double> numbers;
  for (const Value& entry : value.as_list())
    for (const double number : given_numbers(entry)) numbers.push_back(number);
  return numbers;
}

Field given_field(const char* name, const char* help, std::function<bool(double)> good,
                  const char* wanted) {
  return any_field(name, help)
      .checked([good, wanted](const Value& value) -> std::optional<std::string> {
        const auto fine = [&](const auto& self, const Value& entry) -> bool {
          if (entry.is_number()) return good(entry.as_double());
          if (!entry.is_list() || entry.as_list().empty()) return false;
          return std::all_of(entry.as_list().begin(), entry.as_list().end(),
                             [&](const Value& inner) { return self(self, inner); });
        };
        if (fine(fine, value)) return {};
        return fmt::format("expected {}, or a list of them", wanted);
      });
}

std::vector<Field> given_granularity_fields() {
  return {
      text_field("granularity",
                 "what a number is for: the tensor, or of a list each for an entry of `axis` or "
                 "for `block_size` values of the last dimension",
                 "tensor", {"tensor", "channel", "block"}),
      integer_field("axis", "the dimension of granularity = \"channel\"", 0),
      integer_field("block_size", "how many values granularity = \"block\" takes together", 0)
          .from(0)};
}

int64_t given_block(const Value& config) {
  return config["granularity"].as_string() == "block" ? config["block_size"].as_int() : 0;
}

Granularity given_granularity(const Value& config, const std::vector<std::string>& keys) {
  size_t most = 1;
  for (const std::string& key : keys) most = std::max(most, given_numbers(config[key]).size());
  for (const std::string& key : keys) {
    const size_t count = given_numbers(config[key]).size();
    if (count > 1 && count != most)
      throw config_error(config, key, fmt::format("{} numbers beside a list of {}", count, most),
                         "give as many of each, or one for all");
  }
  if (config["granularity"].as_string() == "channel")
    return {Granularity::Kind::axis, config["axis"].as_int()};
  if (config["granularity"].as_string() == "block") {
    if (given_block(config) < 1)
      throw config_error(config, "block_size", "blocks of no values", "give the size of a block");
    return {};
  }
  if (most > 1)
    throw config_error(config, "granularity", "a list of numbers for one tensor",
                       "say what each is for: granularity = \"channel\"");
  return {};
}

Quantizer given_quantizer(GivenRule given, const Granularity& granularity) {
  const auto rule = std::make_shared<const GivenRule>(std::move(given));
  const auto misfit = [rule, granularity](const Shape& shape) -> std::optional<std::string> {
    const auto rank = static_cast<int64_t>(shape.size());
    if (granularity.kind == Granularity::Kind::axis && rank > 0 &&
        (granularity.axis < -rank || granularity.axis >= rank))
      return fmt::format("axis {} is out of range for shape {}", granularity.axis,
                         shape_text(shape));
    if (rule->block > 0 && (shape.empty() || shape.back() % rule->block != 0))
      return fmt::format("blocks of {} values in {}", rule->block, shape_text(shape));
    const int64_t groups =
        rule->block > 0 ? element_count(shape) / rule->block : grouping(shape, granularity).groups;
    if (rule->groups > 1 && groups != rule->groups && element_count(shape) > 0)
      return fmt::format("{} numbers in a list for {} groups of shape {}", rule->groups, groups,
                         shape_text(shape));
    return {};
  };
  const auto groups_of = [rule, granularity, misfit](const Shape& shape) {
    if (const auto problem = misfit(shape)) throw Error("granularity", *problem);
    if (rule->block == 0) return grouping(shape, granularity);
    return Grouping{1, element_count(shape) / rule->block, rule->block};
  };
  const bool whole = rule->groups == 1 && rule->block == 0;
  Quantizer q;
  q.misfit = misfit;
  q.elementwise = whole;
  q.quantize = [=](const float* in, float* out, const Shape& shape) {
    if (whole) return rule->kernel(0, in, out, static_cast<size_t>(element_count(shape)));
    groups_of(shape).for_each_run([&](int64_t group, int64_t at, size_t count) {
      rule->kernel(group, in + at, out + at, count);
    });
  };
  q.reference = [=](const float* in, float* out, const Shape& shape) {
    if (whole) {
      for (int64_t i = 0; i < element_count(shape); ++i) out[i] = rule->reference(0, in[i]);
      return;
    }
    groups_of(shape).for_each_run([&](int64_t group, int64_t at, size_t count) {
      for (size_t i = 0; i < count; ++i)
        out[at + static_cast<int64_t>(i)] =
            rule->reference(group, in[at + static_cast<int64_t>(i)]);
    });
  };
  if (rule->code) {
    q.code_bits = rule->width;
    const auto each = [=](const Shape& shape, const auto& visit) {
      if (whole) {
        for (int64_t i = 0; i < element_count(shape); ++i) visit(0, i);
        return;
      }
      groups_of(shape).for_each_run([&](int64_t group, int64_t at, size_t count) {
        for (int64_t i = at; i < at + static_cast<int64_t>(count); ++i) visit(group, i);
      });
    };
    q.encode = [=](const float* in, const Shape& shape) {
      Quantizer::Codes codes;
      codes.codes.resize(static_cast<size_t>(element_count(shape)));
      each(shape, [&](int64_t group, int64_t i) {
        codes.codes[static_cast<size_t>(i)] = rule->code(group, std::isnan(in[i]) ? 0 : in[i]);
      });
      return codes;
    };
    q.decode = [=](const Quantizer::Codes& codes, float* out, const Shape& shape) {
      MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)),
                 "{} codes for shape {}", codes.codes.size(), shape_text(shape));
      each(shape, [&](int64_t group, int64_t i) {
        out[i] = rule->value(group, codes.codes[static_cast<size_t>(i)]);
      });
    };
  }
  q.bits_per_value = [width = rule->width, numbers = rule->groups](const Shape& shape) {
    const auto values = static_cast<double>(std::max<int64_t>(1, element_count(shape)));
    return width + 32.0 * static_cast<double>(numbers) / values;
  };
  return q;
}

}  // namespace mase
