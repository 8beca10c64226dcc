// SPDX-License-Identifier: Apache-2.0
// coverage floor: 4000
#include "fuzz/target.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/file/write_model.h"
#include "mase/io/onnx/read/import.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  try {
    mase::MemoryBudget budget({}, size);
    const mase::onnx::Model model =
        mase::onnx::read_model(std::as_bytes(std::span(data, size)), nullptr, "fuzz", budget);
    mase::onnx::model_bytes(model);
    mase::onnx::ExternalFiles nowhere("");
    return mase::onnx::import_model(model, nowhere, "fuzz", budget).graph.order().size();
  } catch (const mase::Error&) {
    return 0;
  }
}
