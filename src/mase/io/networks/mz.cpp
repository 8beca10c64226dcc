// SPDX-License-Identifier: Apache-2.0
// .mz: a whole graph in one zip, never a pickle.
//
//   mase.json            {"format": "mase-graph", "version": 2}
//   graph.json           nodes, modules, attributes, quantisation, metadata: readable
//   weights.safetensors  "parameter|buffer|mask:<path>.<name>", 64-byte aligned, viewed in place
//   packed.json          which of these are blocks of packed numbers: types and shapes (version 3)
//   extra.json           what the writer wanted to travel along
//
// The version counts changes that an older reader could not understand: a file without packed
// numbers stays of version 2.
#include <algorithm>
#include <array>
#include <map>

#include "mase/base/text.h"
#include "mase/formats/packed_groups.h"
#include "mase/io/networks/checkpoint_file.h"
#include "mase/io/networks/safetensors.h"
#include "mase/io/zip/zip_reader.h"
#include "mase/io/zip/zip_writer.h"

namespace mase {
namespace {

constexpr const char* header_name = "mase.json";
constexpr const char* graph_name = "graph.json";
constexpr const char* weights_name = "weights.safetensors";
constexpr const char* packed_name = "packed.json";
constexpr const char* extra_name = "extra.json";
constexpr const char* format_name = "mase-graph";
constexpr int64_t plain_version = 2;   // as the graph's
constexpr int64_t newest_version = 3;  // with packed numbers

// The three tables of tensors a module has, by the first word of their names.
struct Part {
  const char* word;
  TensorTable Module::*table;
};
constexpr std::array<Part, 3> parts = {
    {{"parameter", &Module::parameters}, {"buffer", &Module::buffers}, {"mask", &Module::masks}}};

std::string stored_name(const Part& part, const std::string& path, const std::string& name) {
  return fmt::format("{}:{}", part.word, tensor_name(path, name));
}

Value read_json_entry(const ZipReader& zip, const char* name, std::shared_ptr<const void> owner,
                      MemoryBudget& budget, const std::string& place) {
  const ZipReader::Entry* entry = zip.find(name);
  if (!entry) throw Error(place, fmt::format("the .mz holds no '{}'", name));
  const ZipReader::Content content = zip.content(*entry, std::move(owner), budget);
  const std::string_view text(reinterpret_cast<const char*>(content.bytes.data()),
                              content.bytes.size());
  const std::string inner = fmt::format("{}: {}", place, name);
  charge_json(text, budget, inner);
  return parse_json(std::string(text), inner);
}

// Bytes that stand for packed numbers, as such tensors.
void take_packed(TensorTable& weights, const Value& packed, const std::string& place) {
  if (!packed.is_dict()) throw Error(place, "is no table");
  for (auto& [name, tensor] : weights) {
    const Value& text = packed[name];
    if (text.is_null()) continue;
    const std::string own = fmt::format("{}: {}", place, printable(name));
    const PackedTypePtr type = packed_type_from(text, own);
    const Shape shape = text["shape"].as_int_list(own);
    const bool matrix = shape.size() == 2 && shape[0] > 0 && shape[1] > 0 &&
                        shape[1] % type->values == 0 && shape[0] <= tensor.numel() &&
                        shape[1] <= 64 * tensor.numel();
    if (!matrix || tensor.dtype() != DType::u8 ||
        tensor.numel() != shape[0] * (shape[1] / type->values) * type->bytes)
      throw Error(own,
                  fmt::format("{} bytes do not hold shape {}", tensor.numel(), shape_text(shape)));
    const auto kept = std::make_shared<const Tensor>(tensor);
    tensor = Tensor(shape, type, kept->raw(), kept);
  }
}

// The graph's description says which tensors there are; each is replaced by the one in the file.
void put_weights(Graph& graph, TensorTable& weights, const std::string& place) {
  std::map<std::string_view, Tensor*> by_name;
  for (auto& [name, tensor] : weights) by_name[name] = &tensor;
  for (auto& [path, module] : graph.modules())
    for (const Part& part : parts)
      for (auto& [name, tensor] : module.*part.table) {
        const std::string wanted = stored_name(part, path, name);
        const auto found = by_name.find(wanted);
        if (found == by_name.end())
          throw Error(place, fmt::format("the tensor '{}' is missing", printable(wanted)));
        const Tensor& given = *found->second;
        if (given.shape() != tensor.shape() || given.dtype() != tensor.dtype())
          throw Error(place, fmt::format("the tensor '{}' is {} {}, but the graph says {} {}",
                                         printable(wanted), dtype_name(given.dtype()),
                                         shape_text(given.shape()), dtype_name(tensor.dtype()),
                                         shape_text(tensor.shape())));
        tensor = given;
        by_name.erase(found);
      }
  if (!by_name.empty())
    throw Error(place, fmt::format("the tensor '{}' belongs to no layer of the graph",
                                   printable(by_name.begin()->first)));
}

// graph_from_value makes zeros of the shapes the description claims: those must be in the file.
void check_claims(const Value& description, const TensorTable& weights, const std::string& place) {
  std::map<std::string_view, const Tensor*> by_name;
  for (const auto& [name, tensor] : weights) by_name[name] = &tensor;
  const Value& modules = description["modules"];
  if (!modules.is_dict()) throw Error(place, "the graph has no table of modules");
  constexpr std::array<const char*, 3> tables = {"parameters", "buffers", "masks"};
  for (const auto& [path, module] : modules.as_dict())
    for (size_t i = 0; i < parts.size(); ++i) {
      const Value& table = module[tables[i]];
      if (!table.is_dict()) continue;
      for (const auto& [name, entry] : table.as_dict()) {
        const std::string wanted = stored_name(parts[i], path, name);
        const auto found = by_name.find(wanted);
        if (found == by_name.end())
          throw Error(place, fmt::format("the tensor '{}' is missing", printable(wanted)));
        const Shape shape = entry["shape"].as_int_list("shape");
        if (shape != found->second->shape())
          throw Error(place,
                      fmt::format("the tensor '{}' is {}, but the graph says {}", printable(wanted),
                                  shape_text(found->second->shape()), shape_text(shape)));
      }
    }
}

}  // namespace

bool is_mz(std::span<const std::byte> bytes) {
  // The header is written first; a file that was packed again is found by its directory.
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr size_t name_at = 30;
  if (text.size() > name_at && starts_with(text.substr(name_at), header_name)) return true;
  constexpr size_t directory_reach = 4096;
  return text.substr(text.size() - std::min(text.size(), directory_reach)).find(header_name) !=
         std::string_view::npos;
}

Checkpoint read_mz(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                   const std::string& place, const ReadLimits& limits) {
  MemoryBudget budget(limits, bytes.size());
  const ZipReader zip(bytes, place, budget, limits);
  const Value header = read_json_entry(zip, header_name, owner, budget, place);
  if (!header["format"].is_string() || header["format"].as_string() != format_name)
    throw Error(place, "is not an .mz file of MASE");
  const int64_t version = header["version"].as_int("version");
  if (version < 1 || version > newest_version)
    throw Error(place,
                fmt::format("has version {}; this program reads up to {}", version, newest_version),
                "use a newer program");
  const ZipReader::Entry* stored = zip.find(weights_name);
  if (!stored) throw Error(place, fmt::format("the .mz holds no '{}'", weights_name));
  const ZipReader::Content content = zip.content(*stored, owner, budget);
  TensorTable weights =
      parse_safetensors(content.bytes, content.owner, fmt::format("{}: {}", place, weights_name),
                        nullptr, budget, limits);
  if (zip.find(packed_name))
    take_packed(weights, read_json_entry(zip, packed_name, owner, budget, place),
                fmt::format("{}: {}", place, packed_name));
  const Value description = read_json_entry(zip, graph_name, owner, budget, place);
  const std::string inner = fmt::format("{}: {}", place, graph_name);
  check_claims(description, weights, inner);
  for (const auto& [name, tensor] : weights) budget.charge(tensor.stored_bytes() + 64, inner);
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::mz;
  try {
    checkpoint.graph = graph_from_value(description);
  } catch (const Error& error) {
    if (starts_with(error.what(), place)) throw;
    std::vector<std::string> lines = split(error.what(), '\n');
    for (std::string& line : lines) line = printable(line);  // names in a graph are anybody's
    throw Error(inner, join(lines, "\n"));
  }
  put_weights(*checkpoint.graph, weights, place);
  checkpoint.tensors = state_dict(*checkpoint.graph);
  if (zip.find(extra_name))
    checkpoint.contents = read_json_entry(zip, extra_name, owner, budget, place);
  return checkpoint;
}

void save_mz(const std::string& path, const Graph& graph, const Value& extra) {
  TensorTable weights;
  Dict packed;
  for (const auto& [module_path, module] : graph.modules())
    for (const Part& part : parts)
      for (const auto& [name, tensor] : module.*part.table) {
        const std::string stored = stored_name(part, module_path, name);
        if (!tensor.packed()) {
          weights.emplace_back(stored, tensor);
          continue;
        }
        Value text = packed_type_text(*tensor.packed());
        List shape;
        for (const int64_t size : tensor.shape()) shape.emplace_back(size);
        text["shape"] = std::move(shape);
        packed.set(stored, std::move(text));
        weights.emplace_back(stored,
                             Tensor({static_cast<int64_t>(tensor.stored_bytes())}, DType::u8,
                                    tensor.blocks().data(), tensor.blocks_owner()));
      }
  std::vector<std::string> headers;
  std::vector<std::span<const std::byte>> pieces;
  // The first two pieces are the header's length and text, which live only during the call.
  write_safetensors(weights, {}, path, [&](const void* data, size_t size) {
    if (headers.empty()) headers.reserve(2);
    if (headers.size() < 2) {
      headers.emplace_back(static_cast<const char*>(data), size);
      pieces.push_back(std::as_bytes(std::span(headers.back())));
    } else {
      pieces.emplace_back(static_cast<const std::byte*>(data), size);
    }
  });
  write_file_atomically(path, [&](int fd) {
    ZipWriter zip([&](const void* data, size_t size) { write_all(fd, data, size, path); });
    zip.add(header_name,
            to_json(Value(Dict{{"format", format_name},
                               {"version", packed.empty() ? plain_version : newest_version}}),
                    2) +
                "\n");
    zip.add(graph_name, to_json(graph_to_value(graph), 1) + "\n");
    if (!packed.empty()) zip.add(packed_name, to_json(Value(packed), 1) + "\n");
    zip.add(weights_name, pieces);
    if (!extra.is_null()) zip.add(extra_name, to_json(extra, 1) + "\n");
    zip.finish();
  });
}

}  // namespace mase
