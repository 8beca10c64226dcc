// SPDX-License-Identifier: Apache-2.0
#include "mase/base/address.h"

#include <algorithm>
#include <array>

#include "mase/base/text.h"
#include "mase/base/value.h"

namespace mase {
namespace {

constexpr const char* hidden = "***";
constexpr size_t none = std::string::npos;

bool names_a_secret(const std::string& key) {
  static const std::array<const char*, 4> secrets = {"password", "passwd", "passphrase", "pwd"};
  const std::string plain = lower_case(key);
  return std::any_of(secrets.begin(), secrets.end(),
                     [&](const char* word) { return ends_with(plain, word); });
}

std::string percent_decoded(const std::string& text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      plain += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "a=1&sslpassword=2"
std::string masked_query(const std::string& query) {
  std::vector<std::string> pairs = split(query, '&');
  for (std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals != none && names_a_secret(percent_decoded(pair.substr(0, equals))))
      pair = pair.substr(0, equals + 1) + hidden;
  }
  return join(pairs, "&");
}

// What follows "://".
std::string masked_body(const std::string& body) {
  const size_t authority = std::min(body.find_first_of("/?#"), body.size());
  const size_t question = body.find('?');
  size_t at = authority == 0 ? none : body.rfind('@', question);
  // A password with '?' in it.
  if (authority > 0 && at == none && body.substr(0, authority).find(':') != none)
    at = body.rfind('@');
  if (at == none)
    return question == none
               ? body
               : body.substr(0, question + 1) + masked_query(body.substr(question + 1));
  const size_t colon = body.find(':');
  std::string shown = body.substr(0, at);
  if (at > authority)
    shown = hidden;  // a password with '/' or '?' in it: nobody knows where it begins
  else if (colon < at)
    shown = body.substr(0, colon);
  const std::string rest = body.substr(at);
  const size_t later = rest.find('?');
  if (later == none) return shown + rest;
  return shown + rest.substr(0, later + 1) + masked_query(rest.substr(later + 1));
}

// "host=a password=b": all that follows, for values may be quoted in several ways.
std::string masked_keys(const std::string& text) {
  for (size_t equals = text.find('='); equals != none; equals = text.find('=', equals + 1)) {
    size_t end = equals;
    while (end > 0 && text[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 ||
                         text[begin - 1] == '_' || text[begin - 1] == '-'))
      --begin;
    if (!names_a_secret(text.substr(begin, end - begin))) continue;
    const size_t value = text.find_first_not_of(' ', equals + 1);
    if (value == none || starts_with(text.substr(value), hidden)) continue;
    return text.substr(0, equals + 1) + hidden;
  }
  return text;
}

}  // namespace

std::string masked_address(const std::string& address) {
  const size_t scheme = address.find("://");
  if (scheme != none)
    return address.substr(0, scheme + 3) + masked_body(address.substr(scheme + 3));
  const std::string shown = masked_keys(address);
  const size_t colon = shown.find(':'), at = shown.rfind('@');
  if (at == none || colon > at) return shown;
  return shown.substr(0, colon + 1) + hidden + shown.substr(at);
}

std::string without_passwords(const std::string& text) {
  std::string shown;
  size_t done = 0;
  for (size_t scheme = text.find("://"); scheme != none; scheme = text.find("://", done)) {
    const size_t body = scheme + 3;
    size_t begin = scheme;
    while (begin > done && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 ||
                            text[begin - 1] == '+' || text[begin - 1] == '.'))
      --begin;
    const char before = begin > 0 ? text[begin - 1] : ' ';
    const bool quoted = before == '"' || before == '\'';
    size_t end = quoted ? text.find(before, body) : text.find_first_of(" \t\n\"'", body);
    end = std::min(end, text.size());
    shown += text.substr(done, body - done) + masked_body(text.substr(body, end - body));
    done = end;
  }
  return masked_keys(shown + text.substr(done));
}

Value without_passwords(const Value& record) {
  if (record.is_string()) {
    const std::string shown = without_passwords(record.as_string());
    return shown == record.as_string() ? record : Value(shown);
  }
  if (record.is_list()) {
    List list;
    for (const Value& item : record.as_list()) list.push_back(without_passwords(item));
    return list;
  }
  if (record.is_dict()) {
    Dict dict;
    for (const auto& [key, value] : record.as_dict()) dict.set(key, without_passwords(value));
    return dict;
  }
  return record;
}

}  // namespace mase
