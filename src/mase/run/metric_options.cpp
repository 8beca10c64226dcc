// SPDX-License-Identifier: Apache-2.0
#include "mase/run/metric_options.h"

#include "mase/base/text.h"
#include "mase/run/set_option.h"

namespace mase {

Value metrics_of(const std::string& text) {
  Value metrics = Dict{};
  if (text.empty()) return metrics;
  for (const std::string& part : split(text, ',')) {
    std::vector<std::string> words = split(part, ':');
    const std::string name = strip(words.front());
    words.erase(words.begin());
    if (metrics.as_dict().contains(name))
      throw Error("--metrics", fmt::format("'{}' is given twice", printable(name)));
    metrics[name] = set_table(Value::of(words), "--metrics");
  }
  return metrics;
}

std::string metrics_text(const Value& table, Problems& problems) {
  std::vector<std::string> parts;
  for (const auto& [name, options] : table.as_dict()) {
    std::string part = name;
    if (!options.is_dict())
      problems.add(Error(options.position(), "metrics." + printable(name),
                         fmt::format("expected a table, got {}", options.type_name()),
                         fmt::format("write [metrics.{}]", printable(name))));
    else
      for (const auto& [key, value] : options.as_dict())
        part += fmt::format(":{}={}", key, value.is_string() ? value.as_string() : to_json(value));
    parts.push_back(part);
  }
  return join(parts, ",");
}

}  // namespace mase
