// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/importer.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "mase/base/file.h"

namespace mase {

const ImporterRecord* find_importer(const std::string& path, const std::string& format) {
  const auto& registry = Registry<ImporterRecord>::instance();
  if (!format.empty()) return &registry.get(format, "--format");
  std::array<std::byte, 4096> buffer;
  const InputFile file(path);
  const size_t count = std::min<size_t>(buffer.size(), file.size());
  file.read(buffer.data(), count, 0, path);
  const std::span<const std::byte> start(buffer.data(), count);
  const std::string suffix = lower_case(std::filesystem::path(path).extension().string());
  const auto has_suffix = [&](const ImporterRecord& record) {
    return std::find(record.suffixes.begin(), record.suffixes.end(), suffix) !=
           record.suffixes.end();
  };
  std::vector<const ImporterRecord*> by_content, by_name;
  for (const ImporterRecord* record : registry.all()) {
    if (has_suffix(*record)) by_name.push_back(record);
    if (record->recognizes && record->recognizes(start)) by_content.push_back(record);
  }
  if (by_content.size() == 1) return by_content[0];
  // Several kinds of file may begin alike, or share a suffix: together they may say which it is.
  for (const ImporterRecord* record : by_content)
    if (has_suffix(*record)) return record;
  // Of those that share a suffix the ones that know their own files by sight have seen it.
  if (by_name.size() > 1)
    std::erase_if(by_name,
                  [](const ImporterRecord* record) { return record->recognizes != nullptr; });
  return by_name.size() == 1 ? by_name[0] : nullptr;
}

ImportedNetwork import_network(const std::string& path, const std::string& format,
                               const Value& options) {
  const ImporterRecord* const record = find_importer(path, format);
  if (!record) {
    std::vector<std::string> known;
    for (const ImporterRecord* other : Registry<ImporterRecord>::instance().all())
      known.push_back(fmt::format("{} ({})", other->name, join(other->suffixes, ", ")));
    throw Error(path, "is no network file of a known format",
                fmt::format("known: {}; name one with --format", join(known, ", ")));
  }
  Problems problems;
  const Value checked =
      validate(options.is_null() ? Value(Dict{}) : options, record->schema, record->name, problems);
  problems.throw_if_any();
  ImportedNetwork network = record->read(path, checked);
  network.format = record->name;
  verify(network.graph);
  return network;
}

}  // namespace mase
