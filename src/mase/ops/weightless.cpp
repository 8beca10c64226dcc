// SPDX-License-Identifier: Apache-2.0
// The layers of weightless networks (DWN: Bacellar et al., "Differentiable weightless neural
// networks", 2024): thermometer turns features into bits, lut_layer looks bits up in tables of
// bits, group_sum counts bits. All are functions of whole numbers, exact as they stand; what they
// are wired to and hold is found by `ch train --learn-bits`, not by gradients through them.
#include "mase/ops/weightless.h"

#include <algorithm>
#include <cmath>

#include "mase/ir/op.h"

namespace mase {
namespace {

int64_t size_of(const Value& attributes, const char* name, int64_t least, int64_t most) {
  const int64_t size = attributes[name].as_int(name);
  if (size < least || size > most)
    throw Error(attributes.position(), name, fmt::format("is {}", size),
                fmt::format("give {} to {}", least, most));
  return size;
}

constexpr int64_t most_bits = int64_t{1} << 24;

}  // namespace

ThermometerShape::ThermometerShape(const Value& attributes)
    : in(size_of(attributes, "in_features", 1, most_bits)),
      levels(size_of(attributes, "levels", 1, 256)),
      input_width(static_cast<int>(size_of(attributes, "input_width", 1, 12))),
      input_frac(static_cast<int>(size_of(attributes, "input_frac", -16, 16))),
      is_signed(attributes["input_signed"].as_bool("input_signed")) {
  if (in * levels > most_bits)
    throw Error(attributes.position(), "levels", "gives too many bits", "take fewer");
}

int64_t ThermometerShape::code_of(double x) const {
  const double code = std::floor(std::ldexp(x, input_frac) + 0.5);
  if (!(code > static_cast<double>(low()))) return low();
  return code < static_cast<double>(high()) ? static_cast<int64_t>(code) : high();
}

double ThermometerShape::value_of(int64_t code) const {
  return std::ldexp(static_cast<double>(code), -input_frac);
}

LutLayerShape::LutLayerShape(const Value& attributes)
    : in(size_of(attributes, "in_features", 1, most_bits)),
      out(size_of(attributes, "out_features", 1, most_bits)),
      inputs(size_of(attributes, "inputs", 1, most_table_inputs)) {}

int64_t LutLayerShape::wire(double number) const {
  return number > 0 ? static_cast<int64_t>(std::min(number, static_cast<double>(in - 1))) : 0;
}

GroupSumShape::GroupSumShape(const Value& attributes)
    : in(size_of(attributes, "in_features", 1, most_bits)),
      groups(size_of(attributes, "groups", 1, most_bits)) {
  if (in % groups != 0)
    throw Error(attributes.position(), "in_features",
                fmt::format("{} bits are not {} equal groups", in, groups),
                "take a multiple of the groups");
}

}  // namespace mase

namespace mase::weightless_ops {
namespace {

Shape last_as(const std::string& name, const Shape& input, int64_t in, int64_t out) {
  Shape shape = input;
  if (shape.empty() || shape.back() != in)
    throw Error(
        "", fmt::format("{} wants {} input features, got shape {}", name, in, shape_text(shape)),
        shape.empty() ? "" : fmt::format("set in_features to {}", shape.back()));
  shape.back() = out;
  return shape;
}

size_t rows_in(const Array& x, int64_t in) { return x.data.size() / static_cast<size_t>(in); }

// Steps everywhere: no gradient.
OpGradients none(const OpCall& call, const Array&, const Array&) {
  OpGradients result;
  result.inputs.emplace_back(call.inputs[0]->shape);
  return result;
}

void complete(Dict& attributes, const std::vector<Shape>& inputs, const char* name,
              int64_t outputs) {
  if (!attributes.contains("in_features") && !inputs[0].empty())
    attributes.set("in_features", inputs[0].back());
  if (name && !attributes.contains(name) && outputs > 0) attributes.set(name, outputs);
}

Field whole(const char* name, const char* help, int64_t least) {
  return {.name = name,
          .type = FieldType::integer,
          .help = help,
          .minimum = static_cast<double>(least)};
}
Field whole(const char* name, const char* help, int64_t least, int64_t most, int64_t usual) {
  Field field = whole(name, help, least);
  field.default_value = usual;
  field.maximum = static_cast<double>(most);
  return field;
}

OpCost no_cost(const Value&, const std::vector<Shape>&, const Shape& out) {
  return {0, element_count(out)};
}

const Register<OpRecord> thermometer{{
    .name = "thermometer",
    .class_name = "Thermometer",
    .mase_type = "module_related_func",
    .summary = "bits that say which thresholds each feature has reached",
    .attributes = {{
        whole("in_features", "size of the last dimension of x", 1),
        whole("levels", "thresholds of each feature", 1, 256, 1),
        whole("input_width", "bits of a feature's code", 1, 12, 1),
        whole("input_frac", "of them after the point", -16, 16, 0),
        {.name = "input_signed",
         .type = FieldType::boolean,
         .default_value = false,
         .help = "codes are two's complement"},
    }},
    .operands = {"data_in", "data_out"},
    .params =
        [](const Value& attributes) {
          const ThermometerShape shape(attributes);
          return std::vector<ParamSpec>{{"thresholds", {shape.in, shape.levels}, false, 0.5}};
        },
    .infer =
        [](const Value& attributes, const std::vector<Shape>& inputs) {
          const ThermometerShape shape(attributes);
          return last_as("Thermometer", inputs[0], shape.in, shape.in * shape.levels);
        },
    .eval =
        [](const OpCall& call) {
          const ThermometerShape shape(call.attributes);
          const Array& x = *call.inputs[0];
          const Array& thresholds = *call.params.at("thresholds");
          Shape result = x.shape;
          result.back() = shape.in * shape.levels;
          Array y(result);
          const auto in = static_cast<size_t>(shape.in), levels = static_cast<size_t>(shape.levels);
          for (size_t k = 0; k < x.data.size(); ++k) {
            const double value = shape.value_of(shape.code_of(x.data[k]));
            for (size_t level = 0; level < levels; ++level)
              y.data[k * levels + level] = value >= thresholds.data[k % in * levels + level];
          }
          return y;
        },
    .grad = none,
    .cost = no_cost,
    .repr =
        [](const Value& attributes) {
          const ThermometerShape shape(attributes);
          return fmt::format("in_features={}, levels={}", shape.in, shape.levels);
        },
    .complete = [](Dict& attributes, const std::vector<Shape>& inputs,
                   int64_t) { complete(attributes, inputs, nullptr, 0); },
}};

const Register<OpRecord> lut_layer{{
    .name = "lut_layer",
    .class_name = "LutLayer",
    .mase_type = "module_related_func",
    .summary = "bits looked up in tables of a few bits each",
    .attributes = {{
        whole("in_features", "bits of the last dimension of x", 1),
        whole("out_features", "tables", 1),
        whole("inputs", "bits that each table reads", 1, most_table_inputs, 6),
    }},
    .operands = {"data_in", "data_out"},
    .params =
        [](const Value& attributes) {
          const LutLayerShape shape(attributes);
          return std::vector<ParamSpec>{{"wiring", {shape.out, shape.inputs}, false, 0},
                                        {"entries", {shape.out, shape.entries()}, false, 0}};
        },
    .infer =
        [](const Value& attributes, const std::vector<Shape>& inputs) {
          const LutLayerShape shape(attributes);
          return last_as("LutLayer", inputs[0], shape.in, shape.out);
        },
    .eval =
        [](const OpCall& call) {
          const LutLayerShape shape(call.attributes);
          const Array& x = *call.inputs[0];
          const Array &wiring = *call.params.at("wiring"), &entries = *call.params.at("entries");
          Shape result = x.shape;
          result.back() = shape.out;
          Array y(result);
          const auto in = static_cast<size_t>(shape.in), out = static_cast<size_t>(shape.out),
                     inputs = static_cast<size_t>(shape.inputs),
                     size = static_cast<size_t>(shape.entries());
          for (size_t row = 0; row < rows_in(x, shape.in); ++row)
            for (size_t o = 0; o < out; ++o) {
              size_t address = 0;
              for (size_t k = 0; k < inputs; ++k) {
                const auto wire = static_cast<size_t>(shape.wire(wiring.data[o * inputs + k]));
                address |= static_cast<size_t>(x.data[row * in + wire] > 0.5) << k;
              }
              y.data[row * out + o] = entries.data[o * size + address] > 0;
            }
          return y;
        },
    .grad = none,
    .cost = no_cost,
    .repr =
        [](const Value& attributes) {
          const LutLayerShape shape(attributes);
          return fmt::format("in_features={}, out_features={}, inputs={}", shape.in, shape.out,
                             shape.inputs);
        },
    .complete = [](Dict& attributes, const std::vector<Shape>& inputs,
                   int64_t outputs) { complete(attributes, inputs, "out_features", outputs); },
}};

const Register<OpRecord> group_sum{{
    .name = "group_sum",
    .class_name = "GroupSum",
    .mase_type = "module_related_func",
    .summary = "bits counted in equal groups",
    .attributes = {{
        whole("in_features", "bits of the last dimension of x", 1),
        whole("groups", "counts, each of in_features / groups neighbours", 1),
    }},
    .operands = {"data_in", "data_out"},
    .params =
        [](const Value& attributes) {
          const GroupSumShape shape(attributes);
          return std::vector<ParamSpec>{{"weights", {shape.in}, false, 1}};
        },
    .infer =
        [](const Value& attributes, const std::vector<Shape>& inputs) {
          const GroupSumShape shape(attributes);
          return last_as("GroupSum", inputs[0], shape.in, shape.groups);
        },
    .eval =
        [](const OpCall& call) {
          const GroupSumShape shape(call.attributes);
          const Array& x = *call.inputs[0];
          const Array& weights = *call.params.at("weights");
          Shape result = x.shape;
          result.back() = shape.groups;
          Array y(result);
          const auto in = static_cast<size_t>(shape.in), groups = static_cast<size_t>(shape.groups);
          for (size_t k = 0; k < x.data.size(); ++k)
            y.data[k / in * groups + k % in / (in / groups)] += x.data[k] * weights.data[k % in];
          return y;
        },
    .grad =
        [](const OpCall& call, const Array&, const Array& g) {
          const GroupSumShape shape(call.attributes);
          const Array& weights = *call.params.at("weights");
          OpGradients result;
          Array gx(call.inputs[0]->shape);
          const auto in = static_cast<size_t>(shape.in), groups = static_cast<size_t>(shape.groups);
          for (size_t k = 0; k < gx.data.size(); ++k)
            gx.data[k] = g.data[k / in * groups + k % in / (in / groups)] * weights.data[k % in];
          result.inputs.push_back(std::move(gx));
          return result;
        },
    .cost = no_cost,
    .repr =
        [](const Value& attributes) {
          const GroupSumShape shape(attributes);
          return fmt::format("in_features={}, groups={}", shape.in, shape.groups);
        },
    .complete = [](Dict& attributes, const std::vector<Shape>& inputs,
                   int64_t outputs) { complete(attributes, inputs, "groups", outputs); },
}};

}  // namespace
}  // namespace mase::weightless_ops
