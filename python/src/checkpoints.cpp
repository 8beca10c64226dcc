// SPDX-License-Identifier: Apache-2.0
// Checkpoints of every kind, read without running anything in them. Tensors of files that were read
// are views of that memory; those of mapped ones are read from the file when they are asked for.
#include "mase/io/networks/checkpoint.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "mase/base/file.h"
#include "mase/run/network.h"
#include "module.h"

namespace mase::python {
namespace {

std::optional<CheckpointType> type_named(const std::optional<std::string>& name) {
  if (!name) return {};
  const auto type = checkpoint_type_from_name(*name);
  if (!type)
    throw Error("load_type", fmt::format("unknown type '{}'", printable(*name)),
                suggestion(*name, checkpoint_type_names()));
  return type;
}

struct FileTensor {
  Tensor mapped;

  nb::any read() const {
    Tensor own(mapped.shape(), mapped.dtype());
    const bool there = read_if_mapped(own.mutable_raw(), mapped.raw(), mapped.bytes());
    MASE_CHECK(there, "the map is gone");
    return shared_array(own);
  }
};

nb::dict arrays_of(const TensorTable& table) {
  nb::dict arrays;
  for (const auto& [name, tensor] : table)
    arrays[nb::str(name.data(), name.size())] = mapped_file_at(tensor.raw())
                                                    ? nb::cast(FileTensor{tensor})
                                                    : nb::object(shared_array(tensor));
  return arrays;
}

nb::dict read(const std::string& path, const std::optional<std::string>& type, bool look) {
  const std::optional<CheckpointType> wanted = type_named(type);
  Checkpoint checkpoint;
  {
    nb::gil_scoped_release unlocked;
    checkpoint = look ? inspect_checkpoint(path) : load_checkpoint(path, wanted);
  }
  nb::dict result;
  result["type"] = checkpoint_type_name(checkpoint.type);
  result["tensors"] = arrays_of(checkpoint.tensors);
  result["others"] = arrays_of(checkpoint.others);
  result["contents"] = from_value(checkpoint.contents);
  result["prefix"] = checkpoint.prefix;
  result["graph"] = checkpoint.graph ? nb::cast(*checkpoint.graph) : nb::none();
  return result;
}

TensorTable table_of(const nb::dict& arrays) {
  TensorTable table;
  for (const auto& [key, object] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    table.emplace_back(name, to_tensor(object, name));
  }
  return table;
}

}  // namespace

void bind_checkpoints(nb::module_& module) {
  nb::class_<FileTensor>(module, "FileTensor", "A tensor of a mapped file.")
      .def("read", &FileTensor::read)
      .def_prop_ro("size", [](const FileTensor& tensor) { return tensor.mapped.numel(); });
  module.def("read_checkpoint", &read, nb::arg("path"), nb::arg("type") = nb::none(),
             nb::arg("look") = false);
  module.def("save_state_dict", [](const std::string& path, const nb::dict& arrays) {
    save_state_dict(path, table_of(arrays));
  });
  module.def("save_lightning", [](const std::string& path, const nb::dict& arrays) {
    save_lightning(path, table_of(arrays));
  });
  module.def("save_safetensors", [](const std::string& path, const nb::dict& arrays) {
    save_safetensors(path, table_of(arrays));
  });
}

}  // namespace mase::python
