// SPDX-License-Identifier: Apache-2.0
#include "mase/text/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "mase/base/error.h"
#include "mase/text/word_cache.h"

namespace mase {
namespace {

void check_text(std::string_view text) {
  if (text.size() > std::numeric_limits<int32_t>::max())
    throw Error("text", "is longer than 2 GB", "cut it into lines");
  if (is_ascii(text)) return;
  const size_t bad = first_invalid_utf8(text);
  if (bad < text.size())
    throw Error("text", fmt::format("is not UTF-8: byte {}", bad),
                "convert it, for instance with iconv");
}

// Calls work(i) for each i, on several threads; the first thing that is thrown is thrown here.
template <class Work>
void for_each_index(size_t count, int threads, Work work) {
  const size_t most = threads > 0 ? static_cast<size_t>(threads)
                                  : std::max<size_t>(1, std::thread::hardware_concurrency());
  const size_t used = std::min({most, (count + 15) / 16, size_t{256}});
  std::atomic<size_t> next{0};
  std::mutex lock;
  std::exception_ptr thrown;
  const auto loop = [&] {
    try {
      for (;;) {
        const size_t first = next.fetch_add(16);
        if (first >= count) return;
        for (size_t i = first; i < std::min(first + 16, count); ++i) work(i);
      }
    } catch (...) {
      next = count;
      const std::lock_guard guard(lock);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < used; ++i) others.emplace_back(loop);
  loop();
  others.clear();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

// Tokens of a text, and the bytes of it they stand for.
struct Tokenizer::Raw {
  std::vector<int32_t> ids;
  std::vector<TextSpan> spans;
  std::vector<size_t> added;  // places of tokens that were found in the text as they are
};

class Tokenizer::Worker {
 public:
  explicit Worker(const TokenizerParts& parts) : parts_(parts), cache_(parts.model) {}

  void run(std::string_view text, bool spans, Raw& raw) {
    parts_.plain.each(text, [&](size_t begin, size_t end, int32_t id) {
      if (id < 0)
        fragment(text.substr(begin, end - begin), static_cast<uint32_t>(begin), spans, raw);
      else
        add(id, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, raw);
    });
  }

 private:
  static void add(int32_t id, TextSpan span, Raw& raw) {
    raw.added.push_back(raw.ids.size());
    raw.ids.push_back(id);
    raw.spans.push_back(span);
  }

  void fragment(std::string_view text, uint32_t place, bool spans, Raw& raw) {
    AlignedText normal(text, place);
    parts_.normalize(normal);
    const auto whole = static_cast<uint32_t>(normal.text().size());
    if (parts_.normalized.empty()) {
      if (whole > 0) pieces(std::move(normal), spans, raw);
      return;
    }
    parts_.normalized.each(normal.text(), [&](size_t begin, size_t end, int32_t id) {
      const TextSpan span{static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
      if (id >= 0) {
        add(id, normal.original(span), raw);
        return;
      }
      AlignedText part({}, place);
      part.append(normal, span);
      pieces(std::move(part), spans, raw);
    });
  }

  void pieces(AlignedText text, bool spans, Raw& raw) {
    const auto size = static_cast<uint32_t>(text.text().size());
    Pieces cut{.text = std::move(text), .pieces = {{0, size}}};
    parts_.split(cut);
    const std::string_view all = cut.text.text();
    for (const TextSpan& piece : cut.pieces)
      words(all, piece, [&](TextSpan word) {
        for (const PieceToken& token :
             cache_.tokens(all.substr(word.begin, word.end - word.begin), cut.bytes_wanted)) {
          raw.ids.push_back(token.id);
          if (spans)
            raw.spans.push_back(
                cut.text.original(TextSpan{word.begin + token.begin, word.begin + token.end}));
        }
      });
  }

  // A piece as it is, or its words where the model cannot tell the difference.
  template <class Found>
  void words(std::string_view text, TextSpan piece, Found found) const {
    const std::string& start = parts_.model.word_start;
    if (start.empty()) {
      found(piece);
      return;
    }
    const auto size = static_cast<uint32_t>(start.size());
    uint32_t begin = piece.begin;
    for (;;) {
      uint32_t end = begin;
      while (end + size <= piece.end && text.substr(end, size) == start) end += size;
      end = static_cast<uint32_t>(
          std::min<size_t>(text.substr(0, piece.end).find(start, end), piece.end));
      found({begin, end});
      if (end == piece.end) return;
      begin = end;
    }
  }

  const TokenizerParts& parts_;
  WordCache cache_;
};

// Workers that nobody uses at the moment, with what they remember.
class Tokenizer::Workers {
 public:
  std::unique_ptr<Worker> take(const TokenizerParts& parts) {
    const std::lock_guard guard(lock_);
    if (free_.empty()) return std::make_unique<Worker>(parts);
    std::unique_ptr<Worker> worker = std::move(free_.back());
    free_.pop_back();
    return worker;
  }
  void give(std::unique_ptr<Worker> worker) {
    const std::lock_guard guard(lock_);
    free_.push_back(std::move(worker));
  }

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<Worker>> free_;
};

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerParts> parts,
                     std::optional<Truncation> truncation, std::optional<Padding> padding)
    : truncation(truncation),
      padding(padding),
      parts_(std::move(parts)),
      workers_(std::make_shared<Workers>()) {}

void Tokenizer::run(std::string_view text, bool spans, Raw& raw) const {
  check_text(text);
  std::unique_ptr<Worker> worker = workers_->take(*parts_);
  worker->run(text, spans, raw);
  workers_->give(std::move(worker));
}

Encoding Tokenizer::sentence(std::string_view text, int number) const {
  Raw raw;
  run(text, true, raw);
  std::vector<std::string_view> texts;
  if (parts_->processor.trim) {
    for (const int32_t id : raw.ids) texts.push_back(parts_->vocabulary->token(id).value_or(""));
    for (const size_t i : raw.added)
      texts[i] = text.substr(raw.spans[i].begin, raw.spans[i].end - raw.spans[i].begin);
  }
  Encoding result;
  const size_t count = raw.ids.size();
  result.ids = std::move(raw.ids);
  result.types.assign(count, number);
  result.mask.assign(count, 1);
  result.special.assign(count, 0);
  result.sentences.assign(count, number);
  if (!is_ascii(text)) {  // from bytes to characters
    std::vector<uint32_t> characters(text.size() + 1);
    uint32_t seen = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      characters[at] = seen;
      if (at + 1 == text.size() || (static_cast<unsigned char>(text[at + 1]) & 0xC0) != 0x80)
        ++seen;
    }
    characters[text.size()] = seen;
    for (TextSpan& span : raw.spans) span = {characters[span.begin], characters[span.end]};
  }
  result.offsets = std::move(raw.spans);
  if (parts_->processor.trim) parts_->processor.trim(result, texts);
  return result;
}

size_t Tokenizer::special_tokens(bool pair) const {
  size_t count = 0;
  for (const TemplateItem& item : pair ? parts_->processor.pair : parts_->processor.single)
    count += item.ids.size();
  return count;
}

Encoding Tokenizer::assembled(const Encoding* first, const Encoding* second, bool special) const {
  const std::vector<TemplateItem>& items =
      second ? parts_->processor.pair : parts_->processor.single;
  Encoding result;
  if (items.empty()) {
    append_encoding(result, *first);
    if (second) append_encoding(result, *second);
    return result;
  }
  for (const TemplateItem& item : items) {
    Encoding part;
    if (item.sequence >= 0) {
      part = item.sequence == 0 ? *first : *second;
      for (Encoding& window : part.windows) window.types.assign(window.size(), item.type);
    } else if (special) {
      part.ids = item.ids;
      part.mask.assign(item.ids.size(), 1);
      part.special.assign(item.ids.size(), 1);
      part.offsets.assign(item.ids.size(), {});
      part.sentences.assign(item.ids.size(), -1);
    }
    part.types.assign(part.ids.size(), item.type);
    append_encoding(result, part);
  }
  return result;
}

Encoding Tokenizer::unpadded(std::string_view text, bool special) const {
  const Encoding whole = sentence(text, 0);
  if (!truncation) return assembled(&whole, nullptr, special);
  const int64_t room =
      truncation->length - static_cast<int64_t>(special ? special_tokens(false) : 0);
  if (room < 0)
    throw Error("truncation", fmt::format("{} tokens have no room for {} special ones",
                                          truncation->length, special_tokens(false)));
  const size_t kept = kept_tokens(whole.size(), 0, false, room, truncation->strategy).first;
  const Encoding cut = in_windows(whole, kept, *truncation);
  return assembled(&cut, nullptr, special);
}

Encoding Tokenizer::encode(std::string_view text, bool special) const {
  std::vector<Encoding> one;
  one.push_back(unpadded(text, special));
  if (padding) pad_encodings(one, *padding);
  return std::move(one[0]);
}

Encoding Tokenizer::unpadded(std::string_view first, std::string_view second, bool special) const {
  if (!parts_->processor.single.empty() && parts_->processor.pair.empty())
    throw Error("tokenizer", "has no template for two sentences", "join them to one");
  Encoding a = sentence(first, 0), b = sentence(second, 1);
  if (truncation) {
    const int64_t room =
        truncation->length - static_cast<int64_t>(special ? special_tokens(true) : 0);
    const auto [of_a, of_b] = kept_tokens(a.size(), b.size(), true, room, truncation->strategy);
    a = in_windows(a, of_a, *truncation);
    b = in_windows(b, of_b, *truncation);
  }
  return assembled(&a, &b, special);
}

Encoding Tokenizer::encode(std::string_view first, std::string_view second, bool special) const {
  std::vector<Encoding> one;
  one.push_back(unpadded(first, second, special));
  if (padding) pad_encodings(one, *padding);
  return std::move(one[0]);
}

std::vector<Encoding> Tokenizer::encode_batch(const std::vector<std::string>& texts, bool special,
                                              int threads) const {
  std::vector<Encoding> batch(texts.size());
  for_each_index(texts.size(), threads, [&](size_t i) { batch[i] = unpadded(texts[i], special); });
  if (padding) pad_encodings(batch, *padding);
  return batch;
}

std::vector<Encoding> Tokenizer::encode_batch(const std::vector<std::string>& first,
                                              const std::vector<std::string>& second, bool special,
                                              int threads) const {
  if (first.size() != second.size())
    throw Error("tokenizer",
                fmt::format("{} texts and {} others are no pairs", first.size(), second.size()));
  std::vector<Encoding> batch(first.size());
  for_each_index(first.size(), threads,
                 [&](size_t i) { batch[i] = unpadded(first[i], second[i], special); });
  if (padding) pad_encodings(batch, *padding);
  return batch;
}

std::vector<int32_t> Tokenizer::ids(std::string_view text, bool special) const {
  Raw raw;
  run(text, false, raw);
  if (!special || special_tokens(false) == 0) return std::move(raw.ids);
  std::vector<int32_t> result;
  result.reserve(raw.ids.size() + special_tokens(false));
  for (const TemplateItem& item : parts_->processor.single) {
    const std::vector<int32_t>& part = item.sequence >= 0 ? raw.ids : item.ids;
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

std::vector<std::vector<int32_t>> Tokenizer::ids_batch(const std::vector<std::string>& texts,
                                                       bool special, int threads) const {
  std::vector<std::vector<int32_t>> batch(texts.size());
  for_each_index(texts.size(), threads, [&](size_t i) { batch[i] = ids(texts[i], special); });
  return batch;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::unordered_set<int32_t> special;
  if (skip_special)
    for (const AddedToken& token : parts_->added)
      if (token.special) special.insert(token.id);
  std::vector<std::string> texts;
  for (const int32_t id : ids) {
    const auto token = parts_->vocabulary->token(id);
    if (!token)
      throw Error("tokenizer", fmt::format("{} is no id of a token", id),
                  fmt::format("ids are below {}", parts_->vocabulary->end()));
    if (!special.contains(id)) texts.emplace_back(*token);
  }
  parts_->decode(texts);
  return join(texts, "");
}

std::string Tokenizer::normalized(std::string_view text) const {
  check_text(text);
  AlignedText normal(text, 0);
  parts_->normalize(normal);
  return std::string(normal.text());
}

std::optional<int32_t> Tokenizer::padding_id() const {
  if (padding) return padding->id;
  for (const char* name : {"[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"})
    if (const auto id = parts_->vocabulary->id(name)) return id;
  return {};
}

}  // namespace mase
