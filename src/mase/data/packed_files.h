// SPDX-License-Identifier: Apache-2.0
// Files as they are published: packed with gzip, or several in a .tar.gz. The archive's reader is
// our own: it takes plain files out of memory and nothing else (no links, no paths, nothing is
// written), which is less than any archive library does with hostile bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mase {

struct FileBytes {
  std::string place;  // for errors
  std::vector<uint8_t> bytes;
};

// A whole file, unpacked if gzip packed it.
FileBytes read_packed(const std::string& path);

// The archive's files of these names, whatever folder they are in, in the order of `names`; those
// that it lacks are left out.
std::vector<FileBytes> read_archive(const std::string& path, const std::vector<std::string>& names);

}  // namespace mase
