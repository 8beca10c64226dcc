// SPDX-License-Identifier: Apache-2.0
#include "mase/base/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view folder_letters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr size_t folder_letter_count = 6;

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void remove_abandoned_folders(const std::string& prefix) {
  const fs::path all(prefix);
  const std::string stem = all.filename().string();
  std::error_code ignored;
  for (fs::directory_iterator at(all.parent_path(), ignored), end; at != end && !ignored;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (name.size() != stem.size() + folder_letter_count || !starts_with(name, stem) ||
        name.find_first_not_of(folder_letters, stem.size()) != std::string::npos)
      continue;
    const Descriptor folder(open_folder(at->path().string()));
    if (folder.get() >= 0 && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0)
      fs::remove_all(at->path(), ignored);
    ignored.clear();
  }
}

// A new folder, held. Another process may take it for abandoned before it is: then the next name.
Descriptor make_folder(const std::string& prefix, std::string& path) {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    path = prefix;
    for (size_t i = 0; i < folder_letter_count; ++i)
      path += folder_letters[random() % folder_letters.size()];
    if (::mkdir(path.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      throw Error(fs::path(prefix).parent_path().string(),
                  fmt::format("cannot create a folder in it: {}", std::strerror(errno)),
                  "check the permissions or choose another folder");
    }
    Descriptor folder(open_folder(path));
    const bool held = folder.get() >= 0 && (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 ||
                                            errno != EWOULDBLOCK);  // or there are no locks here
    std::error_code ignored;
    if (held && fs::exists(path, ignored)) return folder;
  }
  throw Error(prefix, "cannot create a temporary folder");
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& prefix)
    : lock_((remove_abandoned_folders(prefix), make_folder(prefix, path_))) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace mase
