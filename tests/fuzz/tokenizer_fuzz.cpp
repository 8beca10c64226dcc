// SPDX-License-Identifier: Apache-2.0
// coverage floor: 2500
#include "fuzz/target.h"
#include "mase/text/tokenizer.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  try {
    const mase::Value file =
        mase::parse_json(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    const mase::Tokenizer tokenizer = mase::make_tokenizer(file, "fuzz");
    size_t tokens = 0;
    for (const char* text :
         {"", "The cat sat,  on 1234 mats.\r\n", "caf\xC3\xA9 e\xCC\x81 <s>\xE4\xB8\xAD"})
      try {
        const mase::Encoding encoding = tokenizer.encode(text);
        tokenizer.decode(encoding.ids, true);
        tokens += 1 + tokenizer.encode(text, text).size();
      } catch (const mase::Error&) {
        ++tokens;  // the file was read; it does not take this text
      }
    return tokens;
  } catch (const mase::Error&) {
    return 0;
  }
}
