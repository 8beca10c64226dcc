// SPDX-License-Identifier: Apache-2.0
// Tokenizers.
#include "mase/text/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "mase/base/text.h"
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

// What is given goes before what the file says.
struct Lengths {
  std::optional<int64_t> longest, stride;
  std::optional<std::string> strategy, cut, pad;  // pad: "left", "right", "file" or nothing
  std::optional<int64_t> pad_to, pad_multiple;
};

bool is_left(const std::string& side, const char* what) {
  if (side != "left" && side != "right")
    throw Error(what, fmt::format("'{}' is no side", printable(side)), "left or right");
  return side == "left";
}

void set_lengths(Tokenizer& tokenizer, const Lengths& wanted) {
  if (wanted.longest) {
    if (!tokenizer.truncation) tokenizer.truncation.emplace();
    tokenizer.truncation->length = *wanted.longest;
  }
  if ((wanted.stride || wanted.strategy || wanted.cut) && !tokenizer.truncation)
    throw Error("tokenizer", "texts are not cut", "say how long: max_length=");
  if (wanted.stride) tokenizer.truncation->stride = *wanted.stride;
  if (wanted.cut) tokenizer.truncation->left = is_left(*wanted.cut, "cut");
  if (wanted.strategy) {
    if (*wanted.strategy == "longest_first")
      tokenizer.truncation->strategy = CutStrategy::longest_first;
    else if (*wanted.strategy == "only_first")
      tokenizer.truncation->strategy = CutStrategy::only_first;
    else if (*wanted.strategy == "only_second")
      tokenizer.truncation->strategy = CutStrategy::only_second;
    else
      throw Error("strategy", fmt::format("'{}' is not known", printable(*wanted.strategy)),
                  "longest_first, only_first or only_second");
  }
  if (!wanted.pad) {
    if (wanted.pad_to || wanted.pad_multiple)
      throw Error("tokenizer", "nothing is filled up", "pad=True, \"left\" or \"right\"");
    tokenizer.padding.reset();
    return;
  }
  if (!tokenizer.padding) {
    const std::optional<int32_t> id = tokenizer.padding_id();
    if (!id) throw Error("tokenizer", "has no token for padding", "encode without padding");
    tokenizer.padding = Padding{.id = *id};
  }
  if (*wanted.pad != "file") tokenizer.padding->left = is_left(*wanted.pad, "pad");
  if (wanted.pad_to) tokenizer.padding->length = *wanted.pad_to;
  if (wanted.pad_multiple) tokenizer.padding->multiple = *wanted.pad_multiple;
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
          "encode_batch",
          [](const Tokenizer& own, const std::vector<std::string>& texts,
             const std::optional<std::vector<std::string>>& pairs, bool special,
             std::optional<int64_t> longest, std::optional<int64_t> stride,
             std::optional<std::string> strategy, std::optional<std::string> cut,
             std::optional<std::string> pad, std::optional<int64_t> pad_to,
             std::optional<int64_t> pad_multiple, int threads) {
            Tokenizer tokenizer = own;
            set_lengths(tokenizer, {longest, stride, strategy, cut, pad, pad_to, pad_multiple});
            std::vector<Encoding> batch;
            {
              nb::gil_scoped_release unlocked;
              batch = pairs ? tokenizer.encode_batch(texts, *pairs, special, threads)
                            : tokenizer.encode_batch(texts, special, threads);
            }
            nb::list result;
            for (const Encoding& encoding : batch) result.append(dict_of(tokenizer, encoding));
            return result;
          },
          nb::arg("texts"), nb::arg("pairs").none(), nb::arg("special"), nb::arg("longest").none(),
          nb::arg("stride").none(), nb::arg("strategy").none(), nb::arg("cut").none(),
          nb::arg("pad").none(), nb::arg("pad_to").none(), nb::arg("pad_multiple").none(),
          nb::arg("threads"))
      .def(
          "decode",
          [](const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
            return tokenizer.decode(ids, skip_special);
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def("normalized", [](const Tokenizer& tokenizer,
                            const std::string& text) { return tokenizer.normalized(text); })
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
