// SPDX-License-Identifier: Apache-2.0
// Pieces of HTML and SVG made from plain text: everything that comes from outside goes through
// `escaped`, so that no name can become markup.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mase {

// For text and for attributes in double quotes; invalid UTF-8 is replaced.
std::string escaped(std::string_view text);

// Only addresses within the page or the server, or of the web, become links; others give "".
std::string safe_link(std::string_view address);

struct HtmlCell {
  HtmlCell(std::string words = {}) : text(std::move(words)) {}  // NOLINT: a text is a cell
  HtmlCell(const char* words) : text(words) {}                  // NOLINT
  HtmlCell(std::string words, std::string sort_key, std::string css = {}, std::string title = {})
      : text(std::move(words)),
        key(std::move(sort_key)),
        style(std::move(css)),
        hover(std::move(title)) {}
  std::string text;   // plain
  std::string key;    // what it is sorted by, where its text does not say it
  std::string style;  // a class of the style sheet
  std::string hover;
};

struct HtmlTable {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<HtmlCell>> rows;
  std::vector<std::string> links = {};  // of the first cell of each row; may be shorter
  std::vector<bool> numeric = {};       // columns aligned right; may be shorter
  std::string id = {};
  // Runs the rows stand for: a colour before the first cell, and rows that are filtered away take
  // the run's curves with them.
  std::vector<std::string> colours = {};
  bool choose = false;                       // a box before the first cell, to compare rows
  std::vector<std::string> chosen_ids = {};  // what the box stands for
};

std::string html_table(const HtmlTable& table);

std::string note_html(std::string_view text);  // a paragraph in small letters

// Labels with their values, each as plain text; empty values are left out.
std::string facts_html(const std::vector<std::pair<std::string, std::string>>& facts,
                       const std::string& id = "");

// Folded away under its heading.
std::string folded_html(const std::string& heading, const std::string& html, bool open = false);

}  // namespace mase
