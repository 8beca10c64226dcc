// SPDX-License-Identifier: Apache-2.0
// Networks of Hugging Face folders and GGUF files written back as a folder that the transformers
// library loads: config.json, model.safetensors and the tokenizer.
#pragma once

#include <string>
#include <vector>

#include "mase/run/network.h"

namespace mase {

// What was written, beside the network: names of files.
struct HfFolderFiles {
  std::vector<std::string> written;
  std::string tokenizer;  // where its tokenizer came from; empty: it has none
};

// `to` must not be there yet, or be empty. `source`: the folder or file whose tokenizer goes along.
HfFolderFiles write_hf_folder(const Network& network, const std::string& source,
                              const std::string& to);

}  // namespace mase
