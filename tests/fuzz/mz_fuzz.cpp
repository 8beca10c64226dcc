// SPDX-License-Identifier: Apache-2.0
// coverage floor: 2500
// .mz files: raw when the input begins as a zip does; else two bytes give the length of graph.json,
// the rest are the weights, and a good zip is put around them, so that the graph is reached.
#include "fuzz/target.h"
#include "mase/io/networks/checkpoint_file.h"
#include "mase/io/zip/zip_reader.h"
#include "mase/io/zip/zip_writer.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size >= 2 && !mase::looks_like_zip(std::as_bytes(std::span(file)))) {
    const size_t length = std::min<size_t>(size - 2, data[0] + 256u * data[1]);
    const std::string graph = file.substr(2, length), weights = file.substr(2 + length);
    file.clear();
    mase::ZipWriter zip(
        [&](const void* bytes, size_t n) { file.append(static_cast<const char*>(bytes), n); });
    zip.add("mase.json", R"({"format": "mase-graph", "version": 1})");
    zip.add("graph.json", graph);
    zip.add("weights.safetensors", weights);
    zip.finish();
  }
  try {
    const mase::Checkpoint checkpoint =
        mase::read_mz(std::as_bytes(std::span(file)), nullptr, "fuzz", {});
    checkpoint.graph->text();
    return checkpoint.graph->order().size();
  } catch (const mase::Error&) {
    return 0;
  }
}
