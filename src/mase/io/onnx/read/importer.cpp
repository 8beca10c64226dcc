// SPDX-License-Identifier: Apache-2.0
// ONNX among the files that networks are imported from.
#include "mase/io/networks/importer.h"

#include "mase/base/text.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/read/import.h"

namespace mase::importer_onnx {
namespace {

// "3,224,224" for each input; the batch stays free.
std::vector<Shape> shapes_of(const Value& texts) {
  std::vector<Shape> shapes;
  if (texts.is_null()) return shapes;
  for (const Value& text : texts.as_list()) {
    Shape& shape = shapes.emplace_back(1, 0);
    for (const std::string& part : split(text.as_string(), ',')) {
      const auto size = parse_integer(strip(part));
      if (!size || *size < 1)
        throw Error("--input-shape", fmt::format("'{}' is no size", printable(part)),
                    "write --input-shape 3,224,224, and further inputs behind it");
      shape.push_back(*size);
    }
  }
  return shapes;
}

ImportedNetwork read(const std::string& path, const Value& options) {
  ReadLimits limits;
  limits.memory = static_cast<size_t>(options["memory"].as_int()) << 20;
  onnx::Imported imported = onnx::import_file(path, limits, options["partial"].as_bool(),
                                              shapes_of(options["input_shape"]));
  constexpr size_t longest = 400;
  for (const auto& [name, text] : imported.properties)
    imported.notes.push_back(name + ": " +
                             (text.size() <= longest
                                  ? text
                                  : text.substr(0, longest) + " ... (ch inspect shows all of it)"));
  return {.graph = std::move(imported.graph),
          .notes = std::move(imported.notes),
          .about = imported.about.empty() ? Value() : Value(imported.about)};
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
                 .help = "keep nodes that cannot be converted, to be looked at"},
                {.name = "memory",
                 .type = FieldType::integer,
                 .default_value = 0,
                 .help = "megabytes that a model may make beside what the file holds; 0: 40",
                 .minimum = 0,
                 .maximum = 1 << 20},
                {.name = "input_shape",
                 .type = FieldType::list,
                 .help = "sizes behind the batch that the file leaves open, for each input"}}},
    .read = read,
}};

}  // namespace
}  // namespace mase::importer_onnx
