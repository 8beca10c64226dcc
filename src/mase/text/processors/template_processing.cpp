// SPDX-License-Identifier: Apache-2.0
// TemplateProcessing: special tokens around one sentence and around two, as the file lists them.
#include "mase/text/part.h"

namespace mase::template_processing_processor {
namespace {

constexpr size_t longest_template = 64;

std::vector<TemplateItem> items(const Value& list, const Value& specials, int sentences,
                                const TokenVocabulary& vocabulary) {
  std::vector<TemplateItem> result;
  if (list.as_list("template").size() > longest_template)
    throw Error(list.position(), "", "a template of more than 64 parts");
  int seen = 0;
  for (const Value& part : list.as_list()) {
    if (!part.is_dict() || part.as_dict().size() != 1)
      throw Error(part.position(), "", "a part of a template is no sentence and no special token");
    const auto& [kind, body] = *part.as_dict().begin();
    if ((kind != "Sequence" && kind != "SpecialToken") || !body.is_dict())
      throw Error(part.position(), "", fmt::format("a template has a part '{}'", printable(kind)));
    TemplateItem item;
    const int64_t type = body["type_id"].as_int("type_id");
    if (type < 0 || type > 1000) throw Error(body.position(), "type_id", "is not 0 to 1000");
    item.type = static_cast<int32_t>(type);
    const std::string& name = body["id"].as_string("id");
    if (kind == "Sequence") {
      if (name != "A" && name != "B") throw Error(body.position(), "id", "is neither A nor B");
      item.sequence = name == "A" ? 0 : 1;
      seen |= 1 << item.sequence;
    } else {
      const Value& special = specials[name];
      if (!special.is_dict())
        throw Error(body.position(), "id",
                    fmt::format("'{}' is not among the special tokens", printable(name)));
      for (const int64_t id : special["ids"].as_int_list("ids")) {
        if (!vocabulary.token(id))
          throw Error(special.position(), "ids", fmt::format("{} is no id of a token", id));
        item.ids.push_back(static_cast<int32_t>(id));
      }
      if (item.ids.size() > longest_template)
        throw Error(special.position(), "ids", "more than 64 ids");
    }
    result.push_back(std::move(item));
  }
  if (seen != (sentences == 2 ? 3 : 1))
    throw Error(list.position(), "",
                sentences == 2 ? "a template for two sentences without both of them"
                               : "a template for one sentence without it, or with another");
  return result;
}

Processor make(const Value& config, const TokenVocabulary& vocabulary) {
  const Value& specials = config["special_tokens"];
  Processor processor;
  processor.single = items(config["single"], specials, 1, vocabulary);
  const bool pairs = config["pair"].is_list() && !config["pair"].as_list().empty();
  if (pairs) processor.pair = items(config["pair"], specials, 2, vocabulary);
  return processor;
}

const Register<ProcessorRecord> registered{
    {.name = "TemplateProcessing",
     .summary = "special tokens around one sentence and around two",
     .schema = {{{.name = "single", .type = FieldType::list, .required = true},
                 {.name = "pair", .type = FieldType::list},
                 {.name = "special_tokens", .type = FieldType::table, .default_value = Dict{}}}},
     .make = make}};

}  // namespace
}  // namespace mase::template_processing_processor
