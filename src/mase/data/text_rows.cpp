// SPDX-License-Identifier: Apache-2.0
#include "mase/data/text_rows.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/text/unicode.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_text_rows = 50'000'000;
constexpr const char* usual_first[] = {"text",    "sentence",  "sentence1",
                                       "premise", "question1", "question"};
constexpr const char* usual_second[] = {"sentence2", "hypothesis", "question2", "text_pair",
                                        "sentence"};
constexpr const char* usual_label[] = {"label",        "labels", "class", "gold_label",
                                       "is_duplicate", "score",  "target"};

std::string text_of_file(const std::string& path) {
  std::string text = read_text_file(path);
  if (starts_with(text, "\xEF\xBB\xBF")) text.erase(0, 3);
  if (const size_t bad = first_invalid_utf8(text); bad < text.size())
    throw Error(
        fmt::format(
            "{}:{}", path,
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1),
        "is not UTF-8", "convert the file, for instance with iconv");
  return text;
}

// Cells of a file, record by record, with the line each record begins in.
class Records {
 public:
  Records(const std::string& path, char separator)
      : path_(path), separator_(separator), text_(text_of_file(path)) {}

  bool next(std::vector<std::string>& cells) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {  // empty lines
      line_ += text_[at_] == '\n';
      ++at_;
    }
    if (at_ >= text_.size()) return false;
    begin_ = line_;
    cells.clear();
    for (bool more = true; more;) more = cell(cells.emplace_back());
    return true;
  }
  std::string place() const { return fmt::format("{}:{}", path_, begin_); }

 private:
  // Whether another cell of this record follows.
  bool cell(std::string& to) {
    if (separator_ == ',' && at_ < text_.size() && text_[at_] == '"') {
      for (++at_;; ++at_) {
        if (at_ >= text_.size()) throw Error(place(), "a quote is not closed");
        if (text_[at_] == '"') {
          if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
          ++at_;
        }
        line_ += text_[at_] == '\n';
        to += text_[at_];
      }
      ++at_;
      if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' &&
          text_[at_] != '\r')
        throw Error(place(), "a cell goes on behind its closing quote");
    } else {
      const size_t end = std::min(text_.find_first_of(ends(), at_), text_.size());
      to = text_.substr(at_, end - at_);
      at_ = end;
    }
    if (at_ < text_.size() && text_[at_] == separator_) {
      ++at_;
      return true;
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++line_;
    }
    return false;
  }
  std::string ends() const { return std::string{separator_, '\n', '\r'}; }

  std::string path_;
  char separator_;
  std::string text_;
  size_t at_ = 0;
  int64_t line_ = 1, begin_ = 1;
};

// Where the texts and the label stand.
struct Places {
  std::vector<size_t> texts;
  size_t label = 0;
};

std::optional<size_t> place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return {};
  return static_cast<size_t>(found - names.begin());
}

template <size_t count>
std::optional<size_t> first_known(const std::vector<std::string>& names,
                                  const char* const (&known)[count],
                                  std::optional<size_t> but = {}) {
  for (const char* name : known)
    if (const auto found = place_of(names, name); found && found != but) return found;
  return {};
}

Places named_places(const std::string& path, const std::vector<std::string>& names,
                    const TextColumns& columns) {
  Places places;
  const auto need = [&](const std::string& name) {
    const auto found = place_of(names, name);
    if (!found)
      throw Error(path, fmt::format("has no column '{}'", printable(name)),
                  suggestion(name, names));
    return *found;
  };
  for (const std::string& name : columns.texts) places.texts.push_back(need(name));
  const auto label =
      columns.label.empty() ? first_known(names, usual_label) : std::optional(need(columns.label));
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + printable(name);
  if (!label)
    throw Error(
        path, "which column is the label is not said",
        "name it, or its number in a file without a header: --dataset-label; columns: " + known);
  places.label = *label;
  if (places.texts.empty()) {
    const auto first = first_known(names, usual_first);
    if (!first)
      throw Error(
          path, "which column is the text is not said",
          "name it, or its number in a file without a header: --dataset-text; columns: " + known);
    places.texts = {*first};
    if (const auto second = first_known(names, usual_second, first); second && second != label)
      places.texts.push_back(*second);
  }
  return places;
}

std::optional<Places> numbered_places(const std::string& path, const TextColumns& columns) {
  std::vector<size_t> numbers;
  for (const std::string& name : columns.texts) {
    const auto number = parse_integer(name);
    if (!number) return {};
    if (*number < 1 || *number > 1000)
      throw Error(path, fmt::format("column {}", *number), "columns are counted from 1 on");
    numbers.push_back(static_cast<size_t>(*number - 1));
  }
  const auto label = parse_integer(columns.label);
  if (numbers.empty() || !label) return {};
  if (*label < 1 || *label > 1000)
    throw Error(path, fmt::format("column {}", *label), "columns are counted from 1 on");
  return Places{numbers, static_cast<size_t>(*label - 1)};
}

void take_row(TextRows& rows, const Places& places, std::vector<std::string>& cells,
              const std::string& place) {
  const auto cell = [&](size_t at) -> std::string& {
    if (at >= cells.size())
      throw Error(place, fmt::format("has {} cells, column {} is wanted", cells.size(), at + 1));
    return cells[at];
  };
  if (rows.size() >= most_text_rows) throw Error(place, "too many rows");
  rows.labels.push_back(cell(places.label));
  if (rows.labels.back().empty()) throw Error(place, "has no label");
  rows.first.push_back(cell(places.texts[0]));
  if (places.texts.size() > 1) rows.second.push_back(cell(places.texts[1]));
}

TextRows read_delimited(const std::string& path, char separator, const TextColumns& columns) {
  Records records(path, separator);
  std::vector<std::string> cells;
  std::optional<Places> places = numbered_places(path, columns);
  if (!places) {
    if (!records.next(cells)) throw Error(path, "is empty");
    places = named_places(path, cells, columns);
  }
  TextRows rows;
  while (records.next(cells)) take_row(rows, *places, cells, records.place());
  return rows;
}

std::string plain_text(const Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_int()) return std::to_string(value.as_int());
  return to_json(value);
}

TextRows read_json_lines(const std::string& path, const TextColumns& columns) {
  const std::string text = text_of_file(path);
  TextRows rows;
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string own = text.substr(at, end - at);
    at = end + 1;
    const std::string place = fmt::format("{}:{}", path, ++line);
    if (own.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Value entry = parse_json(own, place);
    if (!entry.is_dict()) throw Error(place, "is no table of columns");
    const std::vector<std::string> names = entry.as_dict().keys();
    const Places places = named_places(place, names, columns);
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(plain_text(entry[name]));
    const bool pairs = places.texts.size() > 1;
    if (rows.size() > 0 && pairs != !rows.second.empty())
      throw Error(place, pairs ? "has two texts, lines before have one"
                               : "has one text, lines before have two");
    take_row(rows, places, cells, place);
  }
  return rows;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) entries.push_back(entry.path());
  if (failure) throw Error(folder.string(), "cannot be read: " + failure.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// FOLDER/CLASS/*.txt
TextRows read_class_folders(const std::string& path) {
  TextRows rows;
  std::error_code none;
  for (const fs::path& folder : sorted_entries(path)) {
    if (!fs::is_directory(folder, none)) continue;
    for (const fs::path& file : sorted_entries(folder)) {
      if (lower_case(file.extension().string()) != ".txt") continue;
      if (rows.size() >= most_text_rows) throw Error(path, "too many files");
      rows.first.push_back(text_of_file(file.string()));
      rows.labels.push_back(folder.filename().string());
    }
  }
  if (rows.size() == 0)
    throw Error(path, "holds no texts", "there is a folder for each class: CLASS/NAME.txt");
  return rows;
}

}  // namespace

TextRows read_lines(const std::string& path) {
  const std::string text = text_of_file(path);
  TextRows rows;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t tab = line.find('\t');
    const bool pair = tab != std::string::npos;
    const std::string place = fmt::format("{}:{}", path, rows.size() + 1);
    if (line.find_first_not_of(" \t") == std::string::npos)
      throw Error(place, "has no tokens", "leave empty lines out");
    if (rows.size() > 0 && pair == rows.second.empty())
      throw Error(place, pair ? "has two texts, lines before have one"
                              : "has one text, lines before have two");
    rows.first.push_back(line.substr(0, tab));
    if (pair) rows.second.push_back(line.substr(tab + 1));
  }
  if (rows.size() == 0) throw Error(path, "holds no lines");
  return rows;
}

TextRows read_text_rows(const std::string& path, const TextColumns& columns) {
  std::error_code none;
  if (columns.texts.size() > 2)
    throw Error("--dataset-text", fmt::format("{} columns", columns.texts.size()),
                "name one or two");
  if (fs::is_directory(path, none)) return read_class_folders(path);
  const std::string suffix = lower_case(fs::path(path).extension().string());
  TextRows rows;
  if (suffix == ".csv")
    rows = read_delimited(path, ',', columns);
  else if (suffix == ".tsv" || suffix == ".txt")
    rows = read_delimited(path, '\t', columns);
  else if (suffix == ".jsonl" || suffix == ".json" || suffix == ".ndjson")
    rows = read_json_lines(path, columns);
  else
    throw Error(path, "is no file of sentences with labels",
                "give .csv, .tsv, .jsonl, or a folder with a folder of .txt files for each class");
  if (rows.size() == 0) throw Error(path, "holds no rows");
  return rows;
}

}  // namespace mase
