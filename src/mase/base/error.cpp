// SPDX-License-Identifier: Apache-2.0
// Formats errors as "place: cause; remedy".
#include "mase/base/error.h"

namespace mase {
namespace {

std::string line_of(const std::string& place, const std::string& cause, const std::string& remedy) {
  std::string text = place.empty() ? cause : place + ": " + cause;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

std::string place_of(const Position& position, const std::string& path) {
  std::string place = position.str();
  if (place.empty()) return path;
  return path.empty() ? place : place + ": " + path;
}

}  // namespace

std::string Position::str() const {
  if (!file) return "";
  return line > 0 ? fmt::format("{}:{}", *file, line) : *file;
}

Error::Error(std::string place, std::string cause, std::string remedy)
    : std::runtime_error(line_of(place, cause, remedy)),
      place_(std::move(place)),
      cause_(std::move(cause)),
      remedy_(std::move(remedy)) {}

Error::Error(const Position& position, const std::string& path, std::string cause,
             std::string remedy)
    : Error(place_of(position, path), std::move(cause), std::move(remedy)) {}

Error Error::all(const std::vector<Error>& problems) {
  MASE_CHECK(!problems.empty(), "no problems to report");
  if (problems.size() == 1) return problems.front();
  std::string lines;
  for (const Error& problem : problems) {
    if (!lines.empty()) lines += '\n';
    lines += problem.what();
  }
  Error merged("", lines);
  std::vector<Error> parts;  // of merged ones the parts, so that each has one mistake
  for (const Error& problem : problems)
    for (const Error& part : problem.parts()) parts.push_back(part);
  merged.parts_ = std::make_shared<const std::vector<Error>>(std::move(parts));
  return merged;
}

Error Error::as(Mistake mistake) const {
  Error result = *this;
  result.mistake_ = mistake;
  return result;
}

std::vector<Error> Error::parts() const { return parts_ ? *parts_ : std::vector<Error>{*this}; }

void Problems::throw_if_any() const {
  if (!errors_.empty()) throw Error::all(errors_);
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  // The path up to src/ is the builder's business.
  const std::string path = file;
  const size_t root = path.rfind("src/mase/");
  throw InternalError(fmt::format("internal error at {}:{}: {}: {}",
                                  root == std::string::npos ? path : path.substr(root), line,
                                  condition, message));
}

}  // namespace mase
