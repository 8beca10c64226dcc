// SPDX-License-Identifier: Apache-2.0
// ONNX among the files that networks are imported from.
#include "mase/io/importer.h"

#include "mase/io/onnx/import.h"
#include "mase/io/onnx/read_model.h"

namespace mase::importer_onnx {
namespace {

ImportedNetwork read(const std::string& path, const Value& options) {
  onnx::Imported imported = onnx::import_file(path, {}, options["partial"].as_bool());
  return {.graph = std::move(imported.graph), .notes = std::move(imported.notes)};
}

const Register<ImporterRecord> registered{{
    .name = "onnx",
    .aliases = {"qonnx"},
    .summary = "ONNX, and its quantised forms QONNX, QCDQ and QDQ",
    .help = "Every node becomes an op of ours, its quantisers the number formats of operands. All "
            "nodes that cannot be converted are named at once.",
    .suffixes = {".onnx"},
    .recognizes = onnx::looks_like_model,
    .schema = {{{.name = "partial",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "keep nodes that cannot be converted, to be looked at"}}},
    .read = read,
}};

}  // namespace
}  // namespace mase::importer_onnx
