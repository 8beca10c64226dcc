// SPDX-License-Identifier: Apache-2.0
#include "mase/io/numpy/numpy_tensors.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "mase/base/cut_files.h"
#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/io/networks/tensor_view.h"
#include "mase/io/numpy/npy.h"
#include "mase/io/zip/zip_reader.h"

namespace mase {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
// Arrays shrink more than checkpoints do: what they may grow to, as a multiple of the file.
constexpr size_t most_growth = 20;
constexpr size_t margin = size_t{40} << 20;

bool begins_as_npy(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return starts_with(text, magic);
}

std::optional<DType> dtype_of(const NpyField& field) {
  const char* kind = field.kind == 'f'   ? "float"
                     : field.kind == 'i' ? "int"
                     : field.kind == 'u' ? "uint"
                                         : "";
  if (field.kind == 'b') return DType::boolean;
  return dtype_from_name(fmt::format("{}{}", kind, 8 * field.size));
}

// Numbers of the other byte order, turned.
std::shared_ptr<const std::vector<std::byte>> turned(std::span<const std::byte> bytes, size_t size,
                                                     MemoryBudget& budget,
                                                     const std::string& place) {
  budget.charge(bytes.size(), place);
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  for (size_t i = 0; i + size <= copy->size(); i += size)
    std::reverse(copy->begin() + static_cast<std::ptrdiff_t>(i),
                 copy->begin() + static_cast<std::ptrdiff_t>(i + size));
  return copy;
}

void add_array(const std::string& name, std::span<const std::byte> bytes,
               const std::shared_ptr<const void>& owner, const std::string& place,
               MemoryBudget& budget, TensorTable& tensors, Dict* skipped) {
  const NpyHeader header =
      parse_npy_header(bytes.first(std::min(bytes.size(), largest_npy_header)), place);
  if (header.data_offset > bytes.size() || header.data_bytes() != bytes.size() - header.data_offset)
    throw Error(
        place,
        fmt::format("the header promises {} bytes of numbers, the file has {}", header.data_bytes(),
                    bytes.size() - std::min(bytes.size(), header.data_offset)),
        "the file is cut short or damaged");
  const NpyField& field = header.fields[0];
  const bool records = header.fields.size() > 1 || !field.name.empty();
  const auto dtype = dtype_of(field);
  if (records || !field.problem.empty() || !dtype) {
    if (skipped) skipped->set(name, records ? "an array of records" : field.problem);
    return;
  }
  std::span<const std::byte> numbers = bytes.subspan(header.data_offset);
  std::shared_ptr<const void> keeper = owner;
  if (field.swapped) {
    const auto copy = turned(numbers, field.size, budget, place);
    numbers = *copy;
    keeper = copy;
  }
  std::vector<int64_t> strides(header.shape.size(), 1);
  int64_t step = 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    const size_t axis = header.fortran_order ? i : strides.size() - 1 - i;
    strides[axis] = step;
    step *= std::max<int64_t>(1, header.shape[axis]);
  }
  tensors.emplace_back(
      name, view_or_gather(header.shape, strides, *dtype, numbers, keeper, budget, place));
}

}  // namespace

bool looks_like_npy(const std::string& path) {
  return begins_as_npy(MappedFile::open(path)->bytes());
}

bool looks_like_npz(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!looks_like_zip(file->bytes())) return false;
  constexpr size_t name_at = 30, longest_name = 1024;
  const std::string_view head(reinterpret_cast<const char*>(file->bytes().data()),
                              std::min(file->bytes().size(), name_at + longest_name));
  if (head.size() < name_at) return false;
  const size_t name_size =
      static_cast<unsigned char>(head[26]) + 256u * static_cast<unsigned char>(head[27]);
  return ends_with(head.substr(name_at, name_size), ".npy");
}

std::vector<std::string> npz_names(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  ReadLimits limits;
  limits.inflate_ratio = std::max<size_t>(limits.inflate_ratio, 1100);
  MemoryBudget budget(limits, file->bytes().size());
  const ZipReader zip(file->bytes(), path, budget, limits);
  std::vector<std::string> names;
  for (const ZipReader::Entry& entry : zip.entries())
    if (ends_with(entry.name, ".npy"))
      names.emplace_back(entry.name.substr(0, entry.name.size() - 4));
  return names;
}

namespace {

TensorTable read_all(const std::string& path, Dict* skipped, const ReadLimits& limits) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  ReadLimits used = limits;
  if (used.memory == 0) used.memory = file->bytes().size() * most_growth + margin;
  used.inflate_ratio = std::max<size_t>(used.inflate_ratio, 1100);  // all that deflate can
  MemoryBudget budget(used, file->bytes().size());
  TensorTable tensors;
  if (begins_as_npy(file->bytes())) {
    add_array("array", file->bytes(), file, path, budget, tensors, skipped);
    return tensors;
  }
  const ZipReader zip(file->bytes(), path, budget, used);
  for (const ZipReader::Entry& entry : zip.entries()) {
    if (!ends_with(entry.name, ".npy")) continue;
    const std::string name(entry.name.substr(0, entry.name.size() - 4));
    const ZipReader::Content content = zip.content(entry, file, budget);
    add_array(name, content.bytes, content.owner,
              fmt::format("{}: {}", path, printable(entry.name)), budget, tensors, skipped);
  }
  return tensors;
}

}  // namespace

TensorTable read_numpy_tensors(const std::string& path, Dict* skipped, const ReadLimits& limits) {
  TensorTable tensors = read_all(path, skipped, limits);
  throw_if_cut();
  return tensors;
}

}  // namespace mase
