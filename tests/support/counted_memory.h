// SPDX-License-Identifier: Apache-2.0
// Counts what a test program allocates, by taking the place of operator new: included by the one
// source file of such a program. The thread sanitizer brings its own operators, so there nothing is
// counted and what the counters say holds trivially.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace mase::test {

inline std::atomic<int64_t> allocations{0};
inline std::atomic<size_t> live_bytes{0}, peak_bytes{0};

}  // namespace mase::test

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MASE_TEST_MEMORY_NOT_COUNTED
#endif
#endif

#ifndef MASE_TEST_MEMORY_NOT_COUNTED

namespace mase::test {

// The size stands before each block; 64 bytes keep every alignment up to a cache line.
inline constexpr size_t counted_header = 64;

inline void* counted(size_t size) noexcept {
  const size_t whole = (size + 2 * counted_header - 1) / counted_header * counted_header;
  auto* block = static_cast<unsigned char*>(std::aligned_alloc(counted_header, whole));
  if (!block) return nullptr;
  ++allocations;
  *reinterpret_cast<size_t*>(block) = size;
  const size_t now = live_bytes += size;
  size_t seen = peak_bytes;
  while (now > seen && !peak_bytes.compare_exchange_weak(seen, now)) {
  }
  return block + counted_header;
}

inline void* counted_or_throw(size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

inline void uncounted(void* pointer) noexcept {
  if (!pointer) return;
  auto* block = static_cast<unsigned char*>(pointer) - counted_header;
  live_bytes -= *reinterpret_cast<size_t*>(block);
  std::free(block);
}

}  // namespace mase::test

// Both sides of the pair are replaced, which GCC does not see once they are inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(size_t size) { return mase::test::counted_or_throw(size); }
void* operator new[](size_t size) { return mase::test::counted_or_throw(size); }
void* operator new(size_t size, std::align_val_t) { return mase::test::counted_or_throw(size); }
void* operator new[](size_t size, std::align_val_t) { return mase::test::counted_or_throw(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return mase::test::counted(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return mase::test::counted(size);
}
void operator delete(void* p) noexcept { mase::test::uncounted(p); }
void operator delete[](void* p) noexcept { mase::test::uncounted(p); }
void operator delete(void* p, size_t) noexcept { mase::test::uncounted(p); }
void operator delete[](void* p, size_t) noexcept { mase::test::uncounted(p); }
void operator delete(void* p, std::align_val_t) noexcept { mase::test::uncounted(p); }
void operator delete[](void* p, std::align_val_t) noexcept { mase::test::uncounted(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { mase::test::uncounted(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { mase::test::uncounted(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { mase::test::uncounted(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { mase::test::uncounted(p); }

#endif
