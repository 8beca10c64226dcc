// SPDX-License-Identifier: Apache-2.0
// BertProcessing: [CLS] A [SEP], or [CLS] A [SEP] B [SEP] with the second sentence of type 1.
#include "mase/text/processors/marks.h"

namespace mase {

int32_t marked_token(const Value& mark, const char* key, const TokenVocabulary& vocabulary) {
  const List& pair = mark.as_list(key);
  if (pair.size() != 2) throw Error(mark.position(), key, "is no token with its id");
  const int64_t id = pair[1].as_int(key);
  const auto token = vocabulary.token(id);
  if (!token || *token != pair[0].as_string(key))
    throw Error(
        mark.position(), key,
        fmt::format("'{}' has not the id {}", printable(pair[0].as_string().substr(0, 80)), id));
  return static_cast<int32_t>(id);
}

}  // namespace mase

namespace mase::bert_processor {
namespace {

const Register<ProcessorRecord> registered{
    {.name = "BertProcessing",
     .summary = "[CLS] A [SEP] B [SEP], the second sentence of type 1",
     .schema = {{{.name = "sep", .type = FieldType::list, .required = true},
                 {.name = "cls", .type = FieldType::list, .required = true}}},
     .make = [](const Value& config, const TokenVocabulary& vocabulary) -> Processor {
       const TemplateItem cls{.ids = {marked_token(config["cls"], "cls", vocabulary)}};
       const TemplateItem sep{.ids = {marked_token(config["sep"], "sep", vocabulary)}};
       const TemplateItem last{.ids = sep.ids, .type = 1};
       const TemplateItem first{.sequence = 0}, second{.sequence = 1, .type = 1};
       return {.single = {cls, first, sep}, .pair = {cls, first, sep, second, last}};
     }}};

}  // namespace
}  // namespace mase::bert_processor
