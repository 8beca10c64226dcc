// SPDX-License-Identifier: Apache-2.0
#include "mase/search/pruners/pruner.h"

#include <set>

#include "mase/base/text.h"

namespace mase::search {

std::unique_ptr<Pruner> make_pruner(const Value& table, const std::string& path) {
  const bool named = table.is_string();
  if (table.is_dict() && table["name"].is_null()) {
    std::set<std::string> known = {"name"};
    for (const PrunerRecord* record : Registry<PrunerRecord>::instance().all())
      for (const Field& field : record->schema.fields) known.insert(field.name);
    for (const auto& [key, value] : table.as_dict())
      if (!known.count(key))
        throw Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                    suggestion(key, {known.begin(), known.end()}))
            .as(Mistake::unknown_key);
    throw Error(table.position(), path, "'name' is missing", "say which: name = \"median\"");
  }
  const Value& name = named ? table : table["name"];
  const PrunerRecord& record =
      Registry<PrunerRecord>::instance().get(lower_case(name.as_string(path + ".name")),
                                             Error(name.position(), path + ".name", "").place());
  Dict options = named ? Dict() : table.as_dict();
  options.erase("name");
  Value given(std::move(options));
  given.set_position(table.position());
  return record.make(validate(given, record.schema, path));
}

}  // namespace mase::search
