// SPDX-License-Identifier: Apache-2.0
// Networks in other people's files, as graphs. A reader is a record, found by the file's suffix or
// by how the file begins, so that a new kind of file is one new file here. `ch import` and every
// command that takes a network read through import_network().
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/ir/graph.h"

namespace mase {

struct ImportedNetwork {
  Graph graph;                          // verified
  std::string format;                   // the reader's name; filled in by import_network
  std::vector<std::string> notes = {};  // what a reader of the result should know, a line each
  // The file means integers: where single precision is too narrow to follow them, they are right.
  bool integers = false;
  Value about = {};  // the "mase" table of a file of ours (run/network.h reads it)
};

struct ImporterRecord {
  static constexpr const char* kind = "network file format";
  std::string name;  // "onnx"
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  std::vector<std::string> suffixes;  // ".onnx", in lower case
  // How such a file begins, where that says more than its name: `start` is up to 4,096 bytes.
  std::function<bool(std::span<const std::byte> start)> recognizes = {};
  Schema schema = {};  // options of its own
  // Any fault of the file is an Error whose place begins with `path`. `options` are validated.
  std::function<ImportedNetwork(const std::string& path, const Value& options)> read;
};

// The reader for a file: the one named, else the only one that recognises the beginning, else the
// one with the suffix. Nothing if there is none.
const ImporterRecord* find_importer(const std::string& path, const std::string& format = "");

// The file's network. `format` empty: found out; no reader for it is an error that lists the known.
ImportedNetwork import_network(const std::string& path, const std::string& format = "",
                               const Value& options = {});

}  // namespace mase
