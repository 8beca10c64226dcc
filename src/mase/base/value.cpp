// SPDX-License-Identifier: Apache-2.0
#include "mase/base/value.h"

#include <algorithm>
#include <cmath>

namespace mase {

Dict::Dict(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

const Value* Dict::find(const std::string& key) const {
  for (const Item& item : items_)
    if (item.first == key) return &item.second;
  return nullptr;
}

Value* Dict::find(const std::string& key) {
  return const_cast<Value*>(static_cast<const Dict*>(this)->find(key));
}

Value& Dict::operator[](const std::string& key) {
  if (Value* value = find(key)) return *value;
  items_.emplace_back(key, Value());
  return items_.back().second;
}

const Value& Dict::at(const std::string& key) const {
  const Value* value = find(key);
  MASE_CHECK(value, "no key '{}'", key);
  return *value;
}

void Dict::set(const std::string& key, Value value) { (*this)[key] = std::move(value); }

void Dict::add(std::string key, Value value) {
  items_.emplace_back(std::move(key), std::move(value));
}

bool Dict::erase(const std::string& key) {
  auto item = std::find_if(items_.begin(), items_.end(),
                           [&](const Item& candidate) { return candidate.first == key; });
  if (item == items_.end()) return false;
  items_.erase(item);
  return true;
}

std::vector<std::string> Dict::keys() const {
  std::vector<std::string> keys;
  for (const Item& item : items_) keys.push_back(item.first);
  return keys;
}

bool Dict::operator==(const Dict& other) const {
  return size() == other.size() && std::all_of(begin(), end(), [&](const Item& item) {
           const Value* value = other.find(item.first);
           return value && *value == item.second;
         });
}

Value Value::of(const std::vector<int64_t>& numbers) {
  return List(numbers.begin(), numbers.end());
}
Value Value::of(const std::vector<std::string>& texts) { return List(texts.begin(), texts.end()); }

const char* Value::type_name() const {
  const char* names[] = {"nothing", "true/false", "an integer", "a number",
                         "text",    "a symbol",   "a list",     "a table"};
  return names[data_.index()];
}

void Value::wrong_type(const char* wanted, const std::string& what) const {
  throw Error(position_, what, fmt::format("expected {}, got {}", wanted, type_name()));
}

bool Value::as_bool(const std::string& what) const {
  if (!is_bool()) wrong_type("true or false", what);
  return std::get<bool>(data_);
}

int64_t Value::as_int(const std::string& what) const {
  if (!is_int()) wrong_type("an integer", what);
  return std::get<int64_t>(data_);
}

double Value::as_double(const std::string& what) const {
  if (is_int()) return static_cast<double>(std::get<int64_t>(data_));
  if (!is_double()) wrong_type("a number", what);
  return std::get<double>(data_);
}

const std::string& Value::as_string(const std::string& what) const {
  if (!is_string()) wrong_type("text", what);
  return std::get<std::string>(data_);
}

const List& Value::as_list(const std::string& what) const {
  if (!is_list()) wrong_type("a list", what);
  return std::get<List>(data_);
}

const Dict& Value::as_dict(const std::string& what) const {
  if (!is_dict()) wrong_type("a table", what);
  return std::get<Dict>(data_);
}

std::vector<int64_t> Value::as_int_list(const std::string& what) const {
  std::vector<int64_t> numbers;
  for (const Value& value : as_list(what)) numbers.push_back(value.as_int(what));
  return numbers;
}

std::vector<std::string> Value::as_string_list(const std::string& what) const {
  std::vector<std::string> texts;
  for (const Value& value : as_list(what)) texts.push_back(value.as_string(what));
  return texts;
}

List& Value::list() {
  if (is_null()) data_ = List();
  MASE_CHECK(is_list(), "value is {}", type_name());
  return std::get<List>(data_);
}

Dict& Value::dict() {
  if (is_null()) data_ = Dict();
  MASE_CHECK(is_dict(), "value is {}", type_name());
  return std::get<Dict>(data_);
}

const Value& Value::operator[](const std::string& key) const {
  static const Value null;
  if (!is_dict()) return null;
  const Value* value = std::get<Dict>(data_).find(key);
  return value ? *value : null;
}

}  // namespace mase
