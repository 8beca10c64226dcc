// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/page.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cctype>

#include "mase/base/error.h"
#include "mase/report/pages/html.h"

namespace mase {
namespace {

std::string sha256_base64(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  MASE_CHECK(EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr) == 1,
             "SHA-256 failed");
  unsigned char encoded[4 * EVP_MAX_MD_SIZE];
  const int length = EVP_EncodeBlock(encoded, digest, static_cast<int>(size));
  return {reinterpret_cast<const char*>(encoded), static_cast<size_t>(length)};
}

std::string heading_html(const PageFrame& frame) {
  std::string html = "<header class=\"top\"><div class=\"title\">";
  if (!frame.home.empty())
    html +=
        "<a class=\"home\" aria-label=\"all runs\" href=\"" + safe_link(frame.home) + "\">←</a>";
  html += "<h1>" + escaped(frame.title) + "</h1>";
  if (!frame.status.empty())
    html += "<span class=\"badge " + status_class(frame.status) + "\">" + escaped(frame.status) +
            "</span>";
  html += "</div><p class=\"subtitle\">" + escaped(frame.subtitle) + "</p>";
  if (!frame.measured.empty())
    html +=
        "<p class=\"subtitle\" id=\"measured\">Measured on " + escaped(frame.measured) + ".</p>";
  return html + "</header>";
}

}  // namespace

std::string status_class(const std::string& status) {
  if (status == "finished") return "good";
  if (status == "running") return "busy";
  if (status == "interrupted") return "warn";
  return status == "failed" || status == "diverged" ? "bad" : "";
}

std::string run_query(const std::vector<std::string>& ids) {
  std::string query;
  for (const std::string& id : ids) {
    query += query.empty() ? "run=" : "&run=";
    for (const unsigned char c : id)
      query += std::isalnum(c) || c == '-' || c == '_' || c == '.'
                   ? std::string(1, static_cast<char>(c))
                   : fmt::format("%{:02X}", c);
  }
  return query;
}

std::string page_html(const PageFrame& frame, const std::vector<PagePart>& parts) {
  // The page's own script alone may run; what names say can load and do nothing.
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; "
      "connect-src {}; base-uri 'none'; form-action {}",
      sha256_base64(page_script()), frame.live_seconds > 0 ? "'self'" : "'none'",
      frame.live_seconds > 0 ? "'self'" : "'none'");
  std::string page = "<!doctype html>\n<html lang=\"en\"";
  if (frame.live_seconds > 0) page += fmt::format(" data-live=\"{:g}\"", frame.live_seconds);
  page +=
      ">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"" +
      policy + "\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>" + escaped(frame.title) + "</title>\n<style>";
  page += page_style();
  page += "</style>\n</head>\n<body>\n" + heading_html(frame);
  if (parts.size() > 2) {
    page += "<nav aria-label=\"parts of this page\">";
    for (const PagePart& part : parts)
      if (!part.title.empty())
        page += "<a href=\"#" + escaped(part.id) + "\">" + escaped(part.title) + "</a>";
    page += "</nav>";
  }
  page += "<main>";
  for (const PagePart& part : parts) {
    if (part.title.empty())
      page += "<div id=\"" + escaped(part.id) + "\">" + part.html + "</div>";
    else
      page += "<section class=\"card\" id=\"" + escaped(part.id) + "\"><h2>" + escaped(part.title) +
              "</h2>" + part.html + "</section>";
  }
  page += "</main><footer>" + escaped(frame.generator) + "</footer>\n<script>";
  page += page_script();
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace mase
