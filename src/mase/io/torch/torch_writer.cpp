// SPDX-License-Identifier: Apache-2.0
// Writes what PyTorch reads: a plain state dict (.pt) and Lightning's layout (.ckpt), as the zip
// container torch.load(weights_only=True) opens.
#include <cmath>
#include <map>

#include "mase/base/file.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/torch/pickle_writer.h"
#include "mase/io/zip/zip_writer.h"

namespace mase {
namespace {

// Lightning refuses files that do not say which release wrote them.
constexpr const char* lightning_version = "2.1.0";

// Plain values with tensors among them.
struct Tree {
  std::string key;  // in the tree above; a list's keys are its indices
  Value leaf = {};
  const Tensor* tensor = nullptr;
  enum class Kind { leaf, tensor, list, dict } kind = Kind::leaf;
  std::vector<Tree> children = {};
};

Tree& child_of(Tree& tree, const std::string& key) {
  for (Tree& child : tree.children)
    if (child.key == key) return child;
  tree.children.push_back({key});
  return tree.children.back();
}

Tree tree_of(const std::string& name, const Value& value) {
  Tree tree{name};
  if (value.is_list()) {
    tree.kind = Tree::Kind::list;
    for (const Value& item : value.as_list())
      tree.children.push_back(tree_of(std::to_string(tree.children.size()), item));
  } else if (value.is_dict()) {
    tree.kind = Tree::Kind::dict;
    for (const auto& [key, item] : value.as_dict()) tree.children.push_back(tree_of(key, item));
  } else {
    tree.leaf = value;
  }
  return tree;
}

// Puts a tensor at its dotted path. Containers on the way that do not exist are made: dicts, except
// where Lightning has lists.
void insert(Tree& root, const std::string& path, const Tensor& tensor) {
  Tree* at = &root;
  const std::vector<std::string> words = split(path, '.');
  for (size_t i = 0; i < words.size(); ++i) {
    if (at->kind == Tree::Kind::leaf) {
      at->kind = i == 1 && (words[0] == "optimizer_states" || words[0] == "lr_schedulers")
                     ? Tree::Kind::list
                     : Tree::Kind::dict;
    }
    MASE_CHECK(at->kind != Tree::Kind::tensor, "tensor '{}' lies inside a tensor", path);
    at = &child_of(*at, words[i]);
  }
  at->kind = Tree::Kind::tensor;
  at->tensor = &tensor;
}

class Archive {
 public:
  void tensor(const Tensor& tensor) {
    const auto known = keys_.find(tensor.raw());
    const bool shared = known != keys_.end() &&
                        storages_[known->second]->bytes() == tensor.bytes() && tensor.bytes() > 0;
    const size_t key = shared ? known->second : storages_.size();
    if (!shared) {
      storages_.push_back(&tensor);
      keys_[tensor.raw()] = key;
    }
    pickle_.tensor(tensor, std::to_string(key));
  }

  void state_dict(const TensorTable& state, const std::string& prefix) {
    pickle_.begin_ordered_dict();
    for (const auto& [name, tensor] : state) {
      pickle_.text(prefix + name);
      this->tensor(tensor);
    }
    pickle_.end_dict();
  }

  // Keys below optimizer_states.N.state are parameter numbers: PyTorch wants them as integers.
  void tree(const Tree& tree, int optimizer_depth = -1) {
    switch (tree.kind) {
      case Tree::Kind::tensor:
        tensor(*tree.tensor);
        return;
      case Tree::Kind::leaf:
        leaf(tree.leaf);
        return;
      case Tree::Kind::list:
        pickle_.begin_list();
        for (const Tree& item : tree.children) this->tree(item, next(optimizer_depth, item.key));
        pickle_.end_list();
        return;
      case Tree::Kind::dict:
        pickle_.begin_dict();
        for (const Tree& item : tree.children) {
          const auto number = parse_integer(item.key);
          if (optimizer_depth == 2 && number && std::to_string(*number) == item.key)
            pickle_.integer(*number);
          else
            pickle_.text(item.key);
          this->tree(item, next(optimizer_depth, item.key));
        }
        pickle_.end_dict();
        return;
    }
  }

  PickleWriter& pickle() { return pickle_; }

  void save(const std::string& path) {
    const std::string pickle = pickle_.finish();
    write_file_atomically(path, [&](int fd) {
      ZipWriter zip([&](const void* data, size_t size) { write_all(fd, data, size, path); });
      zip.add("archive/data.pkl", pickle);
      zip.add("archive/byteorder", "little");
      for (size_t key = 0; key < storages_.size(); ++key)
        zip.add(fmt::format("archive/data/{}", key),
                {std::span(storages_[key]->raw(), storages_[key]->bytes())});
      zip.add("archive/version", "3\n");
      zip.finish();
    });
  }

 private:
  // 0: the list optimizer_states, 1: one of its dicts, 2: that dict's "state".
  static int next(int depth, const std::string& key) {
    if (depth == 0) return 1;
    return depth == 1 && key == "state" ? 2 : -1;
  }

  void leaf(const Value& value) {
    if (value.is_bool())
      pickle_.boolean(value.as_bool());
    else if (value.is_int())
      pickle_.integer(value.as_int());
    else if (value.is_double())
      pickle_.number(value.as_double());
    else if (value.is_string())
      pickle_.text(value.as_string());
    else if (value.is_symbol())
      pickle_.text(value.symbol());
    else
      pickle_.none();
  }

  PickleWriter pickle_;
  std::map<const std::byte*, size_t> keys_;
  std::vector<const Tensor*> storages_;
};

}  // namespace

void save_lightning(const std::string& path, const TensorTable& state, const Value& extra,
                    const TensorTable& extra_tensors) {
  Value values = Dict{{"epoch", 0}, {"global_step", 0}};
  values.dict().set("pytorch-lightning_version", lightning_version);
  values.dict().set("state_dict", nullptr);  // its place in the order
  for (const char* key : {"loops", "callbacks"}) values.dict().set(key, Dict());
  for (const char* key : {"optimizer_states", "lr_schedulers"}) values.dict().set(key, List());
  if (!extra.is_null())
    for (const auto& [key, value] : extra.as_dict("the checkpoint's extra values"))
      if (key != "state_dict") values.dict().set(key, value);
  Tree root = tree_of("", values);
  for (const auto& [name, tensor] : extra_tensors) insert(root, name, tensor);

  Archive archive;
  archive.pickle().begin_dict();
  for (const Tree& item : root.children) {
    archive.pickle().text(item.key);
    if (item.key == "state_dict")
      archive.state_dict(state, "model.");
    else
      archive.tree(item, item.key == "optimizer_states" ? 0 : -1);
  }
  archive.pickle().end_dict();
  archive.save(path);
}

void save_state_dict(const std::string& path, const TensorTable& state) {
  Archive archive;
  archive.state_dict(state, "");
  archive.save(path);
}

}  // namespace mase
