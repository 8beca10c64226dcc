// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/json_option.h"

#include <cstdio>

#include "mase/base/file.h"

namespace mase {

Field json_field(const std::string& help, const std::string& group) {
  return {.name = "json",
          .type = FieldType::text,
          .help = help + " to this file; - or nothing is the terminal",
          .group = group};
}

void write_json(const std::string& path, const Value& value) {
  const std::string text = to_json(value, 1) + "\n";
  if (path == "-")
    std::fputs(text.c_str(), stdout);
  else
    write_file_atomically(path, text);
}

}  // namespace mase
