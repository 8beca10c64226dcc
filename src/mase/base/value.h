// SPDX-License-Identifier: Apache-2.0
// One config value type for TOML, JSON, pass arguments, results and metadata. Every value remembers
// where it was written, so that any later error can name file and line. Dicts keep their order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mase/base/error.h"

namespace mase {

class Value;

// A word that prints without quotes, such as torch.float32 in a metadata report.
struct Symbol {
  std::string text;
  bool operator==(const Symbol&) const = default;
};

// An insertion-ordered dictionary. Config dicts are small: linear search wins.
class Dict {
 public:
  using Item = std::pair<std::string, Value>;

  Dict() = default;
  Dict(std::initializer_list<Item> items);

  bool contains(const std::string& key) const { return find(key) != nullptr; }
  const Value* find(const std::string& key) const;
  Value* find(const std::string& key);
  Value& operator[](const std::string& key);  // adds null if absent
  const Value& at(const std::string& key) const;
  void set(const std::string& key, Value value);
  void add(std::string key, Value value);  // the caller knows that the key is new: no search
  bool erase(const std::string& key);

  // Defined below Value: their bodies need it whole.
  using Items = std::vector<Item>;
  size_t size() const;
  bool empty() const;
  Items::const_iterator begin() const;
  Items::const_iterator end() const;
  Items::iterator begin();
  Items::iterator end();
  std::vector<std::string> keys() const;
  bool operator==(const Dict& other) const;  // in any order

 private:
  Items items_;
};

using List = std::vector<Value>;

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool b) : data_(b) {}
  Value(int i) : data_(static_cast<int64_t>(i)) {}
  Value(int64_t i) : data_(i) {}
  Value(size_t i) : data_(static_cast<int64_t>(i)) {}
  Value(double d) : data_(d) {}
  Value(const char* s) : data_(std::string(s)) {}
  Value(std::string s) : data_(std::move(s)) {}
  Value(Symbol s) : data_(std::move(s)) {}
  Value(List list) : data_(std::move(list)) {}
  Value(Dict dict) : data_(std::move(dict)) {}
  static Value of(const std::vector<int64_t>& numbers);
  static Value of(const std::vector<std::string>& texts);

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_double() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  bool is_symbol() const { return std::holds_alternative<Symbol>(data_); }
  bool is_list() const { return std::holds_alternative<List>(data_); }
  bool is_dict() const { return std::holds_alternative<Dict>(data_); }
  const char* type_name() const;  // "integer", "text", ... as error messages say it

  // Typed access. A value of another type is an error at its position; `what` names the value.
  bool as_bool(const std::string& what = "") const;
  int64_t as_int(const std::string& what = "") const;
  double as_double(const std::string& what = "") const;  // integers too
  const std::string& as_string(const std::string& what = "") const;
  const List& as_list(const std::string& what = "") const;
  const Dict& as_dict(const std::string& what = "") const;
  std::vector<int64_t> as_int_list(const std::string& what = "") const;
  std::vector<std::string> as_string_list(const std::string& what = "") const;
  const std::string& symbol() const { return std::get<Symbol>(data_).text; }

  List& list();  // becomes an empty list if null
  Dict& dict();  // becomes an empty dict if null

  // Dict shorthands: member or null.
  const Value& operator[](const std::string& key) const;
  Value& operator[](const std::string& key) { return dict()[key]; }

  const Position& position() const { return position_; }
  Value& set_position(Position position) {
    position_ = std::move(position);
    return *this;
  }

  bool operator==(const Value& other) const { return data_ == other.data_; }  // positions aside

 private:
  [[noreturn]] void wrong_type(const char* wanted, const std::string& what) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, Symbol, List, Dict> data_;
  Position position_;
};

inline size_t Dict::size() const { return items_.size(); }
inline bool Dict::empty() const { return items_.empty(); }
inline Dict::Items::const_iterator Dict::begin() const { return items_.begin(); }
inline Dict::Items::const_iterator Dict::end() const { return items_.end(); }
inline Dict::Items::iterator Dict::begin() { return items_.begin(); }
inline Dict::Items::iterator Dict::end() { return items_.end(); }

// Texts and files. Errors carry file and line.
Value parse_toml(const std::string& text, const std::string& file_name);
Value parse_json(const std::string& text, const std::string& file_name);
Value read_toml(const std::string& path);
Value read_json(const std::string& path);
// Symbols and non-finite numbers, which JSON lacks, are written as {"$symbol": ..}, {"$float": ..}
// and read back as what they were.
std::string to_json(const Value& value, int indent = -1);
std::string to_toml(const Value& value);

// As Python prints: repr() on one line, pprint.pformat() broken at `width` with sorted keys.
std::string python_repr(const Value& value);
std::string python_float(double number);
std::string python_pprint(const Value& value, int width = 80);

}  // namespace mase
