// SPDX-License-Identifier: Apache-2.0
// RobertaProcessing: <s> A </s>, or <s> A </s></s> B </s>, all of type 0.
#include "mase/text/processors/marks.h"

namespace mase::roberta_processor {
namespace {

const Register<ProcessorRecord> registered{
    {.name = "RobertaProcessing",
     .summary = "<s> A </s></s> B </s>",
     .schema = {{{.name = "sep", .type = FieldType::list, .required = true},
                 {.name = "cls", .type = FieldType::list, .required = true},
                 {.name = "trim_offsets", .type = FieldType::boolean, .default_value = true},
                 {.name = "add_prefix_space", .type = FieldType::boolean, .default_value = true}}},
     .make = [](const Value& config, const TokenVocabulary& vocabulary) -> Processor {
       const TemplateItem cls{.ids = {marked_token(config["cls"], "cls", vocabulary)}};
       const TemplateItem sep{.ids = {marked_token(config["sep"], "sep", vocabulary)}};
       const TemplateItem first{.sequence = 0}, second{.sequence = 1};
       Processor processor{.single = {cls, first, sep},
                           .pair = {cls, first, sep, sep, second, sep}};
       if (config["trim_offsets"].as_bool())
         processor.trim = space_trimmer(config["add_prefix_space"].as_bool());
       return processor;
     }}};

}  // namespace
}  // namespace mase::roberta_processor
