// SPDX-License-Identifier: Apache-2.0
// Models of other tools with bytes changed, cut off or repeated: each is read, or refused with an
// Error, in a bounded time and memory. A few thousand here; MASE_MUTATIONS=100000 tries more.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "mase/base/random.h"
#include "mase/io/onnx/describe.h"
#include "mase/io/onnx/import.h"
#include "mase/io/onnx/read_model.h"
#include "support/support.h"

namespace mase::onnx {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> seeds() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(test::golden_path("onnx")))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<std::string> contents;
  for (const std::string& file : files) contents.push_back(test::read(file));
  return contents;
}

std::string mutated(const std::string& seed, Random& random) {
  std::string bytes = seed;
  const auto place = [&] { return static_cast<size_t>(random.below(bytes.size())); };
  for (uint64_t changes = random.below(2) ? 1 : 1 + random.below(6);
       changes-- > 0 && bytes.size() > 16;) {
    switch (random.below(7)) {
      case 0:
        bytes[place()] = static_cast<char>(random.below(256));
        break;
      case 1:
        bytes[place()] = static_cast<char>(bytes[place()] ^ (1 << random.below(8)));
        break;
      case 2: {  // numbers at their ends
        const char extremes[] = {0, 1, 0x7F, static_cast<char>(0x80), static_cast<char>(0xFF)};
        bytes[place()] = extremes[random.below(5)];
        break;
      }
      case 3:
        if (random.below(8) == 0) bytes.resize(place());
        break;
      case 4: {  // a piece taken out
        const size_t at = place();
        bytes.erase(at, random.below(32));
        break;
      }
      case 5: {  // a piece twice
        const size_t at = place();
        bytes.insert(at, bytes.substr(at, random.below(64)));
        break;
      }
      default: {  // the beginning, where structure stands and not weights
        const size_t head = std::min<size_t>(bytes.size(), 2000);
        bytes[random.below(head)] = static_cast<char>(random.below(256));
      }
    }
  }
  return bytes;
}

size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

TEST(OnnxMutations, EveryDamagedModelIsReadOrRefused) {
  const char* given = std::getenv("MASE_MUTATIONS");
  const int count = given ? std::atoi(given) : 1500;
  const std::vector<std::string> files = seeds();
  ASSERT_GE(files.size(), 40u);
  size_t largest = 0;
  for (const std::string& file : files) largest = std::max(largest, file.size());
  Random random(1, "onnx mutations");
  int imported = 0, kept = 0, refused = 0;
  double slowest = 0;
  const size_t before = peak_memory();
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutated(files[random.below(files.size())], random);
    const auto start = std::chrono::steady_clock::now();
    try {
      MemoryBudget budget({}, bytes.size());
      const auto owner = std::make_shared<std::string>(bytes);
      const Model model = read_model(std::as_bytes(std::span(*owner)), owner, "damaged", budget);
      describe(model);
      ExternalFiles nowhere("");
      const Imported result = import_model(model, nowhere, "damaged", budget, i % 2 == 1);
      const bool whole = std::none_of(
          result.notes.begin(), result.notes.end(),
          [](const std::string& note) { return note.find("kept, not run") != std::string::npos; });
      ++(whole ? imported : kept);
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()), "");
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    slowest = std::max(slowest, elapsed.count());
  }
  const size_t grown = peak_memory() - before;
  std::printf("%d mutations: %d imported, %d in part, %d refused; slowest %.3f s, %zu MB more\n",
              count, imported, kept, refused, slowest, grown >> 20);
  EXPECT_GT(imported, count / 50);
  EXPECT_GT(refused, count / 50);
  if (!test::sanitized) {
    EXPECT_LE(grown, (size_t{64} << 20) + largest);
  }
}

}  // namespace
}  // namespace mase::onnx
