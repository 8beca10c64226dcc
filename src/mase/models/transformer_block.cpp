// SPDX-License-Identifier: Apache-2.0
// TransformerEncoderLayer and TransformerEncoder (Vaswani et al., 2017), as PyTorch has them with
// batch_first: attention and two linear layers, each added to what it takes and normalised, behind
// (or before: norm_first) which stands a layer norm.
#include "mase/base/fields.h"
#include "mase/models/layer_block.h"

namespace mase::transformer_block {
namespace {

Value named(const char* name, const char* what, const std::string& op, List inputs, Dict more) {
  Dict table{{"name", name}, {what, op}};
  if (!inputs.empty()) table.set("inputs", std::move(inputs));
  for (const auto& [key, value] : more) table.set(key, value);
  return table;
}

List encoder_layer(const Value& attributes) {
  const Value& width = attributes["d_model"];
  const bool norm_first = attributes["norm_first"].as_bool();
  List layers;
  const auto module = [&](const char* name, const char* type, List inputs, Dict more) {
    layers.push_back(named(name, "type", type, std::move(inputs), std::move(more)));
  };
  const auto dropout = [&](const char* name) {
    module(name, "Dropout", {}, {{"p", attributes["dropout"]}});
  };
  const auto norm = [&](const char* name, List inputs) {
    module(name, "LayerNorm", std::move(inputs),
           {{"normalized_shape", width}, {"eps", attributes["layer_norm_eps"]}});
  };
  const auto attention = [&](const char* from) {
    module("self_attn", "MultiheadAttention", {from, from, from},
           {{"embed_dim", width}, {"num_heads", attributes["nhead"]}, {"batch_first", true}});
    dropout("dropout1");
  };
  const auto feed_forward = [&](List inputs) {
    module("linear1", "Linear", std::move(inputs),
           {{"in_features", width}, {"out_features", attributes["dim_feedforward"]}});
    layers.push_back(named("activation", "function", attributes["activation"].as_string(), {}, {}));
    dropout("dropout");
    module("linear2", "Linear", {},
           {{"in_features", attributes["dim_feedforward"]}, {"out_features", width}});
    dropout("dropout2");
  };
  const auto sum = [&](const char* name, const char* a, const char* b) {
    layers.push_back(named(name, "function", "add", {a, b}, {}));
  };
  if (norm_first) {
    norm("norm1", {"input"});
    attention("norm1");
    sum("attended", "input", "dropout1");
    norm("norm2", {"attended"});
    feed_forward({"norm2"});
    sum("sum", "attended", "dropout2");
  } else {
    attention("input");
    sum("attended", "input", "dropout1");
    norm("norm1", {"attended"});
    feed_forward({"norm1"});
    sum("sum", "norm1", "dropout2");
    norm("norm2", {"sum"});
  }
  return layers;
}

std::vector<Field> layer_fields() {
  return {
      integer_field("d_model", "features of each position").needed().from(1),
      integer_field("nhead", "heads of the attention").needed().from(1),
      integer_field("dim_feedforward", "features between the two linear layers", 2048).from(1),
      number_field("dropout", "share dropped in training; shares of attention are kept", 0.1)
          .between(0, 1),
      text_field("activation", "between the two linear layers", "relu", {"relu", "gelu", "silu"}),
      number_field("layer_norm_eps", "added to variances", 1e-5).from(0),
      boolean_field("norm_first", "normalise what a part takes, not what it gives", false),
      boolean_field("batch_first", "has to be true: samples come first here", true),
  };
}

std::vector<Field> encoder_fields() {
  std::vector<Field> fields = layer_fields();
  fields.push_back(integer_field("num_layers", "so many layers").needed().between(1, 1000));
  return fields;
}

List checked_layer(const Value& attributes) {
  if (!attributes["batch_first"].as_bool())
    throw Error(attributes["batch_first"].position(), "batch_first", "samples come first here",
                "leave batch_first out");
  return encoder_layer(attributes);
}

const Register<LayerBlockRecord> layer{{
    .name = "TransformerEncoderLayer",
    .summary = "attention to itself and two linear layers, with norms and skips",
    .help = "Its layers and parameters are called as PyTorch's: NAME.self_attn, NAME.linear1, "
            "NAME.linear2, NAME.norm1, NAME.norm2.",
    .attributes = {layer_fields()},
    .layers = checked_layer,
}};

const Register<LayerBlockRecord> encoder{{
    .name = "TransformerEncoder",
    .summary = "several of TransformerEncoderLayer, one after the other",
    .help = "Its layers are called as PyTorch's: NAME.layers.0.self_attn and so on.",
    .attributes = {encoder_fields()},
    .layers = [](const Value& attributes) -> List {
      return {Dict{{"name", "layers"},
                   {"repeat", attributes["num_layers"]},
                   {"layers", checked_layer(attributes)}}};
    },
}};

}  // namespace
}  // namespace mase::transformer_block
