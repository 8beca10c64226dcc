// SPDX-License-Identifier: Apache-2.0
#include "mase/io/tables/delimited.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/base/text.h"

namespace mase {
namespace {

constexpr size_t chunk_size = size_t{1} << 18;
constexpr size_t longest_cell = size_t{1} << 20;
constexpr size_t most_cells = 65536;

}  // namespace

TextStream::TextStream(const std::string& path) : path_(path), buffer_(chunk_size) {
  InputFile file(path);
  file_ = gzdopen(file.fd(), "rb");
  if (!file_) throw Error(path, "cannot open the file");
  file.release();  // the stream closes it
  gzbuffer(static_cast<gzFile>(file_), chunk_size);
}

TextStream::~TextStream() { gzclose(static_cast<gzFile>(file_)); }

void TextStream::rewind() {
  gzrewind(static_cast<gzFile>(file_));
  at_ = end_ = nullptr;
  expanded_ = 0;
}

bool TextStream::refill() {
  const auto file = static_cast<gzFile>(file_);
  const int got = gzread(file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int failure = Z_OK;
  const char* reason = gzerror(file, &failure);
  if (got < 0 || failure == Z_BUF_ERROR)
    throw Error(path_, fmt::format("cannot read the file: {}",
                                   failure == Z_BUF_ERROR ? "it ends too early" : reason));
  at_ = buffer_.data();
  end_ = at_ + got;
  expanded_ += static_cast<uint64_t>(got);
  if (!gzdirect(file)) refuse_bomb(path_, static_cast<uint64_t>(gzoffset(file)), expanded_);
  return got > 0;
}

void TextStream::take_plain(std::string& text, char stop) {
  while (at_ < end_ || refill()) {
    const char* from = at_;
    while (at_ < end_ && *at_ != stop && *at_ != '\n' && *at_ != '\r') ++at_;
    text.append(from, at_);
    if (at_ < end_ || text.size() > longest_cell) return;
  }
}

DelimitedReader::DelimitedReader(const std::string& path, char separator, bool arff)
    : path_(path), stream_(path), separator_(separator), arff_(arff) {}

void DelimitedReader::rewind() {
  stream_.rewind();
  line_ = 1;
}

void DelimitedReader::read_quoted(std::string& cell, char quote) {
  const int64_t start = line_;
  while (true) {
    const int c = stream_.next();
    if (c < 0) throw Error(fmt::format("{}:{}", path_, start), "a quote is never closed");
    if (c == '\n') ++line_;
    if (c == quote) {
      if (stream_.peek() != quote) return;
      stream_.next();  // a doubled quote stands for one
      cell += quote;
    } else if (c == '\\' && arff_) {
      const int escaped = stream_.next();
      if (escaped >= 0) cell += static_cast<char>(escaped);
    } else {
      cell += static_cast<char>(c);
    }
    if (cell.size() > longest_cell)
      throw Error(fmt::format("{}:{}", path_, start), "a quoted cell is longer than 1 MB");
  }
}

bool DelimitedReader::next(DelimitedRecord& record) {
  record.clear();
  while (true) {  // blank lines and comments
    const int c = stream_.peek();
    if (c < 0) return false;
    if (c == '\n' || c == '\r') {
      stream_.next();
      if (c == '\n') ++line_;
    } else if (c == '%' && arff_) {
      next_line();
    } else {
      break;
    }
  }
  record.line = line_;
  while (true) {
    if (record.count == most_cells)
      throw Error(fmt::format("{}:{}", path_, record.line),
                  fmt::format("more than {} cells in a row", most_cells));
    if (record.count == record.cells.size()) {
      record.cells.emplace_back();
      record.quoted.push_back(false);
    }
    std::string& cell = record.cells[record.count];
    cell.clear();
    bool quoted = false;
    int c = stream_.peek();
    while (c == ' ' && separator_ != ' ') {
      stream_.next();
      c = stream_.peek();
    }
    if (c == '"' || (c == '\'' && arff_)) {
      stream_.next();
      read_quoted(cell, static_cast<char>(c));
      quoted = true;
    }
    const size_t before = cell.size();
    stream_.take_plain(cell, separator_);
    if (cell.size() > longest_cell)
      throw Error(fmt::format("{}:{}", path_, record.line), "a cell is longer than 1 MB");
    if (quoted && cell.find_first_not_of(" \t", before) != std::string::npos)
      throw Error(fmt::format("{}:{}", path_, record.line), "text follows a closing quote");
    if (quoted) cell.resize(before);
    record.quoted[record.count++] = quoted;
    c = stream_.next();
    if (c == separator_) continue;
    if (c == '\r' && stream_.peek() == '\n') c = stream_.next();
    if (c == '\n') ++line_;
    return true;  // a line end (\n, \r\n or a lone \r) or the end of the file
  }
}

std::optional<std::string> DelimitedReader::next_line() {
  if (stream_.peek() < 0) return {};
  std::string text;
  stream_.take_plain(text, '\n');
  if (text.size() > longest_cell)
    throw Error(fmt::format("{}:{}", path_, line_), "a line is longer than 1 MB");
  int c = stream_.next();
  if (c == '\r' && stream_.peek() == '\n') c = stream_.next();
  ++line_;
  return text;
}

int64_t DelimitedSource::read(double* cells, int64_t at_most) {
  lines_.clear();
  while (static_cast<int64_t>(lines_.size()) < at_most && reader_.next(record_)) {
    check_width();
    for (const size_t column : selected_) *cells++ = cell_value(column);
    lines_.push_back(record_.line);
  }
  return static_cast<int64_t>(lines_.size());
}

std::string DelimitedSource::place(int64_t row) const {
  return fmt::format("{}:{}", path_, lines_[static_cast<size_t>(row)]);
}

std::string DelimitedSource::here() const { return fmt::format("{}:{}", path_, record_.line); }

void DelimitedSource::check_cell_count(size_t expected) const {
  if (record_.count != expected)
    throw Error(here(), fmt::format("{} cells where {} are expected", record_.count, expected));
}

double DelimitedSource::number_in(size_t column, const char* kind) const {
  bool missing = false;
  const std::string& cell = record_.cells[column];
  if (const auto value = table_number(cell, missing)) return *value;
  throw Error(here(), fmt::format("{} '{}': '{}' is not a number", kind,
                                  printable(columns_[column].name), printable(cell.substr(0, 40))));
}

void DelimitedSource::number_categories() {
  number_of_.assign(columns_.size(), {});
  for (size_t i = 0; i < columns_.size(); ++i)
    for (size_t k = 0; k < columns_[i].categories.size(); ++k)
      number_of_[i].emplace(columns_[i].categories[k], static_cast<double>(k));
}

std::string too_many_words() {
  return fmt::format("holds more than {} different words", most_categories);
}

std::optional<double> table_number(std::string_view cell, bool& missing) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
  missing = false;
  if (!cell.empty() && (cell.front() >= '0' && cell.front() <= '9')) {
    double value = 0;
    const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (end == cell.data() + cell.size() && failure == std::errc()) return value;
  }
  static constexpr std::array<std::string_view, 10> absent = {
      "", "NA", "N/A", "null", "NULL", "None", "none", "?", "-", "<NA>"};
  if (std::find(absent.begin(), absent.end(), cell) != absent.end()) {
    missing = true;
    return missing_cell;
  }
  bool negative = false;
  std::string_view digits = cell;
  if (digits.front() == '+' || digits.front() == '-') {
    negative = digits.front() == '-';
    digits.remove_prefix(1);
  }
  if (digits.empty() || digits.front() == '+' || digits.front() == '-') return {};
  double value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) return {};
  if (failure == std::errc::result_out_of_range) {  // too large, or too small to be told from zero
    const size_t exponent = digits.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && exponent + 1 < digits.size() &&
                      digits[exponent + 1] == '-';
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  } else if (failure != std::errc()) {
    return {};
  }
  return negative ? -value : value;
}

}  // namespace mase
