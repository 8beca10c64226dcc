#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompts and single tokens of a GGUF file, ours beside llama.cpp's (PyPI: cyllama), in turns in one
run; the share of the memory's bandwidth that our decoding uses.

    bench/decode.py CH FILE.gguf [--threads 1 2] [--prompt 512] [--tokens 64] [--rounds 3]

Without cyllama only our figures are shown."""
import argparse
import ctypes
import re
import subprocess
import tempfile
import time

import numpy

READ = """
#include <cstdint>
extern "C" uint64_t read_all(const uint64_t* from, uint64_t count) {
  uint64_t sum[8] = {};
  for (uint64_t i = 0; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; ++k) sum[k] += from[i + k];
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}
"""


def bandwidth(threads):
    """GB/s of a plain read of 256 MB for each thread, the best of several."""
    import threading
    with tempfile.TemporaryDirectory() as folder:
        source, library = folder + "/read.cpp", folder + "/read.so"
        open(source, "w").write(READ)
        subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
        read = ctypes.CDLL(library).read_all
        blocks = [numpy.ones(1 << 25, dtype=numpy.uint64) for _ in range(threads)]
        best = 0
        for _ in range(5):
            workers = [threading.Thread(target=read, args=(ctypes.c_void_p(b.ctypes.data), ctypes.c_uint64(b.size)))
                       for b in blocks]
            start = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            best = max(best, threads * (1 << 28) / (time.perf_counter() - start) / 1e9)
        return best


def ours(options, threads, ids):
    done = subprocess.run([options.ch, "generate", "--load", options.file, "--input", ids, "--ids", "--ignore-end",
                           "--tokens", str(options.tokens), "--threads", str(threads), "--speed"],
                          capture_output=True, text=True, check=True)
    prompt = float(re.search(r"prompt .*?, ([0-9.]+) tokens/s", done.stderr).group(1))
    text, read = map(float, re.search(r"text .*?, ([0-9.]+) tokens/s, ([0-9.]+) GB/s", done.stderr).groups())
    return prompt, text, read


class Peer:
    def __init__(self, path):
        import cyllama.llama.llama_cpp as llama
        try:
            llama.disable_logging()
        except AttributeError:
            pass
        self.llama = llama
        self.model = llama.LlamaModel(path, llama.LlamaModelParams())

    def run(self, threads, prompt, tokens):
        parameters = self.llama.LlamaContextParams()
        parameters.n_ctx, parameters.n_batch = len(prompt) + tokens + 8, max(512, len(prompt))
        parameters.n_threads = parameters.n_threads_batch = threads
        context = self.llama.LlamaContext(self.model, parameters)
        sampler = self.llama.LlamaSampler(self.llama.LlamaSamplerChainParams())
        sampler.add_greedy()
        start = time.perf_counter()
        context.decode(self.llama.llama_batch_get_one(prompt, 0))
        token = sampler.sample(context, -1)
        first = time.perf_counter()
        for i in range(tokens - 1):
            context.decode(self.llama.llama_batch_get_one([token], len(prompt) + i))
            token = sampler.sample(context, -1)
        return len(prompt) / (first - start), (tokens - 1) / (time.perf_counter() - first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ch")
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    prompt = [(7 * i + 3) % 40000 for i in range(options.prompt)]
    try:
        peer = Peer(options.file)
    except ImportError:
        peer = None
    with tempfile.TemporaryDirectory() as folder:
        ids = folder + "/ids.npy"
        numpy.save(ids, numpy.array(prompt, dtype=numpy.int32))
        for threads in options.threads:
            own, other = [], []
            for _ in range(options.rounds):
                own.append(ours(options, threads, ids))
                if peer:
                    other.append(peer.run(threads, prompt, options.tokens))
            best = [max(values) for values in zip(*own)]
            whole = bandwidth(threads)
            print(f"{threads} threads: ch prompt {best[0]:.0f}, text {best[1]:.1f} tokens/s, weights at {best[2]:.1f} "
                  f"of {whole:.1f} GB/s ({100 * best[2] / whole:.0f} %)")
            if peer:
                theirs = [max(values) for values in zip(*other)]
                print(f"           llama.cpp prompt {theirs[0]:.0f}, text {theirs[1]:.1f} tokens/s; "
                      f"ratios {best[0] / theirs[0]:.2f} and {best[1] / theirs[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
