// SPDX-License-Identifier: Apache-2.0
// FixedLength: pieces of so many characters.
#include "mase/text/part.h"

namespace mase::fixed_length_splitter {
namespace {

Splitter make(const Value& config) {
  return [length = config["length"].as_int()](Pieces& pieces) {
    std::vector<TextSpan> cut;
    for (const TextSpan& piece : pieces.pieces) {
      uint32_t begin = piece.begin;
      int64_t count = 0;
      for (uint32_t at = piece.begin; at < piece.end;) {
        at += code_point_at(pieces.text.text(), at).bytes;
        if (++count < length && at < piece.end) continue;
        cut.push_back({begin, at});
        begin = at;
        count = 0;
      }
    }
    pieces.pieces = std::move(cut);
  };
}

const Register<SplitterRecord> registered{{.name = "FixedLength",
                                           .summary = "pieces of so many characters",
                                           .schema = {{{.name = "length",
                                                        .type = FieldType::integer,
                                                        .default_value = 5,
                                                        .minimum = 1,
                                                        .maximum = double(int64_t{1} << 30)}}},
                                           .make = make}};

}  // namespace
}  // namespace mase::fixed_length_splitter
