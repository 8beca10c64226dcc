// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/storage.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>

#include "mase/base/address.h"

namespace mase::search {

std::unique_ptr<Storage> open_storage(const std::string& address) {
  std::vector<std::string> known;
  for (const StorageRecord* record : Registry<StorageRecord>::instance().all()) {
    if (record->takes(address)) return record->open(address);
    known.push_back(record->summary);
  }
  throw Error("--storage",
              fmt::format("'{}' is no address of a study", printable(masked_address(address))),
              "write " + join(known, ", or "));
}

namespace {

const StorageRecord* storage_of(const std::string& address) {
  for (const StorageRecord* record : Registry<StorageRecord>::instance().all())
    if (record->takes(address)) return record;
  return nullptr;
}

}  // namespace

bool is_storage_address(const std::string& word) { return storage_of(word) != nullptr; }

std::unique_ptr<Storage> open_existing_storage(const std::string& address) {
  const StorageRecord* const record = storage_of(address);
  const std::string file = record && record->file ? record->file(address) : "";
  std::error_code none;
  if (!file.empty() && !std::filesystem::is_regular_file(file, none))
    throw Error(file, "no such file", "name the file of a study");
  return open_storage(address);
}

bool is_for_many_machines(const std::string& address) {
  for (const StorageRecord* record : Registry<StorageRecord>::instance().all())
    if (record->takes(address)) return record->many_machines;
  return false;
}

void place_in_space(const Space& space, const std::vector<StoredParameter>& parameters,
                    Trial& trial) {
  trial.point.assign(space.dimensions(), std::numeric_limits<double>::quiet_NaN());
  trial.in_space = true;
  for (const StoredParameter& stored : parameters) {
    const int index = space.find(stored.name);
    if (index < 0) {
      trial.in_space = false;
      continue;
    }
    const Distribution& ours = space.parameters()[static_cast<size_t>(index)].distribution;
    // Choices are kept by number: the same number must mean the same choice.
    const bool same_kind = ours.kind == stored.distribution.kind &&
                           (!ours.is_categorical() || ours.choices == stored.distribution.choices);
    if (!same_kind || !ours.contains(stored.value)) {
      trial.in_space = false;
      continue;
    }
    trial.point[static_cast<size_t>(index)] =
        ours.is_discrete() ? ours.nth(ours.index_of(stored.value)) : stored.value;
  }
  trial.in_space = trial.in_space && space.contains(trial.point);
}

std::vector<double> constraints_of(const Dict& system_attributes) {
  std::vector<double> found;
  for (const auto& [key, value] : system_attributes)
    if (starts_with(key, "constraints:") && value.is_number()) found.push_back(value.as_double());
  if (!found.empty()) return found;
  const Value* list = system_attributes.find("constraints");
  if (list && list->is_list())
    for (const Value& item : list->as_list())
      if (item.is_number()) found.push_back(item.as_double());
  return found;
}

Dict stored_attributes(const Trial& trial) {
  Dict attributes = trial.system_attributes;
  if (trial.constraints.empty()) return attributes;
  List list;
  for (size_t i = 0; i < trial.constraints.size(); ++i) {
    attributes.set(fmt::format("constraints:{}", i), trial.constraints[i]);
    list.emplace_back(trial.constraints[i]);
  }
  attributes.set("constraints", std::move(list));
  return attributes;
}

std::string iso_time(int64_t microseconds, char separator) {
  const int64_t seconds = microseconds / 1000000;
  const std::tm parts = fmt::gmtime(static_cast<std::time_t>(seconds));
  return fmt::format("{:%Y-%m-%d}{}{:%H:%M:%S}.{:06}", parts, separator, parts,
                     microseconds % 1000000);
}

int64_t parse_iso_time(const std::string& text) {
  // "2026-11-16 06:12:18.744799", perhaps with T, without a fraction, with +00:00.
  const auto number = [&](size_t at, size_t length) -> int64_t {
    if (at + length > text.size()) return 0;
    return parse_integer(text.substr(at, length)).value_or(0);
  };
  if (text.size() < 19) return 0;
  const auto unsigned_number = [&](size_t at) { return static_cast<unsigned>(number(at, 2)); };
  const std::chrono::sys_days day = std::chrono::year(static_cast<int>(number(0, 4))) /
                                    std::chrono::month(unsigned_number(5)) /
                                    std::chrono::day(unsigned_number(8));
  int64_t micro = 0;
  if (text.size() > 20 && text[19] == '.') {
    std::string digits;
    for (size_t i = 20; i < text.size() && digits.size() < 6 && text[i] >= '0' && text[i] <= '9';
         ++i)
      digits += text[i];
    digits.resize(6, '0');
    micro = parse_integer(digits).value_or(0);
  }
  const int64_t seconds = day.time_since_epoch().count() * int64_t{86400} + number(11, 2) * 3600 +
                          number(14, 2) * 60 + number(17, 2);
  return seconds * 1000000 + micro;
}

}  // namespace mase::search
