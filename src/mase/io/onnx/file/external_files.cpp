// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "mase/base/memory.h"
#include "mase/base/text.h"
#include "mase/io/onnx/file/tensor.h"

namespace mase::onnx {
namespace {

[[noreturn]] void refuse(const std::string& place, const std::string& location,
                         const std::string& why, const std::string& remedy = "") {
  throw Error(place, fmt::format("external data '{}': {}", printable(location), why), remedy);
}

// Names of folders, the file's last. Only plain names: whatever could lead out of the folder is
// refused before anything is opened.
std::vector<std::string> components_of(const std::string& location, const std::string& place) {
  constexpr size_t longest = 4096;
  if (location.empty()) refuse(place, location, "no file is named");
  if (location.size() > longest || location.find('\0') != std::string::npos)
    refuse(place, location, "is no path");
  if (location.front() == '/') refuse(place, location, "is not beneath the model's folder");
  std::vector<std::string> parts;
  for (const std::string& part : split(location, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") refuse(place, location, "is not beneath the model's folder");
    parts.push_back(part);
  }
  if (parts.empty()) refuse(place, location, "no file is named");
  return parts;
}

}  // namespace

// Allocating succeeds long after there is nothing left to fill with a sparse file's zeros: what the
// system does then is to end a program.
void ExternalFiles::check_memory(size_t size, const std::string& place) const {
  constexpr size_t small = size_t{16} << 20;
  if (size < small) return;
  const auto available = available_memory();
  if (!available || size <= *available) return;
  throw Error(place,
              fmt::format("its values take {}, and {} of memory are free",
                          human_bytes(static_cast<double>(size)),
                          human_bytes(static_cast<double>(*available))),
              "read the model on a machine with more memory, or split the tensor");
}

const ExternalFiles::File& ExternalFiles::open(const std::string& location, MemoryBudget& budget,
                                               const std::string& place) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  if (folder_.empty()) refuse(place, location, "the model has no folder");
  constexpr size_t most_files = 1000;
  if (files_.size() == most_files) refuse(place, location, "the model names too many files");
  const std::vector<std::string> parts = components_of(location, place);
  int fd = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; i < parts.size() && fd >= 0; ++i) {
    const Descriptor parent(fd);
    const bool last = i + 1 == parts.size();
    // Not blocking: a pipe in the place of a file must not hang the program.
    fd = ::openat(
        parent.get(), parts[i].c_str(),
        O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
  }
  if (fd < 0)
    refuse(place, location,
           errno == ELOOP || errno == EMLINK ? "a link is in its path" : std::strerror(errno),
           errno == ELOOP ? "put the file itself beneath the model's folder"
                          : "it must lie beside the model");
  Descriptor file(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0) refuse(place, location, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse(place, location, "is not a regular file");
  if (status.st_nlink > 1)
    refuse(place, location, "has another name elsewhere (a hard link)",
           "copy it, so that it is the model's alone");
  const auto size = static_cast<uint64_t>(status.st_size);
  // Values inside a model are viewed and cost nothing, these are read; each may be turned besides.
  budget.give_back(static_cast<size_t>(size) * 2);
  return files_.emplace(location, File{std::move(file), size}).first->second;
}

}  // namespace mase::onnx
