// SPDX-License-Identifier: Apache-2.0
// Sentences through the network of a Hugging Face folder or GGUF file, by its own tokenizer.
// Sentences of one length are run together and none is filled up, so that what a sentence gives
// never depends on the others.
#pragma once

#include <string>
#include <vector>

#include "mase/run/experiment.h"

namespace mase {

// Whether these are sentences for a folder.
bool are_sentences_for_folder(const std::string& network, const std::vector<std::string>& inputs);

// The names of the classes that config.json has (id2label), if the network is a classifier of as
// many.
std::vector<std::string> hf_class_names(const Value& config, const TensorTable& tensors);

// Classes that are called as config.json's id2label says, but for upper and lower case, get their
// numbers there. Names of which only some are known stay in their order.
void match_hf_classes(Dataset& dataset, const Checkpoint& checkpoint, const std::string& path);

// An output that has a row for each token is as long as the longest sentence; behind the end of a
// shorter one it is NaN.
Prediction predict_sentences(const ExperimentSpec& spec, const PredictSpec& wanted,
                             const Observer& observer);

}  // namespace mase
