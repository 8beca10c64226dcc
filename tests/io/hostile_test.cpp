// SPDX-License-Identifier: Apache-2.0
// A corpus of hostile checkpoints, built here. Every one must end in the one Error or in a harmless
// leaf: nothing runs, nothing crashes, nothing takes more memory than the file and 64 MB.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "mase/base/random.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/torch/torch_file.h"
#include "mase/io/zip/zip_writer.h"
#include "support/counted_memory.h"
#include "support/support.h"

namespace mase::hostile_test {
namespace {

constexpr size_t allowed = size_t{64} << 20;

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string file;
  ZipWriter zip(
      [&](const void* data, size_t n) { file.append(static_cast<const char*>(data), n); });
  for (const auto& [name, content] : entries) zip.add(name, content);
  zip.finish();
  return file;
}

std::string torch_zip(const std::string& pickle) {
  return zip_of(
      {{"a/data.pkl", pickle}, {"a/data/0", std::string(64, '\1')}, {"a/version", "3\n"}});
}

// What the whole reader says of these bytes, with the memory it took.
std::string verdict(const std::string& content) {
  static const std::string path = test::temporary_folder() + "/hostile.ckpt";
  test::write(path, content);
  test::peak_bytes = test::live_bytes.load();
  const size_t before = test::live_bytes;
  std::string said = "no error";
  try {
    inspect_checkpoint(path);
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_LE(test::peak_bytes - before, content.size() + allowed) << said;
  return said;
}

// The same without the file: for the many.
std::string quick_verdict(const std::string& content) {
  test::peak_bytes = test::live_bytes.load();
  const size_t before = test::live_bytes;
  std::string said = "no error";
  try {
    TorchFile file(std::as_bytes(std::span(content)), nullptr, "x");
    TensorTable tensors;
    file.value(file.root(), "", &tensors);
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_LE(test::peak_bytes - before, content.size() + allowed) << said;
  return said;
}

std::string le(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string text(const std::string& value) { return "X" + le(value.size(), 4) + value; }
std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
const std::string proto("\x80\x02", 2);
const std::string storage =
    "(" + text("storage") + global("torch", "FloatStorage") + text("0") + text("cpu") + "K\x10tQ";
std::string tensor(const std::string& offset, const std::string& size, const std::string& stride) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + storage + offset + size + stride +
         "\x89" + global("collections", "OrderedDict") + ")RtR";
}
std::string verdict_of_pickle(const std::string& body) {
  return verdict(torch_zip(proto + body + "."));
}

TEST(Hostile, CodeDoesNotRun) {
  const std::string marker = test::temporary_folder() + "/it_ran";
  const std::string command = "touch " + marker;
  const std::pair<const char*, const char*> functions[] = {{"os", "system"},
                                                           {"posix", "system"},
                                                           {"nt", "system"},
                                                           {"builtins", "eval"},
                                                           {"builtins", "exec"},
                                                           {"__builtin__", "eval"},
                                                           {"builtins", "getattr"},
                                                           {"builtins", "__import__"},
                                                           {"subprocess", "Popen"},
                                                           {"subprocess", "call"},
                                                           {"runpy", "run_path"},
                                                           {"numpy", "load"},
                                                           {"torch.hub", "load"},
                                                           {"torch", "load"},
                                                           {"pickle", "loads"},
                                                           {"_pickle", "loads"},
                                                           {"torch.storage", "_load_from_bytes"},
                                                           {"webbrowser", "open"},
                                                           {"shutil", "rmtree"},
                                                           {"operator", "attrgetter"},
                                                           {"importlib", "import_module"},
                                                           {"pty", "spawn"},
                                                           {"ctypes", "CDLL"},
                                                           {"torch.jit", "load"},
                                                           {"timeit", "timeit"},
                                                           {"os.path", "exists"}};
  for (const auto& [module, name] : functions) {
    for (const char* call : {"\x85R", "\x85\x81"}) {
      const std::string said = verdict_of_pickle(global(module, name) + text(command) + call);
      EXPECT_HAS(said, "asks to run the function");
      EXPECT_HAS(said, ": byte ");
    }
    // By the names on the stack (protocol 4), as a value of a dict, and never called: a leaf.
    EXPECT_HAS(
        verdict_of_pickle("\x8c" + le(std::strlen(module), 1) + module + "\x8c" +
                          le(std::strlen(name), 1) + name + "\x93" + text(command) + "\x85R"),
        "asks to run the function");
    EXPECT_EQ(verdict_of_pickle("}" + text("f") + global(module, name) + "s"), "no error");
  }
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST(Hostile, ReduceChainsAndOtherCallablesAreRefused) {
  // getattr(os, 'system')('...'), partial(os.system, '...')(), and calls of plain values.
  const std::string partial =
      global("functools", "partial") + global("os", "system") + text("x") + "\x86R";
  EXPECT_EQ(verdict_of_pickle(partial), "no error");  // a leaf
  EXPECT_HAS(verdict_of_pickle(partial + ")R"), "calls something that is not a class");
  EXPECT_HAS(verdict_of_pickle(text("os.system") + text("x") + "\x85R"), "not a class");
  EXPECT_HAS(verdict_of_pickle(global("a", "B") + ")R)R"), "not a class");
  EXPECT_HAS(verdict_of_pickle(global("a", "B") + "K\1R"), "are not a tuple");
  EXPECT_HAS(verdict_of_pickle(global("torch._tensor", "_rebuild_from_type_v2") + "(" +
                               global("os", "system") + "N" + text("x") + "\x85NtR"),
             "asks to run the function");
  EXPECT_HAS(verdict_of_pickle("K\1}b"), "attributes to a plain value");
}

TEST(Hostile, CallsInsideCallsDoNotNest) {
  // A tensor rebuilt from a tensor rebuilt from ...: as deep as the file is long.
  const std::string rebuild = global("torch._tensor", "_rebuild_from_type_v2");
  std::string body = rebuild + "q" + le(0, 1) + "0" + "h" + le(0, 1);
  constexpr int deep = 200000;
  for (int i = 0; i < deep; ++i) body += "(h" + le(0, 1) + "N";
  body += ")";
  for (int i = 0; i < deep; ++i) body += "Nt";
  EXPECT_HAS(verdict_of_pickle(body + "R"), "are not what PyTorch writes");
}

TEST(Hostile, JsonInACheckpointIsBounded) {
  std::string json = "[";
  for (int i = 0; i < 1000000; ++i) json += "0,";
  json += "0]";
  EXPECT_HAS(verdict_of_pickle("}" + text("mase") + text(json) + "s"), "limit allows");
}

TEST(Hostile, UnknownClassesBecomeLeaves) {
  const std::string path = test::temporary_folder() + "/leaf.ckpt";
  test::write(path, torch_zip(proto + "}" + text("x") + global("my.module", "Trainer") + ")\x81}" +
                              text("a") + "K\1sbs."));
  const Checkpoint checkpoint = inspect_checkpoint(path);
  EXPECT_EQ(checkpoint.contents["x"], Value(Symbol{"<my.module.Trainer>"}));
}

TEST(Hostile, NestedPicklesStayBytes) {
  const std::string inner = proto + global("os", "system") + text("false") + "\x85R.";
  EXPECT_EQ(verdict_of_pickle("}" + text("x") + "B" + le(inner.size(), 4) + inner + "s"),
            "no error");
}

TEST(Hostile, OpcodesOutsideTheListAreRefused) {
  for (const char opcode : std::string("P2iogpIFLSVO\x82\x83\x84\x97\x98\xff\x01\x7f"))
    EXPECT_HAS(verdict_of_pickle(std::string("NN") + opcode + "0000\n\n"),
               "is not one a checkpoint needs");
  for (const char* soup : {"t",
                           "e",
                           "u",
                           "(",
                           "R",
                           "b",
                           "s",
                           "a",
                           "0",
                           "1",
                           "Q",
                           "\x85",
                           "\x86",
                           "h\1",
                           "j\1\1\1\1",
                           "NN",
                           "",
                           "(K\1K\2u",
                           "}(K\1u",
                           "](K\1e(",
                           "NK\1a",
                           "}K\1a",
                           "]K\1K\2s",
                           "}]K\1s",
                           "((e",
                           "\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
                           "\x8a\x05",
                           "B\xff\xff\xff\xff",
                           "X\xff\xff\xff\xff",
                           "\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
                           "\x80\x06"})
    EXPECT_HAS(verdict_of_pickle(soup), ": byte ");
}

TEST(Hostile, MemoBombsAreRefused) {
  // Billion laughs: lists of lists that share their items, and texts repeated.
  std::string body = "](";
  body += std::string("]q") + '\0';
  for (int i = 0; i < 100; ++i)
    body += "](h" + le(static_cast<uint64_t>(i), 1) + "h" + le(static_cast<uint64_t>(i), 1) + "eq" +
            le(static_cast<uint64_t>(i + 1), 1);
  body += "e";
  EXPECT_NE(verdict_of_pickle(body), "no error");
  std::string texts = text(std::string(1 << 20, 'x')) + "q" + le(0, 1) + "0](";
  for (int i = 0; i < 100000; ++i) texts += std::string("h") + '\0';
  EXPECT_NE(verdict_of_pickle(texts + "e"), "no error");
  // A list that contains itself, and nesting beyond the limit.
  EXPECT_HAS(verdict_of_pickle(std::string("]q") + '\0' + "h" + '\0' + "a"), "nested too deeply");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "]";
  for (int i = 1; i < 100000; ++i) deep += "a";
  EXPECT_HAS(verdict_of_pickle(deep), "nested too deeply");
  // Values that cost one byte each, and marks.
  EXPECT_NE(verdict_of_pickle("(" + std::string(8 << 20, ']') + "t"), "no error");
  EXPECT_NE(verdict_of_pickle(std::string(8 << 20, '(')), "no error");
  std::string copies = "(" + std::string(20000, 'N') + "lq" + le(0, 1) + "0](";
  for (int i = 0; i < 20000; ++i)
    copies += global("builtins", "set") + "h" + std::string(1, '\0') + "\x85R";
  EXPECT_NE(verdict_of_pickle(copies + "e"), "no error");
}

TEST(Hostile, NamesAreChargedToo) {
  const std::string whole = tensor(std::string("K\0", 2), "K\4K\4\x86", "K\4K\1\x86");
  const auto remember = [](const std::string& value, uint64_t at) {
    return value + "q" + le(at, 1) + "0";
  };
  const auto recall = [](uint64_t at) { return "h" + le(at, 1); };
  const auto many = [&](const std::string& item, int count) {
    std::string body = "}(";
    for (int i = 0; i < count; ++i) body += item;
    return body + "u";
  };
  // The same tensor under the same long name, in a small file: as text and inside a tuple.
  for (const size_t length : {1000u, 60000u}) {
    const std::string start =
        remember(whole, 0) + remember(text(std::string(length, 'n')), 1) +
        remember("(" + recall(1) + recall(1) + recall(1) + recall(1) + "t", 2);
    EXPECT_NE(verdict_of_pickle(start + many(recall(1) + recall(0), 20000)), "no error");
    EXPECT_NE(verdict_of_pickle(start + many(recall(2) + recall(0), 20000)), "no error");
    EXPECT_NE(verdict_of_pickle(start + many(recall(2) + "N", 40000)), "no error");
    // At the end of a long path, many times: only the memory counts.
    std::string lists = start + "}" + recall(1) + "](";
    for (int i = 0; i < 50000; ++i) lists += recall(0);
    verdict_of_pickle(lists + "es");
  }
  // Descriptions of tensors of many dimensions.
  std::string ones = "(";
  for (int i = 0; i < 64; ++i) ones += "K\1";
  const std::string flat = tensor(std::string("K\0", 2), ones + "t", ones + "t");
  std::string shapes = remember(flat, 0) + "}" + text("a") + "](";
  for (int i = 0; i < 200000; ++i) shapes += recall(0);
  verdict_of_pickle(shapes + "es");
}

TEST(Hostile, TensorsMustLieInTheirStorages) {
  EXPECT_EQ(verdict_of_pickle(tensor(std::string("K\0", 2), "K\4K\4\x86", "K\4K\1\x86")),
            "no error");
  const auto said = [](const std::string& offset, const std::string& size,
                       const std::string& stride) {
    return verdict_of_pickle(tensor(offset, size, stride));
  };
  const std::string zero("K\0", 2), minus = "J\xff\xff\xff\xff";
  const std::string billion = "J" + le(1000000000, 4);
  const std::string huge = "\x8a\x08" + le(INT64_MAX, 8);
  EXPECT_HAS(said("K\1", "K\4K\4\x86", "K\4K\1\x86"), "last element is number 16");
  EXPECT_HAS(said(zero, billion + "\x85", "K\1\x85"), "of a storage of 16");
  EXPECT_HAS(said(zero, billion + "\x85", zero + "\x85"), "more memory than the limit");
  EXPECT_HAS(said(minus, "K\4\x85", "K\1\x85"), "before its storage");
  EXPECT_HAS(said(zero, minus + "\x85", "K\1\x85"), "negative dimension");
  EXPECT_HAS(said("K\4", "K\4\x85", minus + "\x85"), "negative stride");
  EXPECT_HAS(said(zero, "K\2\x85", huge + "\x85"), "a tensor of shape");
  EXPECT_HAS(said(zero, huge + huge + "\x86", zero + zero + "\x86"), "overflow");
  EXPECT_HAS(said(zero, "K\4\x85", "K\1K\1\x86"), "more strides than dimensions");
  std::string many = "(";
  for (int i = 0; i < 100; ++i) many += "K\1";
  EXPECT_HAS(said(zero, many + "t", many + "t"), "too many dimensions");
}

TEST(Hostile, StoragesMustMatchTheirEntries) {
  const auto with = [](const std::string& count, const std::string& key) {
    return verdict_of_pickle(global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
                             global("torch", "FloatStorage") + text(key) + text("cpu") + count +
                             "tQK" + std::string(1, '\0') + ")))" + "\x89" + "NtR");
  };
  EXPECT_HAS(with("K\x11", "0"), "has 64 bytes, but the pickle says 17 elements");
  EXPECT_HAS(with("J" + le(1000000000, 4), "0"), "1000000000 elements");
  EXPECT_HAS(with("\x8a\x08" + le(INT64_MAX, 8), "0"), "has 64 bytes");
  EXPECT_HAS(with("J\xff\xff\xff\xff", "0"), "negative size");
  EXPECT_HAS(with("K\x10", "1"), "is missing");
  EXPECT_HAS(with("K\x10", "../../etc/passwd"), "is missing");
}

TEST(Hostile, TorchScriptIsNamed) {
  const std::string said =
      verdict(zip_of({{"a/data.pkl", "\x80\x02N."}, {"a/constants.pkl", "x"}}));
  EXPECT_HAS(said, "TorchScript");
  EXPECT_HAS(said, "torch.jit.load");
  EXPECT_HAS(verdict(zip_of({{"a/code/x.py", ""}, {"a/data.pkl", "N."}})), "TorchScript");
}

TEST(Hostile, EveryTruncationOfEveryContainerIsAnError) {
  for (const char* name : {"torch/odd.pt", "torch/odd_legacy.pt"}) {
    const std::string good = test::read(test::golden_path(name));
    ASSERT_EQ(verdict(good), "no error");
    ASSERT_EQ(quick_verdict(good), "no error");
    for (size_t size = 0; size < good.size(); ++size)
      ASSERT_NE(quick_verdict(good.substr(0, size)), "no error") << name << " " << size;
  }
}

TEST(Hostile, TenThousandFlippedBytes) {
  const std::string files[] = {test::read(test::golden_path("torch/jsc-tiny.ckpt")),
                               test::read(test::golden_path("torch/odd.pt")),
                               test::read(test::golden_path("torch/odd_legacy.pt"))};
  Random random(7, "flips");
  size_t refused = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string content = files[i % 3];
    const int flips = i % 4 == 3 ? 4 : 1;
    for (int flip = 0; flip < flips; ++flip) {
      char& byte = content[random.below(content.size())];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + random.below(255)));
    }
    refused += quick_verdict(content) != "no error";
  }
  EXPECT_GT(refused, 2000u);  // most flips hit padding and numbers, which are anybody's
}

TEST(Hostile, LimitsAreTheCallers) {
  const std::string path = test::golden_path("torch/jsc-tiny.ckpt");
  const auto said = [&](const ReadLimits& limits) -> std::string {
    try {
      load_checkpoint(path, {}, limits);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(said({}), "no error");
  EXPECT_HAS(said({.memory = 10000}), "limit allows");
  EXPECT_HAS(said({.depth = 2}), "nested too deeply");
  EXPECT_HAS(said({.objects = 300}), "too many values");
  EXPECT_HAS(said({.entries = 3}), "entries");
}

}  // namespace
}  // namespace mase::hostile_test
