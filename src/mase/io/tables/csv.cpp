// SPDX-License-Identifier: Apache-2.0
// CSV: comma, semicolon or tab; with or without a header; quotes, CRLF, missing values; gzip. The
// file is read twice: once for the kinds of its columns, once for the rows. A column is text when
// most of its cells are; a stray word among numbers is an error with its line. Decimal commas (in
// tables separated by something else, or in quotes) are read where they can mean nothing else.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "mase/io/tables/delimited.h"
#include "mase/io/tables/table_source.h"

namespace mase::csv_reader {
namespace {

bool is_number(const std::string& cell, bool quoted, bool& missing) {
  missing = false;
  if (quoted && !cell.empty()) {  // "12" in quotes is still a number, "NA" a word
    return table_number(cell, missing).has_value() && !missing;
  }
  return table_number(cell, missing).has_value();
}

// 1,5 as 1.5; nothing for what is not a number with a decimal comma.
std::optional<std::string> with_point(const std::string& cell) {
  const size_t comma = cell.find(',');
  const auto digit = [&](size_t at) {
    return at < cell.size() && std::isdigit(static_cast<unsigned char>(cell[at])) != 0;
  };
  if (comma == std::string::npos || comma == 0 || !digit(comma - 1) || !digit(comma + 1) ||
      cell.find('.') != std::string::npos || cell.find(',', comma + 1) != std::string::npos)
    return {};
  std::string text = cell;
  text[comma] = '.';
  bool missing = false;
  if (!table_number(text, missing) || missing) return {};
  return text;
}

// 1,234 could be a thousand and more as well.
bool may_be_thousands(const std::string& cell) {
  const std::string text = strip(cell);
  const size_t comma = text.find(','), first = text.find_first_of("123456789");
  return first < comma && comma - first <= 3 && text.size() == comma + 4 &&
         text.find_first_of("eE") == std::string::npos;
}

// Whether a separator leaves nothing but numbers, with commas in them perhaps: 1,5;2,5.
bool all_numbers(const std::string& line, char separator) {
  const std::vector<std::string> cells = split(line, separator);
  return std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
    bool missing = false;
    return table_number(cell, missing) || with_point(strip(cell));
  });
}

class CsvSource : public DelimitedSource {
 public:
  CsvSource(const std::string& path, const TableOptions& options)
      : DelimitedSource(path, false), absent_(options.missing) {
    reader_.set_separator(guess_separator());
    survey(options);
    start();
  }

 private:
  struct Survey {
    int64_t numbers = 0, words = 0, missing = 0;
    int64_t points = 0;               // of the numbers, those with a decimal point
    int64_t commas = 0, unclear = 0;  // numbers with a decimal comma; those that may be thousands
    std::string example = {};
    std::unordered_map<std::string, int64_t> distinct;
    bool overflow = false;
  };

  void check_width() const override {
    if (record_.count != columns_.size()) throw Error(here(), "the file changes while it is read");
  }

  char guess_separator() {
    const auto line = reader_.next_line();
    reader_.rewind();
    if (!line) throw Error(path_, "the file is empty");
    char best = ',';
    for (const char candidate : {';', '\t'}) {
      const auto count = std::count(line->begin(), line->end(), candidate);
      if (count > std::count(line->begin(), line->end(), best) ||
          (count > 0 && best == ',' && all_numbers(*line, candidate)))
        best = candidate;
    }
    return best;
  }

  // The first record names the columns unless it holds a number. scikit-learn's own files begin
  // with rows, features and class names.
  std::vector<TableColumn> read_header() {
    if (!reader_.next(record_)) throw Error(path_, "the file is empty");
    if (starts_with(record_.cells[0], "\xEF\xBB\xBF")) record_.cells[0].erase(0, 3);
    bool any_number = false, missing = false;
    for (size_t i = 0; i < record_.count; ++i)
      any_number |= (is_number(record_.cells[i], record_.quoted[i], missing) && !missing) ||
                    with_point(record_.cells[i]);
    std::vector<TableColumn> columns;
    if (!any_number) {
      header_ = true;
      std::map<std::string, int> seen;
      for (size_t i = 0; i < record_.count; ++i) {
        std::string name = strip(record_.cells[i]);
        if (name.empty()) name = fmt::format("column_{}", i + 1);
        if (++seen[name] > 1)
          throw Error(here(), fmt::format("two columns are named '{}'", printable(name)));
        columns.push_back({.name = name});
      }
      return columns;
    }
    const DelimitedRecord first = record_;
    const auto features = first.count > 1 ? parse_integer(first.cells[1]) : std::nullopt;
    if (features && *features > 0 && *features < 65536 && parse_integer(first.cells[0]) &&
        reader_.next(record_) && record_.count == static_cast<size_t>(*features) + 1 &&
        first.count > 3 && !is_number(first.cells[2], false, missing)) {
      header_ = true;
      for (int64_t i = 1; i <= *features; ++i)
        columns.push_back({.name = fmt::format("column_{}", i)});
      columns.push_back({.name = "target"});
      return columns;
    }
    for (size_t i = 0; i < first.count; ++i)
      columns.push_back({.name = fmt::format("column_{}", i + 1)});
    return columns;
  }

  void survey(const TableOptions& options) {
    std::vector<TableColumn> columns = read_header();
    start();
    std::vector<Survey> surveys(columns.size());
    comma_.assign(columns.size(), false);
    while (reader_.next(record_)) {
      check_cell_count(columns.size());
      for (size_t i = 0; i < columns.size(); ++i) {
        bool missing = false;
        const bool number = is_number(record_.cells[i], record_.quoted[i], missing);
        if (missing || absent(i)) {
          ++surveys[i].missing;
          continue;
        }
        const std::string& cell = record_.cells[i];
        if (number) {
          ++surveys[i].numbers;
          surveys[i].points += cell.find('.') != std::string::npos;
        } else if (with_point(cell)) {
          if (++surveys[i].commas == 1) surveys[i].example = cell.substr(0, 40);
          surveys[i].unclear += may_be_thousands(cell);
        } else {
          ++surveys[i].words;
        }
        if ((number && !forced(columns[i].name, options)) || surveys[i].overflow) continue;
        ++surveys[i].distinct[record_.cells[i]];
        surveys[i].overflow = surveys[i].distinct.size() > most_categories;
      }
      ++rows_;
    }
    if (rows_ == 0) throw Error(path_, "the file has a header but no rows");
    for (size_t i = 0; i < columns.size(); ++i) {
      Survey& survey = surveys[i];
      columns[i].complete = survey.missing == 0;
      const bool text = forced(columns[i].name, options);
      if (!text && survey.commas > 0 && survey.commas + survey.numbers >= survey.words) {
        comma_[i] = true;
        columns[i].problem = comma_problem(survey);
        continue;
      }
      columns[i].text = text || survey.words + survey.commas > survey.numbers;
      if (!columns[i].text) continue;
      if (survey.overflow) {
        columns[i].problem = too_many_words();
        continue;
      }
      if (!forced(columns[i].name, options) && survey.numbers > 0)
        add_numbers_ = true;  // a word column with a few numbers: they are words too
      for (const auto& [word, count] : survey.distinct) columns[i].categories.push_back(word);
    }
    if (add_numbers_) add_number_words(columns);
    for (TableColumn& column : columns)
      std::sort(column.categories.begin(), column.categories.end());
    set_columns(std::move(columns));
    number_categories();
  }

  // Why a column with decimal commas cannot be read, if so.
  static std::string comma_problem(const Survey& survey) {
    if (survey.points > 0)
      return fmt::format(
          "has numbers with a decimal comma ('{}') and others with a decimal point: write all of "
          "them with a point",
          printable(survey.example));
    if (survey.commas == survey.unclear)
      return fmt::format(
          "has numbers like '{}', which may mean a decimal comma or thousands: write them with a "
          "decimal point, or without a comma",
          printable(survey.example));
    return "";
  }

  void add_number_words(std::vector<TableColumn>& columns) {
    std::vector<std::set<std::string>> words(columns.size());
    for (size_t i = 0; i < columns.size(); ++i)
      words[i].insert(columns[i].categories.begin(), columns[i].categories.end());
    start();
    while (reader_.next(record_))
      for (size_t i = 0; i < std::min(columns.size(), record_.count); ++i) {
        bool missing = false;
        if (columns[i].text && words[i].size() <= most_categories && !absent(i) &&
            is_number(record_.cells[i], record_.quoted[i], missing) && !missing)
          words[i].insert(record_.cells[i]);
      }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (words[i].size() > most_categories) columns[i].problem = too_many_words();
      columns[i].categories.assign(words[i].begin(), words[i].end());
    }
  }

  static bool forced(const std::string& name, const TableOptions& options) {
    return std::find(options.text_columns.begin(), options.text_columns.end(), name) !=
           options.text_columns.end();
  }

  void start() {
    reader_.rewind();
    if (header_) reader_.next(record_);
  }

  double cell_value(size_t column) const override {
    const std::string& cell = record_.cells[column];
    bool missing = false;
    if (absent(column)) return missing_cell;
    if (comma_[column])
      if (const auto text = with_point(cell)) return *table_number(*text, missing);
    if (!columns_[column].text) return number_in(column, "column");
    table_number(cell, missing);
    if (missing && !record_.quoted[column]) return missing_cell;
    const auto found = number_of_[column].find(cell);
    return found == number_of_[column].end() ? missing_cell : found->second;
  }

  // A cell that the user says is none.
  bool absent(size_t column) const {
    return !absent_.empty() &&
           std::find(absent_.begin(), absent_.end(), strip(record_.cells[column])) != absent_.end();
  }

  std::vector<std::string> absent_;
  bool header_ = false;
  std::vector<bool> comma_;  // which columns have decimal commas
  bool add_numbers_ = false;
};

const Register<TableReaderRecord> registered{
    {.name = "csv",
     .summary = "a CSV table",
     .extensions = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".data"},
     .open = [](const std::string& path, const TableOptions& options) {
       return std::unique_ptr<TableSource>(new CsvSource(path, options));
     }}};

}  // namespace
}  // namespace mase::csv_reader
