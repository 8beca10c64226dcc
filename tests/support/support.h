// SPDX-License-Identifier: Apache-2.0
// What tests share: where the tree and the binary are, temporary folders, running ch, golden files.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mase::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MASE_TEST_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define MASE_TEST_THREAD_SANITIZER 1
#endif
#endif
#if defined(MASE_TEST_THREAD_SANITIZER) || defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitized = true;
#else
constexpr bool thread_sanitized = false;
#endif
// Under a sanitizer figures of memory and time mean nothing.
#if defined(MASE_TEST_ADDRESS_SANITIZER) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = thread_sanitized;
#endif

std::string source_path(const std::string& relative);  // in the source tree
std::string golden_path(const std::string& name);      // tests/golden/NAME

// A fresh folder, removed at the end of the program.
std::string temporary_folder();

struct RunResult {
  int exit_code = 0;  // 128 + signal if killed
  std::string out, err;
};
// Runs a program with arguments, no shell. `environment` entries are "NAME=value".
RunResult run(const std::vector<std::string>& command, const std::string& folder = "",
              const std::vector<std::string>& environment = {});
RunResult ch(const std::vector<std::string>& arguments, const std::string& folder = "",
             const std::vector<std::string>& environment = {});

// Compares with a golden text file; with MASE_REWRITE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& text, const std::string& name);

std::string read(const std::string& path);
void write(const std::string& path, const std::string& content);

}  // namespace mase::test

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
