// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/output.h"

#include <filesystem>

#include "mase/base/file.h"

namespace mase {

void print(const PassContext& context, const std::string& text) {
  if (context.print) context.print(text);
}

void print_info(const PassContext& context, const std::string& text) {
  print(context, "INFO     " + text + "\n");
}

std::string output_path(const PassContext& context, const std::string& name) {
  const std::filesystem::path path(name);
  if (path.is_absolute()) return name;
  const std::string& folder = context.save_dir.empty() ? context.base_dir : context.save_dir;
  return folder.empty() ? name : (std::filesystem::path(folder) / path).string();
}

std::string save_text(const PassContext& context, const std::string& name,
                      const std::string& text) {
  const std::string path = output_path(context, name);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) make_directories(folder);
  write_file_atomically(path, text);
  return path;
}

}  // namespace mase
