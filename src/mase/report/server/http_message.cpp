// SPDX-License-Identifier: Apache-2.0
#include "mase/report/server/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "mase/base/text.h"

namespace mase {
namespace {

ParsedHead refused_head(int status, const std::string& text) {
  ParsedHead head;
  head.state = HeadState::refused;
  head.refusal = {status, "text/plain; charset=utf-8", text + "\n"};
  if (status == 405) head.refusal.headers.emplace_back("Allow", "GET, HEAD");
  return head;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7F); });
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c < 0x7F; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// None where a % is not followed by two digits, or a NUL would come out.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return {};
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return {};
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

bool parse_target(std::string_view target, size_t most_parameters, HttpRequest& request) {
  const size_t mark = target.find('?');
  const auto path = percent_decoded(target.substr(0, mark), false);
  if (!path || !starts_with(*path, "/")) return false;
  request.path = *path;
  if (mark == std::string_view::npos) return true;
  const std::string_view query = target.substr(mark + 1);
  if (static_cast<size_t>(std::count(query.begin(), query.end(), '&')) >= most_parameters)
    return false;
  for (const std::string& part : split(query, '&')) {
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    const auto name = percent_decoded(std::string_view(part).substr(0, equals), true);
    const auto value =
        percent_decoded(std::string_view(part).substr(std::min(equals + 1, part.size())), true);
    if (!name || !value) return false;
    request.query.emplace_back(*name, *value);
  }
  return true;
}

// Decimal digits only; more than a file can have counts as none.
std::optional<uint64_t> byte_position(std::string_view text) {
  if (text.empty() || text.size() > 18) return {};
  uint64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

struct ByteRange {
  bool asked = false, satisfiable = false;
  uint64_t first = 0, last = 0;
};

ByteRange byte_range(std::string_view text, uint64_t size) {
  constexpr std::string_view unit = "bytes=";
  if (!starts_with(text, unit)) return {};
  text.remove_prefix(unit.size());
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {};
  const auto first = byte_position(text.substr(0, dash)),
             last = byte_position(text.substr(dash + 1));
  if (dash == 0) {  // the last so many
    if (!last) return {};
    if (*last == 0 || size == 0) return {true, false, 0, 0};
    return {true, true, size - std::min(*last, size), size - 1};
  }
  const bool open = dash + 1 == text.size();
  if (!first || (!last && !open) || (last && *last < *first)) return {};
  if (*first >= size) return {true, false, 0, 0};
  return {true, true, *first, open ? size - 1 : std::min(*last, size - 1)};
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 416:
      return "Range Not Satisfiable";
    case 431:
      return "Request Header Fields Too Large";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 500 ? "Refused" : "Failed";
  }
}

}  // namespace

ParsedHead parse_head(std::string_view bytes, const HttpLimits& limits) {
  // The longest method we would name, two blanks and the version: more than a target may add.
  constexpr size_t around_target = 24;
  const size_t line_end = bytes.find("\r\n");
  if (std::min(line_end, bytes.size()) > limits.target_bytes + around_target)
    return refused_head(414, "The address is too long.");
  const size_t end = bytes.find("\r\n\r\n");
  if (std::min(end, bytes.size()) > limits.head_bytes)
    return refused_head(431, "The request's headers are too long.");
  // What does not begin like a request (another protocol's greeting) need not be waited for.
  if (!bytes.empty() && (bytes.front() < 'A' || bytes.front() > 'Z'))
    return refused_head(400, "This is not an HTTP request.");
  if (end == std::string_view::npos) return {};

  ParsedHead head;
  head.state = HeadState::complete;
  head.bytes = end + 4;
  HttpRequest& request = head.request;
  const std::string_view line = bytes.substr(0, line_end);
  const size_t first = line.find(' '),
               second = line.find(' ', std::min(first, line.size() - 1) + 1);
  if (first == std::string_view::npos || second == std::string_view::npos)
    return refused_head(400, "The request line is malformed.");
  const std::string_view version = line.substr(second + 1);
  if (!is_token(line.substr(0, first)) || !is_visible(line.substr(first + 1, second - first - 1)))
    return refused_head(400, "The request line is malformed.");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return refused_head(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
  request.method = line.substr(0, first);
  if (request.method != "GET" && request.method != "HEAD")
    return refused_head(405, "This server only shows runs.");
  if (!parse_target(line.substr(first + 1, second - first - 1), limits.parameters, request))
    return refused_head(400, "The address is malformed.");

  request.keep_alive = version == "HTTP/1.1";
  size_t lines = 0, hosts = 0;
  for (size_t at = line_end + 2; at < end + 2;) {
    if (++lines > limits.header_lines) return refused_head(431, "There are too many headers.");
    const size_t stop = bytes.find("\r\n", at), colon = bytes.find(':', at);
    if (colon == std::string_view::npos || colon > stop ||
        !is_token(bytes.substr(at, colon - at)) ||
        !is_field_text(bytes.substr(colon + 1, stop - colon - 1)))
      return refused_head(400, "A header is malformed.");
    const std::string name = lower_case(bytes.substr(at, colon - at));
    const std::string value = strip(bytes.substr(colon + 1, stop - colon - 1));
    if (name == "host") {
      request.host = value;
      ++hosts;
    } else if (name == "cookie") {
      request.cookie = value;
    } else if (name == "range") {
      request.range = request.range.empty() ? value : "several";
    } else if (name == "if-range") {
      // Answers carry no validator, so that none can match: the whole is sent.
      request.range = "several";
    } else if (name == "connection") {
      for (const std::string& part : split(lower_case(value), ','))
        if (strip(part) == "close") request.keep_alive = false;
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      return refused_head(413, "Requests have no body here.");
    }
    at = stop + 2;
  }
  if (hosts > 1 || (hosts == 0 && version == "HTTP/1.1"))
    return refused_head(400, "A request names exactly one host.");
  return head;
}

std::string answer_text(const HttpRequest& request, const HttpAnswer& answer, bool keep_alive) {
  int status = answer.status;
  std::string_view body = answer.body;
  std::string type = answer.type, range;
  if (status == 200) {
    const ByteRange asked = byte_range(request.range, body.size());
    if (asked.asked && asked.satisfiable) {
      status = 206;
      range =
          fmt::format("Content-Range: bytes {}-{}/{}\r\n", asked.first, asked.last, body.size());
      body = body.substr(asked.first, asked.last - asked.first + 1);
    } else if (asked.asked) {
      status = 416;
      range = fmt::format("Content-Range: bytes */{}\r\n", body.size());
      body = "There are no such bytes.\n";
      type = "text/plain; charset=utf-8";
    }
  }
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\n"
      "Connection: {}\r\n{}",
      status, reason_of(status), type, body.size(), keep_alive ? "keep-alive" : "close", range);
  for (const auto& [name, value] : answer.headers) text += name + ": " + value + "\r\n";
  text += "\r\n";
  if (request.method != "HEAD") text += body;
  return text;
}

}  // namespace mase
