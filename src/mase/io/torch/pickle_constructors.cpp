// SPDX-License-Identifier: Apache-2.0
// The fixed list of what a pickle's calls may make. A name on the list has a few lines here that
// build a plain value; a class that is not on it becomes an opaque leaf; a function that is not on
// it is refused. Names are only ever compared: there is nothing here that could call them.
#include <cstring>
#include <map>

#include "mase/base/text.h"
#include "mase/io/torch/pickle_machine.h"

namespace mase::pickle {
namespace {

constexpr size_t most_dimensions = 64;

using Arguments = std::vector<PickleId>;
using Constructor = PickleId (*)(Machine& machine, const Arguments& args);

[[noreturn]] void wrong_arguments(Machine& machine, const char* what) {
  machine.fail(fmt::format("the arguments of {} are not what PyTorch writes", what));
}

const std::map<std::string_view, Constructor>& constructors();

// --- Python's containers ---------------------------------------------------------------------

PickleId copy_as(Machine& machine, const Arguments& args, Kind kind) {
  const PickleId made = machine.make(kind);
  if (args.empty()) return made;
  const PickleNode& from = machine.node(args[0]);
  if (from.kind != Kind::list && from.kind != Kind::tuple && from.kind != Kind::set)
    wrong_arguments(machine, "a container");
  machine.add_items(made, from.items);
  return made;
}

PickleId make_set(Machine& machine, const Arguments& args) {
  return copy_as(machine, args, Kind::set);
}
PickleId make_list(Machine& machine, const Arguments& args) {
  return copy_as(machine, args, Kind::list);
}

PickleId make_dict(Machine& machine, const Arguments& args) {
  const PickleId made = machine.make(Kind::dict);
  if (args.empty() || machine.node(args[0]).kind == Kind::none) return made;
  const PickleNode& from = machine.node(args[0]);
  if (from.kind == Kind::dict) {
    machine.add_items(made, from.items);
    return made;
  }
  if (from.kind != Kind::list) wrong_arguments(machine, "a dict");
  for (const PickleId pair : from.items) {  // [[key, value], ...]
    const PickleNode& item = machine.node(pair);
    const bool is_pair = (item.kind == Kind::list || item.kind == Kind::tuple) &&
                         item.items.size() == 2 && machine.node(item.items[0]).kind == Kind::text;
    if (!is_pair) wrong_arguments(machine, "a dict");
    machine.add_items(made, item.items);
  }
  return made;
}

// defaultdict's and a plain class's first argument is no content.
PickleId make_empty_dict(Machine& machine, const Arguments&) { return machine.make(Kind::dict); }

PickleId make_bytes(Machine& machine, const Arguments& args) {
  if (args.empty()) return machine.make(Kind::bytes);
  const PickleNode& from = machine.node(args[0]);
  if (from.kind == Kind::bytes) return machine.make(Kind::bytes, from.text);
  if (from.kind != Kind::text || args.size() != 2 || machine.node(args[1]).kind != Kind::text ||
      (machine.node(args[1]).text != "latin1" && machine.node(args[1]).text != "latin-1"))
    wrong_arguments(machine, "bytes");
  std::string decoded;  // protocol 2 has no bytes: they travel as text of the first 256 characters
  machine.charge(from.text.size());
  decoded.reserve(from.text.size());
  for (size_t i = 0; i < from.text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(from.text[i]);
    if (lead < 0x80) {
      decoded += static_cast<char>(lead);
    } else {
      const bool pair = (lead == 0xC2 || lead == 0xC3) && i + 1 < from.text.size() &&
                        (static_cast<unsigned char>(from.text[i + 1]) & 0xC0) == 0x80;
      if (!pair) wrong_arguments(machine, "bytes");
      decoded += static_cast<char>((lead & 0x03) << 6 | (from.text[++i] & 0x3F));
    }
  }
  return machine.make(Kind::bytes, machine.keep(std::move(decoded)));
}

PickleId make_path(Machine& machine, const Arguments& args) {
  std::string path;
  for (const PickleId part : args) {
    if (machine.node(part).kind != Kind::text) wrong_arguments(machine, "a path");
    if (!path.empty() && path.back() != '/') path += '/';
    machine.charge(machine.node(part).text.size());
    path += machine.node(part).text;
  }
  return machine.make(Kind::text, machine.keep(std::move(path)));
}

// --- PyTorch ------------------------------------------------------------------------------------

const std::map<std::string_view, DType> storage_dtypes = {
    {"torch.DoubleStorage", DType::f64}, {"torch.FloatStorage", DType::f32},
    {"torch.HalfStorage", DType::f16},   {"torch.BFloat16Storage", DType::bf16},
    {"torch.LongStorage", DType::i64},   {"torch.IntStorage", DType::i32},
    {"torch.ShortStorage", DType::i16},  {"torch.CharStorage", DType::i8},
    {"torch.ByteStorage", DType::u8},    {"torch.BoolStorage", DType::boolean},
    {"torch.UInt16Storage", DType::u16}, {"torch.UInt32Storage", DType::u32},
    {"torch.UInt64Storage", DType::u64},
};

int64_t integer_of(Machine& machine, PickleId id, const char* what) {
  if (machine.node(id).kind != Kind::integer) wrong_arguments(machine, what);
  return machine.node(id).integer;
}

std::vector<int64_t> integers_of(Machine& machine, PickleId id, const char* what) {
  const PickleNode& node = machine.node(id);
  if (node.kind != Kind::tuple && node.kind != Kind::list) wrong_arguments(machine, what);
  if (node.items.size() > most_dimensions) machine.fail("a tensor has too many dimensions");
  std::vector<int64_t> numbers;
  for (const PickleId item : node.items) numbers.push_back(integer_of(machine, item, what));
  return numbers;
}

PickleId make_tensor(Machine& machine, const Arguments& args, std::optional<DType> dtype) {
  const PickleNode& storage = machine.node(args[0]);
  if (storage.kind == Kind::opaque) return machine.make(Kind::opaque, storage.text);
  if (storage.kind != Kind::storage) wrong_arguments(machine, "a tensor");
  const PickleStorage& kept = machine.pickle().storages[storage.index];
  PickleTensor tensor;
  tensor.storage = storage.index;
  if (dtype)
    tensor.dtype = *dtype;
  else if (kept.dtype)
    tensor.dtype = *kept.dtype;
  else
    machine.fail("a tensor has no dtype");
  const int64_t offset = integer_of(machine, args[1], "a tensor");
  if (offset < 0) machine.fail("a tensor begins before its storage");
  tensor.offset = static_cast<uint64_t>(offset);
  tensor.shape = integers_of(machine, args[2], "a tensor");
  tensor.strides = integers_of(machine, args[3], "a tensor");
  tensor.at = machine.offset();
  if (tensor.shape.size() != tensor.strides.size())
    machine.fail("a tensor has more strides than dimensions, or fewer");
  machine.charge(2 * sizeof(PickleTensor) + 32 * tensor.shape.size());
  PickleNode made;
  made.kind = Kind::tensor;
  made.index = static_cast<uint32_t>(machine.pickle().tensors.size());
  machine.pickle().tensors.push_back(std::move(tensor));
  return machine.make(std::move(made));
}

PickleId rebuild_tensor(Machine& machine, const Arguments& args) {
  if (args.size() < 4 || args.size() > 7) wrong_arguments(machine, "a tensor");
  return make_tensor(machine, args, {});
}

PickleId rebuild_tensor_v3(Machine& machine, const Arguments& args) {
  if (args.size() < 7 || args.size() > 8 || machine.node(args[6]).kind != Kind::global)
    wrong_arguments(machine, "a tensor");
  const std::string_view name = machine.node(args[6]).text;
  const auto dtype =
      starts_with(name, "torch.") ? dtype_from_name(std::string(name.substr(6))) : std::nullopt;
  if (!dtype) return machine.make(Kind::opaque, name);
  return make_tensor(machine, args, dtype);
}

PickleId rebuild_parameter(Machine& machine, const Arguments& args) {
  if (args.empty()) wrong_arguments(machine, "a parameter");
  const Kind kind = machine.node(args[0]).kind;
  if (kind != Kind::tensor && kind != Kind::opaque) wrong_arguments(machine, "a parameter");
  return args[0];
}

PickleId rebuild_from_type(Machine& machine, const Arguments& args) {
  if (args.size() != 4) wrong_arguments(machine, "a tensor");
  // One inside the other would go as deep as the file is long.
  const std::string_view name = machine.node(args[0]).text;
  const auto known = constructors().find(name);
  if (known != constructors().end() && known->second == rebuild_from_type)
    wrong_arguments(machine, "a tensor");
  return call(machine, args[0], args[2]);
}

PickleId make_size(Machine& machine, const Arguments& args) {
  return args.empty() ? machine.make(Kind::tuple) : copy_as(machine, args, Kind::tuple);
}

PickleId make_device(Machine& machine, const Arguments& args) {
  if (args.empty() || machine.node(args[0]).kind != Kind::text)
    wrong_arguments(machine, "a device");
  std::string name(machine.node(args[0]).text.substr(0, 100));
  if (args.size() > 1) name += fmt::format(":{}", integer_of(machine, args[1], "a device"));
  return machine.make(Kind::symbol, machine.keep(std::move(name)));
}

// --- NumPy --------------------------------------------------------------------------------------

std::optional<DType> numpy_dtype(const PickleNode& node) {
  static const std::map<std::string_view, DType> codes = {
      {"f8", DType::f64}, {"f4", DType::f32}, {"f2", DType::f16}, {"i8", DType::i64},
      {"i4", DType::i32}, {"i2", DType::i16}, {"i1", DType::i8},  {"u8", DType::u64},
      {"u4", DType::u32}, {"u2", DType::u16}, {"u1", DType::u8},  {"b1", DType::boolean}};
  const auto code = codes.find(node.text);
  if (node.kind != Kind::dtype || node.integer == 0 || code == codes.end()) return {};
  return code->second;
}

PickleId make_dtype(Machine& machine, const Arguments& args) {
  if (args.empty() || machine.node(args[0]).kind != Kind::text) wrong_arguments(machine, "a dtype");
  const PickleId made = machine.make(Kind::dtype, machine.node(args[0]).text);
  machine.node(made).integer = 1;
  return made;
}

PickleId make_scalar(Machine& machine, const Arguments& args) {
  if (args.empty()) wrong_arguments(machine, "a NumPy scalar");
  const auto dtype = numpy_dtype(machine.node(args[0]));
  if (!dtype || args.size() != 2 || machine.node(args[1]).kind != Kind::bytes)
    return machine.make(Kind::opaque, "numpy.generic");
  const std::string_view bytes = machine.node(args[1]).text;
  if (bytes.size() != dtype_size(*dtype)) wrong_arguments(machine, "a NumPy scalar");
  if (*dtype == DType::i64) {
    int64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return machine.make_integer(value);
  }
  Tensor scalar({}, *dtype);
  std::memcpy(scalar.mutable_raw(), bytes.data(), bytes.size());
  const double value = scalar.item();
  const bool floating = *dtype == DType::f64 || *dtype == DType::f32 || *dtype == DType::f16;
  if (floating || value >= 9.2e18) return machine.make_number(value);
  return machine.make_integer(static_cast<int64_t>(value));
}

PickleId make_array(Machine& machine, const Arguments&) { return machine.make(Kind::array); }

// --- The list -----------------------------------------------------------------------------------

const std::map<std::string_view, Constructor>& constructors() {
  static const std::map<std::string_view, Constructor> list = {
      {"collections.OrderedDict", make_dict},
      {"collections.defaultdict", make_empty_dict},
      {"collections.Counter", make_dict},
      {"collections.deque", make_list},
      {"argparse.Namespace", make_empty_dict},
      {"types.SimpleNamespace", make_empty_dict},
      {"pytorch_lightning.utilities.parsing.AttributeDict", make_dict},
      {"lightning.pytorch.utilities.parsing.AttributeDict", make_dict},
      {"lightning_fabric.utilities.data.AttributeDict", make_dict},
      {"lightning.fabric.utilities.data.AttributeDict", make_dict},
      {"builtins.set", make_set},
      {"builtins.frozenset", make_set},
      {"builtins.bytearray", make_bytes},
      {"builtins.bytes", make_bytes},
      {"__builtin__.set", make_set},
      {"__builtin__.frozenset", make_set},
      {"__builtin__.bytearray", make_bytes},
      {"__builtin__.bytes", make_bytes},
      {"_codecs.encode", make_bytes},
      {"pathlib.PosixPath", make_path},
      {"pathlib.PurePosixPath", make_path},
      {"pathlib.WindowsPath", make_path},
      {"torch._utils._rebuild_tensor", rebuild_tensor},
      {"torch._utils._rebuild_tensor_v2", rebuild_tensor},
      {"torch._utils._rebuild_tensor_v3", rebuild_tensor_v3},
      {"torch._utils._rebuild_parameter", rebuild_parameter},
      {"torch._utils._rebuild_parameter_with_state", rebuild_parameter},
      {"torch._tensor._rebuild_from_type_v2", rebuild_from_type},
      {"torch.Size", make_size},
      {"torch.device", make_device},
      {"numpy.dtype", make_dtype},
      {"numpy.core.multiarray.scalar", make_scalar},
      {"numpy._core.multiarray.scalar", make_scalar},
      {"numpy.core.multiarray._reconstruct", make_array},
      {"numpy._core.multiarray._reconstruct", make_array},
  };
  return list;
}

// Functions and small-letter classes that checkpoints carry and that mean nothing to us.
bool known_leaf(std::string_view name) {
  static constexpr std::string_view leaves[] = {
      "datetime.datetime",
      "datetime.date",
      "datetime.timedelta",
      "functools.partial",
      "copyreg._reconstructor",
      "copy_reg._reconstructor",
      "builtins.object",
      "builtins.slice",
      "builtins.range",
      "builtins.complex",
      "torch._utils._rebuild_sparse_tensor",
      "torch._utils._rebuild_qtensor",
      "torch.serialization._get_layout",
      "numpy.random._pickle.__randomstate_ctor",
      "numpy.random._pickle.__generator_ctor",
      "numpy.random._pickle.__bit_generator_ctor",
  };
  for (const std::string_view leaf : leaves)
    if (name == leaf) return true;
  return false;
}

// A class by Python's convention: its own name begins with a capital. A function is something a
// real unpickler would run at once, so a file that asks for one is refused; so is a class of a
// module that exists to run things. This only decides what the user is told: nothing runs here.
bool is_function(std::string_view name) {
  static constexpr std::string_view modules[] = {
      "os.",  "posix.", "nt.",  "subprocess.", "builtins.", "__builtin__.",
      "sys.", "runpy.", "pty.", "ctypes.",     "code.",     "importlib."};
  for (const std::string_view module : modules)
    if (starts_with(name, module)) return true;
  const size_t dot = name.rfind('.');
  size_t first = dot == std::string_view::npos ? 0 : dot + 1;
  while (first < name.size() && name[first] == '_') ++first;
  return first >= name.size() || name[first] < 'A' || name[first] > 'Z';
}

}  // namespace

PickleId call(Machine& machine, PickleId callable, PickleId args) {
  if (machine.node(callable).kind != Kind::global)
    machine.fail("the pickle calls something that is not a class",
                 "the file is damaged or hostile");
  const std::string_view name = machine.node(callable).text;
  const Arguments& given = machine.arguments(args);
  if (const auto known = constructors().find(name); known != constructors().end())
    return known->second(machine, given);
  if (!known_leaf(name) && is_function(name))
    machine.fail(fmt::format("the file asks to run the function '{}', which no checkpoint needs",
                             printable(name)),
                 "nothing was run; do not open this file with torch.load");
  return machine.make(Kind::opaque, name);
}

void build(Machine& machine, PickleId object, PickleId state) {
  PickleNode& node = machine.node(object);
  const PickleNode& given = machine.node(state);
  switch (node.kind) {
    case Kind::opaque:
    case Kind::tensor:
      return;  // attributes of objects we do not make, or that tensors do not have here
    case Kind::dict:
      // A namespace's attributes are its content; an ordered dict's are not (PyTorch keeps version
      // numbers there).
      if (given.kind == Kind::dict && node.items.empty()) {
        const bool versions = !given.items.empty() &&
                              machine.node(given.items[0]).kind == Kind::text &&
                              machine.node(given.items[0]).text == "_metadata";
        if (!versions && object != state) machine.add_items(object, given.items);
      }
      return;
    case Kind::dtype: {
      if (given.kind == Kind::tuple && given.items.size() > 1 &&
          machine.node(given.items[1]).kind == Kind::text &&
          machine.node(given.items[1]).text == ">")
        node.integer = 0;
      return;
    }
    case Kind::array: {
      node.kind = Kind::opaque;
      node.text = "numpy.ndarray";
      if (given.kind != Kind::tuple || given.items.size() != 5) return;
      const auto dtype = numpy_dtype(machine.node(given.items[2]));
      const PickleNode& fortran = machine.node(given.items[3]);
      const PickleNode& bytes = machine.node(given.items[4]);
      if (!dtype || fortran.kind != Kind::boolean ||
          (bytes.kind != Kind::bytes && bytes.kind != Kind::text))
        return;  // Python 2 has its bytes as texts
      PickleStorage storage;
      storage.dtype = dtype;
      storage.content = bytes.text;
      storage.at = machine.offset();
      storage.elements = storage.view_elements = bytes.text.size() / dtype_size(*dtype);
      PickleTensor tensor;
      tensor.storage = static_cast<uint32_t>(machine.pickle().storages.size());
      tensor.dtype = *dtype;
      tensor.at = machine.offset();
      tensor.shape = integers_of(machine, given.items[1], "a NumPy array");
      tensor.strides.resize(tensor.shape.size());
      int64_t step = 1;
      for (size_t i = 0; i < tensor.shape.size(); ++i) {
        const size_t axis = fortran.integer ? i : tensor.shape.size() - 1 - i;
        tensor.strides[axis] = step;
        if (tensor.shape[axis] < 0 || __builtin_mul_overflow(step, tensor.shape[axis], &step))
          machine.fail("a NumPy array is too large");
      }
      machine.charge(2 * (sizeof(PickleTensor) + sizeof(PickleStorage)) + 32 * tensor.shape.size());
      node.kind = Kind::tensor;
      node.index = static_cast<uint32_t>(machine.pickle().tensors.size());
      machine.pickle().storages.push_back(storage);
      machine.pickle().tensors.push_back(std::move(tensor));
      return;
    }
    default:
      machine.fail("the pickle gives attributes to a plain value");
  }
}

PickleId persistent(Machine& machine, PickleId id) {
  const char* what = "a storage";
  const Arguments& args = machine.arguments(id);
  if (args.size() < 2 || machine.node(args[0]).kind != Kind::text) wrong_arguments(machine, what);
  if (machine.node(args[0]).text == "module") {  // old files carry the source of classes
    if (machine.node(args[1]).kind != Kind::global) wrong_arguments(machine, what);
    return args[1];
  }
  if (machine.node(args[0]).text != "storage" || args.size() < 5 || args.size() > 6 ||
      machine.node(args[1]).kind != Kind::global || machine.node(args[2]).kind != Kind::text)
    wrong_arguments(machine, what);
  const std::string_view type = machine.node(args[1]).text;
  PickleStorage storage;
  const auto dtype = storage_dtypes.find(type);
  if (dtype != storage_dtypes.end())
    storage.dtype = dtype->second;
  else if (type != "torch.storage.UntypedStorage" && type != "torch.UntypedStorage")
    return machine.make(Kind::opaque, type);
  storage.key = machine.node(args[2]).text;
  storage.at = machine.offset();
  const int64_t elements = integer_of(machine, args[4], what);
  if (elements < 0) machine.fail("a storage has a negative size");
  storage.elements = storage.view_elements = static_cast<uint64_t>(elements);
  if (args.size() == 6 && machine.node(args[5]).kind != Kind::none) {
    const Arguments& view = machine.arguments(args[5]);
    if (view.size() != 3) wrong_arguments(machine, what);
    const int64_t offset = integer_of(machine, view[1], what);
    const int64_t count = integer_of(machine, view[2], what);
    if (offset < 0 || count < 0 || offset > elements || count > elements - offset)
      machine.fail("a storage is not inside the one it is a part of");
    storage.view_offset = static_cast<uint64_t>(offset);
    storage.view_elements = static_cast<uint64_t>(count);
  }
  machine.charge(2 * sizeof(PickleStorage));
  PickleNode made;
  made.kind = Kind::storage;
  made.index = static_cast<uint32_t>(machine.pickle().storages.size());
  machine.pickle().storages.push_back(storage);
  return machine.make(std::move(made));
}

}  // namespace mase::pickle
