// SPDX-License-Identifier: Apache-2.0
// Records of delimited text, piece by piece: what CSV and ARFF share. Plain or gzip-compressed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mase/io/tables/table_source.h"

namespace mase {

// Text of a file in chunks, decompressed if it is gzip.
class TextStream {
 public:
  explicit TextStream(const std::string& path);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  int peek() { return at_ < end_ || refill() ? static_cast<unsigned char>(*at_) : -1; }
  int next() {
    if (at_ == end_ && !refill()) return -1;
    return static_cast<unsigned char>(*at_++);
  }
  // Appends everything up to (not including) a line end, a `stop` or a `quote` character.
  void take_plain(std::string& text, char stop);
  void rewind();

 private:
  bool refill();

  std::string path_;
  void* file_ = nullptr;
  std::vector<char> buffer_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint64_t expanded_ = 0;
};

struct DelimitedRecord {
  std::vector<std::string> cells;
  std::vector<bool> quoted;
  int64_t line = 0;  // where it starts, from 1

  void clear() { count = 0; }
  size_t count = 0;  // cells in use; the vectors keep their memory
};

class DelimitedReader {
 public:
  // ARFF quotes with ' as well as ", escapes with a backslash, and has % comments.
  DelimitedReader(const std::string& path, char separator, bool arff);

  // False at the end of the file. Blank lines are skipped.
  bool next(DelimitedRecord& record);
  // A whole line, comments and all (ARFF headers).
  std::optional<std::string> next_line();
  void rewind();
  int64_t line() const { return line_; }
  void set_separator(char separator) { separator_ = separator; }

 private:
  void read_quoted(std::string& cell, char quote);

  std::string path_;
  TextStream stream_;
  char separator_;
  bool arff_;
  int64_t line_ = 1;
};

// A table of delimited text: rows are records, words are numbers of categories.
class DelimitedSource : public TableSource {
 public:
  int64_t read(double* cells, int64_t at_most) final;
  std::string place(int64_t row) const final;

 protected:
  DelimitedSource(const std::string& path, bool arff)
      : TableSource(path), reader_(path, ',', arff) {}

  virtual void check_width() const = 0;
  virtual double cell_value(size_t column) const = 0;
  std::string here() const;  // where the current record is
  void check_cell_count(size_t expected) const;
  // The number of a cell, or an error that calls the column `kind`.
  double number_in(size_t column, const char* kind) const;
  void number_categories();  // fills number_of_ from the columns

  DelimitedReader reader_;
  DelimitedRecord record_;
  std::vector<std::unordered_map<std::string, double>> number_of_;  // of a category, by column

 private:
  std::vector<int64_t> lines_;
};

constexpr size_t most_categories = 65536;
std::string too_many_words();  // as the problem of a column

// A number as tables write it: blanks around it, a leading +, inf and nan in any case; nothing for
// text. `missing` is set for an empty cell, NA, null, None, ?, -.
std::optional<double> table_number(std::string_view cell, bool& missing);

}  // namespace mase
