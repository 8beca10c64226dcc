// SPDX-License-Identifier: Apache-2.0
// Metaspace: a visible character in the place of spaces, one in front, and words that begin with
// it.
#include "mase/text/splitters/metaspace.h"

namespace mase {

Schema metaspace_schema() {
  return {{{.name = "replacement", .type = FieldType::any, .default_value = "\xE2\x96\x81"},
           {.name = "prepend_scheme",
            .type = FieldType::text,
            .help = "whether texts begin with it",
            .choices = {"always", "first", "never"}},
           {.name = "add_prefix_space",
            .type = FieldType::boolean,
            .help = "the same, as older files say it"},
           {.name = "str_rep", .type = FieldType::any, .help = "of older files", .idle = true},
           {.name = "split", .type = FieldType::boolean, .default_value = true}}};
}

MetaspaceKeys metaspace_keys(const Value& config) {
  MetaspaceKeys keys;
  append_utf8(keys.replacement, part_character(config["replacement"], "replacement"));
  const bool old_never =
      config["add_prefix_space"].is_bool() && !config["add_prefix_space"].as_bool();
  const Value& scheme = config["prepend_scheme"];
  if (old_never && scheme.is_string() && scheme.as_string() != "never")
    throw Error(scheme.position(), "prepend_scheme", "add_prefix_space says the contrary");
  keys.scheme = scheme.is_string() ? scheme.as_string() : old_never ? "never" : "always";
  keys.split = config["split"].as_bool();
  return keys;
}

}  // namespace mase

namespace mase::metaspace_splitter {
namespace {

Splitter make(const Value& config) {
  const MetaspaceKeys keys = metaspace_keys(config);
  const std::string place = config.position().str();
  return [keys, space = TextPattern(" ", place),
          sign = TextPattern::literal(keys.replacement, place)](Pieces& pieces) {
    pieces.edit([&](AlignedText& text, bool begins) {
      text.replace(space.matches(text.text()), keys.replacement);
      const bool wanted = keys.scheme == "always" || (keys.scheme == "first" && begins);
      if (wanted && !starts_with(text.text(), keys.replacement)) text.prepend(keys.replacement);
    });
    if (keys.split) pieces.split(sign, SplitBehavior::merged_with_next);
  };
}

const Register<SplitterRecord> registered{
    {.name = "Metaspace",
     .summary = "a visible character for spaces, and words that begin with it",
     .schema = metaspace_schema(),
     .make = make}};

}  // namespace
}  // namespace mase::metaspace_splitter
