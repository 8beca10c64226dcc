// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/quantization.h"

#include <algorithm>
#include <set>

#include "mase/base/text.h"

namespace mase {
namespace {

// Keys that belong to the layer, not to one operand.
const char* const layer_keys[] = {"name", "bypass", "backward", "weight_only"};

// MASE's training_base. It takes keys of the bias too, though the bias is in no product.
std::map<std::string, QuantizerPtr> parse_backward(const Value& config, const std::string& path,
                                                   Problems& problems) {
  if (config.is_null()) return {};
  if (!config.is_dict()) {
    problems.add(Error(config.position(), path,
                       fmt::format("expected a table, got {}", config.type_name())));
    return {};
  }
  if (!config["backward"].is_null()) {
    problems.add(Error(config["backward"].position(), path, "unknown key 'backward'")
                     .as(Mistake::unknown_key));
    return {};
  }
  Quantization parsed = parse_quantization(
      config, {.names = {"output_grad", "data_in", "weight", "bias"}}, path, problems);
  parsed.operands.erase("bias");
  for (const auto& [operand, quantizer] : parsed.operands)
    if (quantizer->learned)
      problems.add(Error(config.position(), path, "nothing is learned in the backward pass",
                         fmt::format("leave out {}_{}", operand, quantizer->learned->name)));
  return parsed.bypass ? std::map<std::string, QuantizerPtr>() : std::move(parsed.operands);
}

// Problems name the keys as they were written, with their operand.
void add_problems(const Value& table, const Schema& schema, const std::string& operand,
                  const std::string& path, Problems& problems) {
  Value written = Dict{};
  for (const auto& [key, value] : table.as_dict()) written.dict().set(operand + "_" + key, value);
  written.set_position(table.position());
  Schema prefixed = schema;
  for (Field& field : prefixed.fields) field.name = operand + "_" + field.name;
  validate(written, prefixed, path, problems);
}

}  // namespace

bool is_activation(const std::string& operand) {
  return !ends_with(operand, "weight") && !ends_with(operand, "bias");
}

OperandUse OperandRules::use(const std::string& name) const {
  OperandUse result;
  result.activation = is_activation(name);
  result.positive = std::count(unsigned_operands.begin(), unsigned_operands.end(), name) > 0;
  if (name == "data_in" || name == "data_out") result.features = features;
  if (const auto found = summed.find(name); found != summed.end()) result.summed = found->second;
  return result;
}

std::vector<std::string> OperandRules::parts_of(const std::string& name) const {
  const auto found = parts.find(name);
  return found == parts.end() ? std::vector<std::string>{name} : found->second;
}

std::vector<std::string> OperandRules::prefixes() const {
  std::vector<std::string> all = names;
  for (const auto& [name, own] : parts) all.insert(all.end(), own.begin(), own.end());
  return all;
}

const Quantizer* Quantization::find_backward(const std::string& operand) const {
  const auto found = backward.find(operand);
  return found == backward.end() ? nullptr : found->second.get();
}

const Quantizer* Quantization::find(const std::string& operand) const {
  if (bypass) return nullptr;
  auto found = operands.find(operand);
  return found == operands.end() ? nullptr : found->second.get();
}

std::string Quantization::format() const {
  if (operands.empty()) return "";
  return config["name"].is_string() ? config["name"].as_string() : operands.begin()->second->format;
}

Quantization parse_quantization(const Value& config, const OperandRules& operands,
                                const std::string& path, Problems& problems) {
  Quantization result;
  if (config.is_null()) return result;
  if (!config.is_dict()) {
    problems.add(Error(config.position(), path,
                       fmt::format("expected a table, got {}", config.type_name())));
    return result;
  }
  const Value& name = config["name"];
  if (!config.as_dict().contains("name")) {
    // Without the format nobody knows its keys, but a word near `name` is that.
    for (const auto& [key, value] : config.as_dict())
      if (nearest_names(key, {"name"}, 1).size() == 1) {
        problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                           "did you mean 'name'?")
                         .as(Mistake::unknown_key));
        return result;
      }
    problems.add(Error(config.position(), path, "'name' is missing",
                       "give the number format, or \"NA\" to leave the layer alone")
                     .as(Mistake::missing_key));
    return result;
  }
  if (means_none(name)) return result;
  try {
    const std::string& format = name.as_string(path + ".name");
    const FormatRecord& record = Registry<FormatRecord>::instance().get(
        format, Error(name.position(), path + ".name", "").place());
    result.config = config;
    if (!config["bypass"].is_null()) result.bypass = config["bypass"].as_bool(path + ".bypass");

    const bool weight_only =
        !config["weight_only"].is_null() && config["weight_only"].as_bool(path + ".weight_only");

    result.backward = parse_backward(config["backward"], path + ".backward", problems);

    const std::vector<std::string> prefixes = operands.prefixes();
    std::map<std::string, Value> tables;  // by prefix
    for (const auto& [key, value] : config.as_dict()) {
      if (std::count(std::begin(layer_keys), std::end(layer_keys), key)) continue;
      const auto owner =
          std::find_if(prefixes.begin(), prefixes.end(),
                       [&, &k = key](auto& operand) { return starts_with(k, operand + "_"); });
      if (owner == prefixes.end()) {
        std::vector<std::string> known;
        for (const std::string& operand : prefixes)
          for (const std::string& field : record.schema.names())
            known.push_back(operand + "_" + field);
        problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                           suggestion(key, known))
                         .as(Mistake::unknown_key));
        continue;
      }
      tables[*owner].dict().set(key.substr(owner->size() + 1), value);
    }
    if (result.bypass) return result;
    std::map<std::string, std::string> written;  // the prefix a part's keys were written with
    for (const auto& [name, own] : operands.parts) {
      const auto joint = tables.extract(name);
      if (joint.empty()) continue;
      for (const std::string& part : own) {
        Dict& table = tables[part].dict();
        if (table.empty()) written[part] = name;
        for (const auto& [key, value] : joint.mapped().as_dict())
          if (!table.contains(key)) table.set(key, value);
      }
    }
    // A format that needs no key, such as `half`, is named and no more.
    const auto needed = std::find_if(record.schema.fields.begin(), record.schema.fields.end(),
                                     [](const Field& field) { return field.required; });
    for (const std::string& operand : operands.required) {
      if (weight_only && operand != "weight") continue;
      std::vector<std::string> missing = operands.parts_of(operand);
      std::erase_if(missing, [&](const std::string& part) { return tables.count(part) > 0; });
      if (missing.empty()) continue;
      if (needed == record.schema.fields.end())
        for (const std::string& part : missing) tables[part] = Dict{};
      else
        problems.add(Error(
            config.position(), path, fmt::format("no key for operand '{}'", operand),
            fmt::format("add {}_{} and the other keys of '{}'", operand, needed->name, format)));
    }
    std::set<std::string> refused;
    for (auto& [operand, table] : tables) {
      table.set_position(config.position());
      if (record.adapt) record.adapt(table.dict(), operands.use(operand));
      const std::string prefix = written.count(operand) ? written.at(operand) : operand;
      if (refused.count(prefix)) continue;
      Problems inner;
      validate(table, record.schema, path + "." + prefix, inner);
      if (!inner.empty()) {
        add_problems(table, record.schema, prefix, path, problems);
        refused.insert(prefix);
        continue;
      }
      QuantizerPtr quantizer = make_quantizer(format, table, path + "." + prefix);
      if (is_activation(operand) && quantizer->learned && !quantizer->learned->whole) {
        problems.add(Error(table.position(), path + "." + operand,
                           "activations learn one number for the tensor",
                           "leave out what gives rows or channels a number each"));
        continue;
      }
      result.operands[operand] = std::move(quantizer);
    }
  } catch (const Error& error) {
    problems.add(error);
  }
  return result;
}

}  // namespace mase
