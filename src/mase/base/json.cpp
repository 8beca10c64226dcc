// SPDX-License-Identifier: Apache-2.0
// JSON in and out, through nlohmann-json's event interface. Its parser reports no positions for
// values, so the input iterator counts lines as the parser reads.
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "mase/base/file.h"
#include "mase/base/value.h"

namespace mase {
namespace {

constexpr size_t deepest_value = 512;

struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  int* line;

  const char& operator*() const { return *at; }
  CountingIterator& operator++() {
    if (*at == '\n') ++*line;
    ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::shared_ptr<const std::string> file, const int* line) : file_(file), line_(line) {}

  bool null() override { return put(Value()); }
  bool boolean(bool b) override { return put(b); }
  bool number_integer(number_integer_t i) override { return put(static_cast<int64_t>(i)); }
  bool number_unsigned(number_unsigned_t u) override {
    if (u > static_cast<uint64_t>(INT64_MAX)) return put(static_cast<double>(u));
    return put(static_cast<int64_t>(u));
  }
  bool number_float(number_float_t d, const string_t&) override { return put(d); }
  bool string(string_t& s) override { return put(s); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Dict()); }
  bool key(string_t& k) override {
    if (is_written(k))
      throw Error(here(), "", fmt::format("the key '{}' is written twice", printable_key(k)));
    keys_.push_back(k);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(List()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    throw Error(here(), "", "not valid JSON");
  }

  Value take() { return std::move(result_); }

 private:
  Position here() const { return {file_, *line_, 0}; }
  static std::string printable_key(const std::string& key) { return key.substr(0, 80); }

  // Large objects get a table, so that a hostile one does not cost the square of its size.
  bool is_written(const std::string& key) {
    constexpr size_t many = 32;
    const Dict& dict = open_.back().as_dict();
    if (dict.size() < many) return dict.contains(key);
    std::unordered_set<std::string>& seen = seen_.back();
    if (seen.empty())
      for (const auto& [known, value] : dict) seen.insert(known);
    return !seen.insert(key).second;
  }

  bool open(Value container) {
    if (open_.size() >= deepest_value) throw Error(here(), "", "values are nested too deeply");
    open_.push_back(container.set_position(here()));
    seen_.emplace_back();
    return true;
  }

  bool close() {
    Value value = std::move(open_.back());
    open_.pop_back();
    seen_.pop_back();
    if (value.is_dict() && value.as_dict().size() == 1) {  // what JSON cannot say itself
      const auto& [key, inner] = *value.as_dict().begin();
      if (key == "$symbol" && inner.is_string()) {
        value = Value(Symbol{std::string(inner.as_string())});
      } else if (key == "$float" && inner.is_string()) {
        const std::string text = inner.as_string();
        value = Value(text == "nan" ? std::nan("") : text == "inf" ? INFINITY : -INFINITY);
      }
    }
    return put(std::move(value));
  }

  bool put(Value value) {
    value.set_position(here());
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().is_list()) {
      open_.back().list().push_back(std::move(value));
    } else {
      open_.back().dict().add(keys_.back(), std::move(value));
      keys_.pop_back();
    }
    return true;
  }

  std::shared_ptr<const std::string> file_;
  const int* line_;
  std::vector<Value> open_;
  std::vector<std::unordered_set<std::string>> seen_;  // keys of open objects that have many
  std::vector<std::string> keys_;
  Value result_;
};

nlohmann::ordered_json to_nlohmann(const Value& value) {
  using Json = nlohmann::ordered_json;
  if (value.is_null()) return nullptr;
  if (value.is_bool()) return value.as_bool();
  if (value.is_int()) return value.as_int();
  if (value.is_double()) {
    const double number = value.as_double();
    if (std::isnan(number)) return {{"$float", "nan"}};
    if (std::isinf(number)) return {{"$float", number > 0 ? "inf" : "-inf"}};
    return number;
  }
  if (value.is_string()) return value.as_string();
  if (value.is_symbol()) return {{"$symbol", value.symbol()}};
  if (value.is_list()) {
    Json list = Json::array();
    for (const Value& item : value.as_list()) list.push_back(to_nlohmann(item));
    return list;
  }
  Json dict = Json::object();
  for (const auto& [key, item] : value.as_dict()) dict[key] = to_nlohmann(item);
  return dict;
}

}  // namespace

Value parse_json(const std::string& text, const std::string& file_name) {
  int line = 1;
  Builder builder(std::make_shared<const std::string>(file_name), &line);
  const char* begin = text.data();
  nlohmann::json::sax_parse(CountingIterator{begin, &line},
                            CountingIterator{begin + text.size(), &line}, &builder);
  return builder.take();
}

Value read_json(const std::string& path) { return parse_json(read_text_file(path), path); }

std::string to_json(const Value& value, int indent) {
  return to_nlohmann(value).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mase
