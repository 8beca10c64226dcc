// SPDX-License-Identifier: Apache-2.0
// What every fuzz target shares. A target defines fuzz_one(); before the first input all seeds are
// run once, and the target refuses to start when none of them is read: a harness that the parser
// turns away at the door tests nothing and finds nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

// How many values the parser delivered from these bytes: 0 where it refused them.
size_t fuzz_one(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_one(data, size);
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  namespace fs = std::filesystem;
  size_t seeds = 0, read = 0, values = 0;
  for (int i = 1; i < *argc; ++i) {
    std::error_code none;
    if (!fs::is_directory((*argv)[i], none)) continue;
    for (const auto& entry : fs::directory_iterator((*argv)[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string content((std::istreambuf_iterator<char>(file)), {});
      const size_t got = fuzz_one(reinterpret_cast<const uint8_t*>(content.data()), content.size());
      ++seeds;
      read += got > 0;
      values += got;
    }
  }
  std::fprintf(stderr, "%zu of %zu seeds are read: %zu values\n", read, seeds, values);
  if (read == 0) {
    std::fprintf(stderr, "no seed reaches the parser: this target tests nothing\n");
    std::exit(1);
  }
  return 0;
}
