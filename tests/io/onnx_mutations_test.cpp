// SPDX-License-Identifier: Apache-2.0
// Models of other tools and of ours with bytes changed, cut off or repeated: each is read, or
// refused with an Error, in a bounded time and memory. A few thousand here; MASE_MUTATIONS=100000
// tries more.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "io/onnx_written.h"
#include "mase/base/random.h"
#include "mase/io/onnx/read/describe.h"

namespace mase::onnx::onnx_mutations_test {
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

// Of ours: they say which graph they were written from, at their end.
std::vector<std::string> own_seeds() {
  std::vector<std::string> contents;
  for (const char* name : {"jsc-tiny", "jsc-toy", "toy_convnet"})
    contents.push_back(model_bytes(export_graph(make_model(name))));
  Graph graph;
  graph.name = "attention";
  const NodeId x = graph.add_placeholder("x", {2, 3, 4});
  const auto call = [&](const char* op, std::vector<Argument> inputs, const Dict& attributes) {
    std::vector<std::pair<std::string, Argument>> keywords;
    for (const auto& [key, value] : attributes)
      keywords.emplace_back(key, Argument::literal(value));
    return Argument::node(graph.call_function(op, std::move(inputs), std::move(keywords)));
  };
  const Argument turned = call("rotary_embedding", {Argument::node(x)}, {});
  const Argument normal =
      call("layer_norm", {Argument::node(x)}, {{"normalized_shape", Value::of(Shape{4})}});
  const Argument y =
      call("scaled_dot_product_attention", {turned, normal, normal}, {{"is_causal", true}});
  graph.add_output({y.id()});
  for (const Graph& further : {graph, unusual_network(), pruned_network()})
    contents.push_back(model_bytes(export_graph(further)));
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

// Numbers, names and marks of a text replaced, taken out or repeated.
std::string mutated_text(std::string text, Random& random) {
  for (uint64_t changes = 1 + random.below(3); changes-- > 0 && text.size() > 16;) {
    const size_t at = random.below(text.size()),
                 digit = std::min(text.find_first_of("0123456789", at), text.size() - 1),
                 comma = std::min(text.find(',', at), text.size() - 1),
                 next = std::min(text.find(',', comma + 1), text.size());
    const char* numbers[] = {"0",    "-1",  "9999", "1",         "2",  "7",
                             "null", "3.5", "true", "123456789", "[]", "\"same\""};
    switch (random.below(6)) {
      case 0:
      case 1:
      case 2: {
        const size_t end = text.find_first_not_of("0123456789.", digit);
        text.replace(digit, end - digit, numbers[random.below(std::size(numbers))]);
        break;
      }
      case 3:  // an entry taken out
        text.erase(comma, next - comma);
        break;
      case 4:  // an entry twice, or in another place
        text.insert(std::min(text.find(',', random.below(text.size())), text.size()),
                    text.substr(comma, next - comma));
        break;
      default:
        text[at] = static_cast<char>(32 + random.below(95));
    }
  }
  return text;
}

size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

TEST(OnnxMutations, EveryDamagedModelIsReadOrRefused) {
  const char* given = std::getenv("MASE_MUTATIONS");
  const int count = given ? std::atoi(given) : 1500;
  std::vector<std::string> files = seeds();
  ASSERT_GE(files.size(), 40u);
  const size_t foreign = files.size();
  for (std::string& own : own_seeds()) files.push_back(std::move(own));
  size_t largest = 0;
  for (const std::string& file : files) largest = std::max(largest, file.size());
  Random random(1, "onnx mutations");
  int imported = 0, kept = 0, refused = 0, told = 0;
  double slowest = 0;
  const size_t before = peak_memory();
  for (int i = 0; i < count; ++i) {
    // Every fourth is one of ours, so that their description is tried often enough.
    const bool own = random.below(4) == 0;
    const std::string& seed =
        own ? files[foreign + random.below(files.size() - foreign)] : files[random.below(foreign)];
    const std::string bytes = mutated(seed, random);
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
      told += own && result.notes.empty();
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()), "");
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    slowest = std::max(slowest, elapsed.count());
  }
  const size_t grown = peak_memory() - before;
  std::printf(
      "%d mutations: %d imported (%d of ours without a note), %d in part, %d refused; slowest %.3f "
      "s, %zu MB more\n",
      count, imported, told, kept, refused, slowest, grown >> 20);
  EXPECT_GT(imported, count / 50);
  EXPECT_GT(refused, count / 50);
  if (!test::sanitized) {
    EXPECT_LE(grown, (size_t{64} << 20) + largest);
  }
}

// What a file of ours says about the graph it was written from, changed: it is found to be wrong,
// or to be another way to write what the nodes say.
TEST(OnnxMutations, EveryDamagedDescriptionIsHeldAgainstTheNodes) {
  const char* given = std::getenv("MASE_MUTATIONS");
  const int count = given ? std::atoi(given) : 1500;
  std::vector<Model> models;
  for (const std::string& seed : own_seeds()) {
    MemoryBudget budget({}, seed.size());
    const auto owner = std::make_shared<std::string>(seed);
    models.push_back(read_model(std::as_bytes(std::span(*owner)), owner, "ours", budget));
  }
  Random random(2, "onnx mutations");
  int told = 0, noted = 0;
  const size_t before = peak_memory();
  for (int i = 0; i < count; ++i) {
    Model model = models[random.below(models.size())];
    for (auto& [key, value] : model.metadata) value = mutated_text(value, random);
    MemoryBudget budget({}, 0);
    ExternalFiles nowhere("");
    const Imported result = import_model(model, nowhere, "damaged", budget);
    ++(result.notes.empty() ? told : noted);
  }
  const size_t grown = peak_memory() - before;
  std::printf("%d descriptions: %d agree, %d do not; %zu MB more\n", count, told, noted,
              grown >> 20);
  EXPECT_GT(noted, count / 2);
  if (!test::sanitized) {
    EXPECT_LE(grown, size_t{64} << 20);
  }
}

}  // namespace
}  // namespace mase::onnx::onnx_mutations_test
