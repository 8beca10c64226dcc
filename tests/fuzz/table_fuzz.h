// SPDX-License-Identifier: Apache-2.0
// Feeds bytes to one table reader through a file in shared memory, and reads what it delivers.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/io/tables/table_source.h"

inline size_t fuzz_table(const char* reader, const uint8_t* data, size_t size) {
  const mase::Descriptor memory(::memfd_create("fuzz", MFD_CLOEXEC));
  size_t delivered = 0;
  try {
    mase::write_all(memory.get(), data, size, "fuzz");
    constexpr int64_t block = 64, most_rows = 4096;
    const auto source = mase::Registry<mase::TableReaderRecord>::instance().get(reader).open(
        "/proc/self/fd/" + std::to_string(memory.get()), {});
    std::vector<size_t> readable;
    for (size_t i = 0; i < std::min<size_t>(source->columns().size(), 64); ++i)
      if (source->columns()[i].problem.empty()) readable.push_back(i);
    source->select(readable);
    std::vector<double> cells(block * readable.size());
    for (int64_t rows = 0; rows < most_rows && !readable.empty();) {
      const int64_t got = source->read(cells.data(), block);
      if (got == 0) break;
      source->place(got - 1);
      rows += got;
      delivered += static_cast<size_t>(got) * readable.size();
    }
  } catch (const mase::Error&) {
  }
  return delivered;
}
