// SPDX-License-Identifier: Apache-2.0
// Tokenizers.
#include "mase/text/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace mase::python {

namespace nb = nanobind;

namespace {

nb::dict dict_of(const Tokenizer& tokenizer, const Encoding& encoding) {
  std::vector<std::string> tokens;
  std::vector<std::pair<uint32_t, uint32_t>> offsets;
  for (size_t i = 0; i < encoding.size(); ++i) {
    tokens.emplace_back(tokenizer.vocabulary().token(encoding.ids[i]).value_or(""));
    offsets.emplace_back(encoding.offsets[i].begin, encoding.offsets[i].end);
  }
  nb::dict result;
  result["ids"] = encoding.ids;
  result["tokens"] = tokens;
  result["offsets"] = offsets;
  result["type_ids"] = encoding.types;
  result["attention_mask"] = std::vector<int>(encoding.mask.begin(), encoding.mask.end());
  result["special_tokens_mask"] =
      std::vector<int>(encoding.special.begin(), encoding.special.end());
  nb::list windows;
  for (const Encoding& window : encoding.windows) windows.append(dict_of(tokenizer, window));
  result["windows"] = windows;
  return result;
}

void set_lengths(Tokenizer& tokenizer, std::optional<int64_t> longest, bool pad) {
  if (longest) {
    if (!tokenizer.truncation) tokenizer.truncation.emplace();
    tokenizer.truncation->length = *longest;
  }
  if (!pad) {
    tokenizer.padding.reset();
    return;
  }
  if (tokenizer.padding) return;
  const std::optional<int32_t> id = tokenizer.padding_id();
  if (!id) throw Error("tokenizer", "has no token for padding", "encode without padding");
  tokenizer.padding = Padding{.id = *id};
}

}  // namespace

void bind_tokenizer(nb::module_& module) {
  nb::class_<Tokenizer>(module, "Tokenizer")
      .def_static(
          "load",
          [](const std::string& path) {
            nb::gil_scoped_release unlocked;
            return Tokenizer::load(path);
          },
          nb::arg("path"))
      .def(
          "encode",
          [](const Tokenizer& own, const std::string& text, std::optional<std::string> pair,
             bool special, std::optional<int64_t> longest) {
            Tokenizer tokenizer = own;
            set_lengths(tokenizer, longest, false);
            Encoding encoding;
            {
              nb::gil_scoped_release unlocked;
              encoding =
                  pair ? tokenizer.encode(text, *pair, special) : tokenizer.encode(text, special);
            }
            return dict_of(tokenizer, encoding);
          },
          nb::arg("text"), nb::arg("pair").none(), nb::arg("special"), nb::arg("longest").none())
      .def(
          "encode_batch",
          [](const Tokenizer& own, const std::vector<std::string>& texts, bool special, bool pad,
             std::optional<int64_t> longest, int threads) {
            Tokenizer tokenizer = own;
            set_lengths(tokenizer, longest, pad);
            std::vector<Encoding> batch;
            {
              nb::gil_scoped_release unlocked;
              batch = tokenizer.encode_batch(texts, special, threads);
            }
            nb::list result;
            for (const Encoding& encoding : batch) result.append(dict_of(tokenizer, encoding));
            return result;
          },
          nb::arg("texts"), nb::arg("special"), nb::arg("pad"), nb::arg("longest").none(),
          nb::arg("threads"))
      .def(
          "decode",
          [](const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
            return tokenizer.decode(ids, skip_special);
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def("token",
           [](const Tokenizer& tokenizer, int64_t id) -> std::optional<std::string> {
             const auto token = tokenizer.vocabulary().token(id);
             return token ? std::optional<std::string>(*token) : std::nullopt;
           })
      .def("id", [](const Tokenizer& tokenizer,
                    const std::string& token) { return tokenizer.vocabulary().id(token); })
      .def("size", [](const Tokenizer& tokenizer) { return tokenizer.vocabulary().count(); });
}

}  // namespace mase::python
