// SPDX-License-Identifier: Apache-2.0
// Networks described in TOML files, so that a user's own network needs no recompiling:
//
//   name = "my-net"                  # the file's stem if not given
//   input = [16]                     # shape of one sample; the data set's if not given
//   [[seq_blocks]]                   # one after the other: seq_blocks.0, seq_blocks.1, ...
//   type = "Linear"                  # PyTorch's class and arguments; what shapes say may be left
//   out out_features = 32
//   [[layers]]                       # named, with explicit inputs (default: the layer above)
//   name = "skip"
//   function = "add"
//   inputs = ["seq_blocks.0", "x"]
//   [[layers]]                       # a block, six times: body.0.fc, body.0.sum, body.1.fc, ...
//   name = "body"                    # what comes after may call its last result "body"
//   repeat = 6
//   layers = [{name = "fc", type = "Linear", out_features = 32},
//             {name = "sum", function = "add", inputs = ["fc", "input"]}]  # "input": the block's
//   [[layers]]                       # a class that stands for several layers (layer_block.h):
//   name = "encoder"                 # encoder.self_attn, encoder.linear1, ...
//   type = "TransformerEncoderLayer"
//
// Every mistake is an Error with file, line, cause and remedy.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "mase/base/fields.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"
#include "mase/ir/value_type.h"
#include "mase/models/layer_block.h"
#include "mase/models/model.h"

namespace mase {
namespace {

constexpr int64_t most_parameters = int64_t{1} << 30;

struct Layer {
  std::string name;  // a module's path
  const OpRecord* op = nullptr;
  bool function = false;
  std::vector<std::string> inputs;
  std::vector<Position> input_positions;
  Dict attributes;
  Position position;
};

bool valid_name(const std::string& name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) || c == '_'; };
  return !name.empty() && letter(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [&](unsigned char c) { return letter(c) || std::isdigit(c) || c == '.'; });
}

class Description {
 public:
  Description(const Value& file, const std::string& path, const ModelInputs& inputs)
      : file_(file), path_(path), inputs_(inputs) {}

  Graph build() {
    const Schema schema = {{
        text_field("name", "the network's name"),
        text_field("summary", "one line about it"),
        {.name = "input", .help = "shape of one sample, or {name = shape, ...}"},
        list_field("outputs", "the layers whose results are returned"),
        list_field("seq_blocks", "layers one after the other"),
        list_field("layers", "named layers with explicit inputs"),
    }};
    const Value values = validate(file_, schema, "");
    if (values["seq_blocks"].is_null() && values["layers"].is_null())
      throw Error(start(), "", "the file describes no layers",
                  "add [[seq_blocks]] with type = \"Linear\" and so on");
    graph_.name = values["name"].is_string() ? values["name"].as_string()
                                             : std::filesystem::path(path_).stem().string();
    add_inputs(values["input"]);
    read_blocks(values["seq_blocks"]);
    read_layers(values["layers"], "layers", {}, 0);
    for (Layer& layer : layers_)
      for (std::string& input : layer.inputs) input = last_of_block(input);
    for (const size_t index : sorted()) add(layers_[index]);
    finish(values["outputs"]);
    verify(graph_);
    return std::move(graph_);
  }

 private:
  // Where the file begins: an empty table carries no line of its own.
  Position start() const {
    Position position = file_.position();
    if (!position) position.file = std::make_shared<const std::string>(path_);
    position.line = std::max(position.line, 1);
    return position;
  }

  void add_inputs(const Value& given) {
    const auto shape_of = [&](const Value& value) {
      const Shape shape = value.as_int_list("input");
      for (const int64_t size : shape)
        if (size < 1)
          throw Error(value.position(), "input", fmt::format("{} is no size", size),
                      "sizes start at 1; the batch is not part of the shape");
      if (element_count(shape) > most_parameters)
        throw Error(value.position(), "input", "the shape is too large",
                    "use at most 2^30 elements");
      return shape;
    };
    if (given.is_dict()) {
      if (given.as_dict().empty())
        throw Error(given.position(), "input", "no input is given", "write input = [16]");
      for (const auto& [name, shape] : given.as_dict()) add_input(name, shape_of(shape), given);
      return;
    }
    Shape shape = given.is_null() ? inputs_.sample_shape : shape_of(given);
    if (given.is_null() && shape.empty())
      throw Error(start(), "", "the shape of the input is not known",
                  "add input = [16], or name a data set");
    if (!inputs_.sample_shape.empty() && shape != inputs_.sample_shape)
      throw Error(given.position(), "input",
                  fmt::format("the network takes {}, the data set gives {}", shape_text(shape),
                              shape_text(inputs_.sample_shape)),
                  "change the input, or leave it out");
    add_input("x", shape, given);
  }

  void add_input(const std::string& name, const Shape& shape, const Value& given) {
    if (!valid_name(name))
      throw Error(given.position(), "input", fmt::format("'{}' is no name", printable(name)),
                  "use letters, digits and _");
    const NodeId id = graph_.add_placeholder(name, shape);
    known_[name] = id;
    Shape batched = shape;
    batched.insert(batched.begin(), 2);
    shapes_[id] = batched;
    previous_ = name;
  }

  void read_blocks(const Value& blocks) {
    if (blocks.is_null()) return;
    size_t index = 0;
    for (const Value& table : blocks.as_list()) {
      const std::string name = fmt::format("seq_blocks.{}", index++);
      const LayerBlockRecord* block = block_of(table);
      Layer layer = block ? Layer{} : read_layer(table, name);
      if (const Value& inputs = table["inputs"]; !inputs.is_null())
        throw Error(inputs.position(), name, "blocks follow each other and take no 'inputs'",
                    "use [[layers]] for branches");
      if (const Value& given = table["name"]; !given.is_null())
        throw Error(given.position(), name, "blocks are numbered and take no 'name'",
                    "use [[layers]] for named layers");
      if (block) {
        read_layer_block(*block, table, name, name, {}, 0);
        continue;
      }
      layer.name = name;
      append(std::move(layer));
    }
  }

  // What names mean inside a repetition of a block.
  struct Scope {
    std::string prefix = {};              // "body.0."
    std::string input = {};               // what goes into the repetition
    std::vector<std::string> names = {};  // of its own layers

    std::string full(const std::string& name) const {
      if (prefix.empty()) return name;
      if (name == "input") return input;
      return std::find(names.begin(), names.end(), name) == names.end() ? name : prefix + name;
    }
  };

  static std::string name_of(const Value& table, const std::string& place) {
    if (!table.is_dict())
      throw Error(table.position(), place,
                  fmt::format("expected a table, got {}", table.type_name()),
                  "write {type = \"Linear\", out_features = 5}");
    const Value& name = table["name"];
    if (name.is_null())
      throw Error(table.position(), place, "'name' is missing", "write name = \"fc1\"");
    const std::string& text = name.as_string(place + ".name");
    if (!valid_name(text))
      throw Error(name.position(), place, fmt::format("'{}' is no name", printable(text)),
                  "use letters, digits, _ and dots");
    return text;
  }

  void read_layers(const Value& list, const std::string& where, const Scope& scope, int depth) {
    if (list.is_null()) return;
    size_t index = 0;
    for (const Value& table : list.as_list(where)) {
      const std::string place = fmt::format("{}[{}]", where, index++);
      if (table.is_dict() && table.as_dict().contains("repeat")) {
        read_block(table, place, scope, depth);
        continue;
      }
      if (const LayerBlockRecord* block = block_of(table)) {
        read_layer_block(*block, table, scope.prefix + name_of(table, place), place, scope, depth);
        continue;
      }
      Layer layer = read_layer(table, place);
      layer.name = scope.prefix + name_of(table, place);
      for (std::string& input : layer.inputs) input = scope.full(input);
      append(std::move(layer));
    }
  }

  void read_block(const Value& table, const std::string& place, const Scope& outer, int depth) {
    constexpr int64_t most_repeats = 1000;
    static const Schema schema{{
        text_field("name").needed(),
        integer_field("repeat").needed().between(1, static_cast<double>(most_repeats)),
        list_field("layers").needed(),
    }};
    validate(table, schema, place);
    check_depth(table, place, depth);
    const std::string name = outer.prefix + name_of(table, place);
    const List& layers = table["layers"].as_list();
    if (layers.empty()) throw Error(table.position(), place, "a block without layers");
    for (int64_t i = 0; i < table["repeat"].as_int(); ++i)
      read_part(fmt::format("{}.{}.", name, i), previous_, table["layers"], place + ".layers",
                depth + 1);
    name_block(table, name);
  }

  static void check_depth(const Value& table, const std::string& place, int depth) {
    constexpr int deepest = 4;
    if (depth == deepest)
      throw Error(table.position(), place, fmt::format("blocks in blocks, {} deep", deepest),
                  "write some of them out");
  }

  // The layers of a block: `list` with names of its own.
  void read_part(const std::string& prefix, const std::string& input, const Value& list,
                 const std::string& where, int depth) {
    Scope scope{prefix, input, {}};
    const List& layers = list.as_list(where);
    for (size_t k = 0; k < layers.size(); ++k)
      scope.names.push_back(name_of(layers[k], fmt::format("{}[{}]", where, k)));
    read_layers(list, where, scope, depth);
  }

  void name_block(const Value& table, const std::string& name) {
    if (known_.count(name) || index_.count(name) || !blocks_.emplace(name, previous_).second)
      throw Error(table.position(), name, "two layers have this name",
                  "names must be unique; change one of them");
  }

  // The class of several layers that a table names, if it names one.
  static const LayerBlockRecord* block_of(const Value& table) {
    if (!table.is_dict() || !table["type"].is_string()) return nullptr;
    return Registry<LayerBlockRecord>::instance().find(table["type"].as_string());
  }

  void read_layer_block(const LayerBlockRecord& block, const Value& table, const std::string& name,
                        const std::string& place, const Scope& outer, int depth) {
    check_depth(table, place, depth);
    Dict given;
    for (const auto& [key, value] : table.as_dict())
      if (key != "type" && key != "name" && key != "inputs") given.set(key, value);
    const Value attributes =
        validate(Value(given).set_position(table.position()), block.attributes, place);
    std::string input = previous_;
    if (const Value& inputs = table["inputs"]; !inputs.is_null()) {
      const bool one = inputs.is_list() && inputs.as_list().size() == 1;
      if (!inputs.is_string() && !one)
        throw Error(inputs.position(), place, fmt::format("{} takes one input", block.name),
                    "write inputs = \"NAME\"");
      input = outer.full((one ? inputs.as_list()[0] : inputs).as_string(place + ".inputs"));
    }
    const std::string prefix = name + ".";
    read_part(prefix, input, placed(block.layers(attributes), table.position()), place, depth + 1);
    name_block(table, name);
  }

  // What a block stands for stands where the block does.
  static Value placed(const Value& value, const Position& position) {
    Value copy = value;
    if (value.is_list()) {
      List items;
      for (const Value& item : value.as_list()) items.push_back(placed(item, position));
      copy = items;
    } else if (value.is_dict()) {
      Dict table;
      for (const auto& [key, item] : value.as_dict()) table.set(key, placed(item, position));
      copy = table;
    }
    return copy.set_position(position);
  }

  Layer read_layer(const Value& table, const std::string& place) {
    Layer layer;
    layer.position = table.position();
    if (!table.is_dict())
      throw Error(table.position(), place,
                  fmt::format("expected a table, got {}", table.type_name()),
                  "write {type = \"Linear\", out_features = 5}");
    const Value& type = table["type"];
    const Value& function = table["function"];
    if (type.is_null() == function.is_null())
      throw Error(layer.position, place,
                  type.is_null() ? "'type' is missing" : "'type' and 'function' are both given",
                  "give the layer's class, such as type = \"Linear\", or a function");
    const Value& given = type.is_null() ? function : type;
    const std::string& wanted = given.as_string(place + (type.is_null() ? ".function" : ".type"));
    layer.op = &find_op(wanted, Error(given.position(), place, "").place());
    layer.function = type.is_null() || layer.op->class_name.empty();
    if (layer.function && layer.op->function.empty())
      throw Error(given.position(), place, fmt::format("'{}' is no function", printable(wanted)),
                  fmt::format("write type = \"{}\"", layer.op->class_name));
    for (const auto& [key, value] : table.as_dict())
      if (key != "type" && key != "function" && key != "name" && key != "inputs")
        layer.attributes.set(key, value);
    if (const Value& inputs = table["inputs"]; !inputs.is_null()) {
      const List names = inputs.is_string() ? List{inputs} : inputs.as_list(place + ".inputs");
      if (names.empty())
        throw Error(inputs.position(), place, "'inputs' is empty",
                    "name the layers it takes, or leave 'inputs' out for the layer above");
      for (const Value& name : names) {
        layer.inputs.push_back(name.as_string(place + ".inputs"));
        layer.input_positions.push_back(name.position() ? name.position() : inputs.position());
      }
    }
    return layer;
  }

  // A block's name stands for its last result.
  std::string last_of_block(const std::string& name) const {
    const auto block = blocks_.find(name);
    return block == blocks_.end() ? name : block->second;
  }

  void append(Layer layer) {
    constexpr size_t most_layers = 100000;
    if (layers_.size() == most_layers)
      throw Error(layer.position, layer.name, "more than 100,000 layers", "repeat fewer");
    if (blocks_.count(layer.name))
      throw Error(layer.position, layer.name, "two layers have this name",
                  "names must be unique; change one of them");
    if (known_.count(layer.name) || index_.count(layer.name))
      throw Error(layer.position, layer.name, "two layers have this name",
                  "names must be unique; change one of them");
    if (layer.inputs.empty()) {
      // A module of several operands takes the layer above for each: attention to itself.
      const int count = layer.function ? 1 : std::max(1, layer.op->min_inputs);
      layer.inputs.assign(static_cast<size_t>(count), previous_);
      layer.input_positions.assign(static_cast<size_t>(count), layer.position);
    }
    previous_ = layer.name;
    index_[layer.name] = layers_.size();
    layers_.push_back(std::move(layer));
  }

  // The layers in an order in which every input comes before its user; as written where possible.
  std::vector<size_t> sorted() const {
    enum class State { unseen, open, done };
    std::vector<State> states(layers_.size(), State::unseen);
    std::vector<size_t> order;
    std::vector<std::string> known;
    for (const auto& [name, id] : known_) known.push_back(name);
    for (const auto& [name, index] : index_) known.push_back(name);
    // A stack of our own: a long chain written backwards must not exhaust the program's.
    struct Visit {
      size_t layer, next_input;
    };
    for (size_t first = 0; first < layers_.size(); ++first) {
      if (states[first] == State::done) continue;
      std::vector<Visit> stack = {{first, 0}};
      states[first] = State::open;
      while (!stack.empty()) {
        const Layer& layer = layers_[stack.back().layer];
        if (stack.back().next_input == layer.inputs.size()) {
          states[stack.back().layer] = State::done;
          order.push_back(stack.back().layer);
          stack.pop_back();
          continue;
        }
        const size_t k = stack.back().next_input++;
        const std::string& input = layer.inputs[k];
        if (known_.count(input)) continue;
        const auto found = index_.find(input);
        if (found == index_.end())
          throw Error(layer.input_positions[k], layer.name,
                      fmt::format("unknown input '{}'", printable(input)),
                      suggestion(input, known));
        if (states[found->second] == State::done) continue;
        if (states[found->second] == State::open)
          throw Error(layer.input_positions[k], layer.name,
                      fmt::format("the network has a cycle through '{}'", printable(input)),
                      "a layer cannot take its own result, directly or through others");
        states[found->second] = State::open;
        stack.push_back({found->second, 0});
      }
    }
    return order;
  }

  void add(Layer& layer) {
    std::vector<NodeId> ids;
    std::vector<Shape> shapes;
    for (const std::string& input : layer.inputs) {
      ids.push_back(known_.at(input));
      shapes.push_back(shapes_.at(ids.back()));
    }
    const int count = static_cast<int>(ids.size());
    if (count < layer.op->min_inputs ||
        (layer.op->max_inputs >= 0 && count > layer.op->max_inputs) ||
        (!layer.function && count > std::max(1, layer.op->min_inputs)))
      throw Error(layer.position, layer.name,
                  fmt::format("'{}' takes {} input{}, got {}", layer.op->name, layer.op->min_inputs,
                              layer.op->min_inputs == 1 ? "" : "s", count),
                  layer.op->min_inputs == 3 ? "list its inputs: inputs = [\"a\", \"b\", \"c\"]"
                                            : "list its inputs: inputs = [\"a\", \"b\"]");
    if (layer.op->complete && !layer.function)
      layer.op->complete(layer.attributes, shapes, inputs_.outputs);
    Value attributes(layer.attributes);
    attributes.set_position(layer.position);
    const Value checked = validate(attributes, layer.op->attributes, layer.name);
    layer.attributes.erase("result");  // a getitem behind the call picks it
    try {
      if (!layer.function) check_size(layer, checked);
      const Shape shape = layer.op->infer(checked, shapes);
      if (element_count(shape) / 2 > most_parameters)
        throw Error("", fmt::format("the result {} is too large", shape_text(shape)),
                    "use smaller layers");
      NodeId id = layer.function
                      ? add_function(layer, ids)
                      : graph_.add_module(
                            layer.name,
                            make_module(layer.op->name, attributes, inputs_.seed, layer.name), ids);
      if (has_several_results(graph_, graph_.node(id)))
        id = graph_.result_of(id, checked["result"].as_int());
      known_[layer.name] = id;
      shapes_[id] = shape;
    } catch (const Error& error) {  // the op knows what is wrong, only we know where
      if (starts_with(error.place(), layer.position.str()) && layer.position) throw;
      throw Error(layer.position, layer.name, error.cause(),
                  error.remedy().empty() ? "look at the shapes with ch summary" : error.remedy());
    }
  }

  void check_size(const Layer& layer, const Value& attributes) {
    if (!layer.op->params) return;
    for (const ParamSpec& spec : layer.op->params(attributes))
      parameters_ += element_count(spec.shape);
    if (parameters_ > most_parameters)
      throw Error("", "the network has more than 2^30 parameters", "use smaller layers");
  }

  NodeId add_function(const Layer& layer, const std::vector<NodeId>& ids) {
    Node node;
    node.name = layer.name;
    node.kind = NodeKind::call_function;
    node.target = layer.op->name;
    std::vector<Argument> args;
    for (const NodeId id : ids) args.push_back(Argument::node(id));
    if (layer.op->max_inputs < 0)
      node.args.push_back(Argument::list(std::move(args)));
    else
      node.args = std::move(args);
    for (const auto& [key, value] : layer.attributes)
      node.kwargs.emplace_back(key, Argument::literal(value));
    return graph_.add_node(std::move(node));
  }

  void finish(const Value& outputs) {
    std::vector<NodeId> ids;
    if (outputs.is_null()) {
      ids.push_back(known_.at(previous_));
    } else {
      std::vector<std::string> known;
      for (const auto& [name, id] : known_) known.push_back(name);
      for (const Value& name : outputs.as_list()) {
        const auto found = known_.find(last_of_block(name.as_string("outputs")));
        if (found == known_.end())
          throw Error(name.position(), "outputs",
                      fmt::format("unknown layer '{}'", printable(name.as_string())),
                      suggestion(name.as_string(), known));
        ids.push_back(found->second);
      }
      if (ids.empty())
        throw Error(outputs.position(), "outputs", "no layer is listed",
                    "name one, or leave 'outputs' out for the last layer");
    }
    graph_.add_output(ids);
    declare_index_inputs(graph_);
    const std::vector<std::vector<NodeId>> users = graph_.use_lists();
    for (const Layer& layer : layers_)
      if (users[static_cast<size_t>(known_.at(layer.name))].empty())
        throw Error(layer.position, layer.name, "nothing reads its result",
                    "take the layer out, or name it in outputs");
  }

  const Value& file_;
  const std::string& path_;
  const ModelInputs& inputs_;
  Graph graph_;
  std::vector<Layer> layers_;
  std::map<std::string, size_t> index_;        // of layers
  std::map<std::string, std::string> blocks_;  // the last layer of each block
  std::map<std::string, NodeId> known_;        // of inputs and layers already added
  std::map<NodeId, Shape> shapes_;             // for a batch of two
  std::string previous_;
  int64_t parameters_ = 0;
};

}  // namespace

Graph make_model(const std::string& name_or_path, const ModelInputs& inputs) {
  const Registry<ModelRecord>& models = Registry<ModelRecord>::instance();
  if (const ModelRecord* model = models.find(name_or_path)) {
    try {
      return model->build(inputs);
    } catch (const Error& error) {
      // An op knows its own sizes only; its remedy is for those who choose them.
      if (!error.place().empty() || inputs.sample_shape.empty()) throw;
      throw Error(
          model->name,
          fmt::format("is not for samples {}: {}", shape_text(inputs.sample_shape), error.cause()),
          "take another network (ch --info model), or samples of another shape");
    }
  }
  const bool is_file =
      ends_with(name_or_path, ".toml") || name_or_path.find('/') != std::string::npos;
  if (!is_file)
    throw Error("", fmt::format("unknown model '{}'", printable(name_or_path)),
                suggestion(name_or_path, models.names()) + " (or the path of a .toml file)");
  const Value file = read_toml(name_or_path);
  return Description(file, name_or_path, inputs).build();
}

}  // namespace mase
