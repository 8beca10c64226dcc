// SPDX-License-Identifier: Apache-2.0
// Open sets (ops, passes, formats, readers, models, commands, ...) are registries: one file adds
// one record, and nothing else is edited. Lookup is by name or alias; listing is sorted by name, so
// that nothing depends on the order in which files were linked.
//
//   namespace { const Register<PassRecord> registered{{.name = "prune", ...}}; }
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {

// A Record has: static constexpr const char* kind ("pass"), std::string name,
// std::vector<std::string> aliases.
template <class Record>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  void add(Record record) {
    const std::string name = record.name;
    for (const std::string& alias : record.aliases) {
      MASE_CHECK(!find(alias), "{} '{}' is registered twice", Record::kind, alias);
      aliases_[alias] = name;
    }
    MASE_CHECK(!find(name), "{} '{}' is registered twice", Record::kind, name);
    records_.emplace(name, std::move(record));
  }

  const Record* find(const std::string& name) const {
    auto alias = aliases_.find(name);
    auto record = records_.find(alias == aliases_.end() ? name : alias->second);
    return record == records_.end() ? nullptr : &record->second;
  }

  // The record, or an error at that place naming the nearest known names.
  const Record& get(const std::string& name, const std::string& place = "") const {
    if (const Record* record = find(name)) return *record;
    throw Error(place, fmt::format("unknown {} '{}'", Record::kind, printable(name)),
                suggestion(name, names()))
        .as(Mistake::unknown_name);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, record] : records_) names.push_back(name);
    return names;
  }

  std::vector<const Record*> all() const {
    std::vector<const Record*> records;
    for (const auto& [name, record] : records_) records.push_back(&record);
    return records;
  }

 private:
  std::map<std::string, Record> records_;
  std::map<std::string, std::string> aliases_;
};

template <class Record>
struct Register {
  explicit Register(Record record) { Registry<Record>::instance().add(std::move(record)); }
};

}  // namespace mase
