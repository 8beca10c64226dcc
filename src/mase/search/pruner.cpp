// SPDX-License-Identifier: Apache-2.0
#include "mase/search/pruner.h"

namespace mase::search {

std::unique_ptr<Pruner> make_pruner(const Value& table, const std::string& path) {
  const bool named = table.is_string();
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
