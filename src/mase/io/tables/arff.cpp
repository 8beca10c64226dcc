// SPDX-License-Identifier: Apache-2.0
// ARFF (Weka, OpenML): a header of @attribute lines, then comma-separated rows. Numeric, nominal
// and string attributes; sparse rows are refused.
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "mase/io/tables/delimited.h"
#include "mase/io/tables/table_source.h"

namespace mase::arff_reader {
namespace {

constexpr size_t most_attributes = 65536;

// The next word or quoted text of a header line; `at` moves behind it.
std::string take_word(const std::string& line, size_t& at, const std::string& place) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  std::string word;
  if (at < line.size() && (line[at] == '\'' || line[at] == '"')) {
    const char quote = line[at++];
    while (at < line.size() && line[at] != quote) {
      if (line[at] == '\\' && at + 1 < line.size()) ++at;
      word += line[at++];
    }
    if (at == line.size()) throw Error(place, "a quote is never closed");
    ++at;
    return word;
  }
  constexpr std::string_view ends = " \t,{}";  // strchr would also stop at a zero byte
  while (at < line.size() && ends.find(line[at]) == ends.npos) word += line[at++];
  return word;
}

class ArffSource : public DelimitedSource {
 public:
  explicit ArffSource(const std::string& path) : DelimitedSource(path, true) {
    read_header();
    collect_words();
    number_categories();
    start();
  }

 private:
  void read_header() {
    std::vector<TableColumn> columns;
    std::set<std::string> names;
    while (true) {
      const std::string place = fmt::format("{}:{}", path_, reader_.line());
      const auto line = reader_.next_line();
      if (!line) throw Error(path_, "the file ends before @data");
      const std::string text = strip(*line);
      if (text.empty() || text[0] == '%') continue;
      const std::string lowered = lower_case(text.substr(0, 10));
      if (starts_with(lowered, "@relation")) continue;
      if (starts_with(lowered, "@data")) break;
      if (!starts_with(lowered, "@attribute"))
        throw Error(place, "neither @relation, @attribute nor @data");
      columns.push_back(read_attribute(text, place));
      if (!names.insert(columns.back().name).second)
        throw Error(place,
                    fmt::format("two attributes are named '{}'", printable(columns.back().name)));
      if (columns.size() > most_attributes) throw Error(place, "too many attributes");
    }
    if (columns.empty()) throw Error(path_, "there is no @attribute");
    set_columns(std::move(columns));
  }

  TableColumn read_attribute(const std::string& text, const std::string& place) {
    size_t at = std::strlen("@attribute");
    TableColumn column;
    column.name = take_word(text, at, place);
    if (column.name.empty()) throw Error(place, "an attribute has no name");
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    if (at < text.size() && text[at] == '{') {
      column.text = column.declared = true;
      ++at;
      while (true) {
        const std::string word = take_word(text, at, place);
        while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
        if (at == text.size()) throw Error(place, "a list of categories is never closed");
        if (text[at] == '{') throw Error(place, "a list of categories holds '{'");
        if (!word.empty() || text[at] == ',') column.categories.push_back(word);
        if (column.categories.size() > most_categories) throw Error(place, "too many categories");
        if (text[at] == '}') return column;
        if (text[at] == ',') ++at;
      }
    }
    const std::string kind = lower_case(take_word(text, at, place));
    if (kind == "numeric" || kind == "real" || kind == "integer") return column;
    if (kind == "string") {
      column.text = true;
      return column;
    }
    if (kind == "date" || kind == "relational") {
      column.problem = fmt::format("is of type {}, which is not supported", kind);
      return column;
    }
    throw Error(place,
                fmt::format("attribute '{}' has the unknown type '{}'", printable(column.name),
                            printable(kind)),
                "known: numeric, real, integer, string, {a,b,c}");
  }

  // Counts the rows and gathers the words of string attributes.
  void collect_words() {
    std::vector<std::set<std::string>> words(columns_.size());
    const int64_t data_line = reader_.line();
    while (reader_.next(record_)) {
      check_width();
      for (size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].text && !columns_[i].declared && words[i].size() <= most_categories &&
            (record_.quoted[i] || record_.cells[i] != "?"))
          words[i].insert(record_.cells[i]);
      ++rows_;
    }
    if (rows_ == 0)
      throw Error(fmt::format("{}:{}", path_, data_line), "there are no rows after @data");
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].text || columns_[i].declared) continue;
      if (words[i].size() > most_categories) columns_[i].problem = too_many_words();
      columns_[i].categories.assign(words[i].begin(), words[i].end());
    }
    set_columns(std::move(columns_));
  }

  void start() {
    reader_.rewind();
    while (const auto line = reader_.next_line())
      if (starts_with(lower_case(strip(*line)), "@data")) return;
  }

  void check_width() const override {
    if (!record_.quoted[0] && starts_with(record_.cells[0], "{"))
      throw Error(here(), "sparse ARFF rows are not supported", "save the data set as dense ARFF");
    check_cell_count(columns_.size());
  }

  double cell_value(size_t column) const override {
    if (!columns_[column].text) return number_in(column, "attribute");
    const std::string& cell = record_.cells[column];
    if (!record_.quoted[column] && strip(cell) == "?") return missing_cell;
    auto found = number_of_[column].find(cell);
    if (found == number_of_[column].end()) found = number_of_[column].find(strip(cell));
    if (found != number_of_[column].end()) return found->second;
    throw Error(here(),
                fmt::format("attribute '{}': '{}' is not one of its categories",
                            printable(columns_[column].name), printable(cell.substr(0, 40))),
                suggestion(cell.substr(0, 40), columns_[column].categories));
  }
};

const Register<TableReaderRecord> registered{
    {.name = "arff",
     .summary = "an ARFF table",
     .extensions = {".arff", ".arff.gz"},
     .open = [](const std::string& path, const TableOptions&) {
       return std::unique_ptr<TableSource>(new ArffSource(path));
     }}};

}  // namespace
}  // namespace mase::arff_reader
