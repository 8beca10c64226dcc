# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders with drawn settings (random_folders.py) through ch, against transformers: all families, heads, forms of files,
with masks, padding in front and behind, positions and types; texts generated greedily; what ch writes back, loaded by transformers.
MASE_FOLDERS of them (default 120), from the seed MASE_FOLDERS_SEED (default 1) on. What ch refuses in one line is counted and shown.
Needs transformers and torch from PyPI; MASE_TRANSFORMERS_PYTHON names the Python that has them."""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
python = os.environ.get("MASE_TRANSFORMERS_PYTHON")
if python and os.path.abspath(python) != sys.executable and "MASE_AGAIN" not in os.environ:
    sys.exit(subprocess.run([python, sys.argv[0]], env={**os.environ, "MASE_AGAIN": "1"}).returncode)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false")
try:
    import numpy as np
    import torch
    import transformers
    import random_folders as drawn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOLERANCE = 1e-5
torch.set_num_threads(1)
transformers.utils.logging.disable_progress_bar()


class Refused(Exception):
    pass


def ch(folder, *words):
    done = subprocess.run([CH, *map(str, words)], cwd=folder, capture_output=True, text=True)
    if done.returncode == 2 and done.stderr.count("\n") == 1:
        raise Refused(done.stderr.strip())
    if done.returncode:
        raise AssertionError(f"ch {' '.join(map(str, words))}: {done.returncode}: {done.stderr}")
    return done.stdout


def predict(folder, arrays, network="net"):
    names = [f"in_{i}.npy" for i in range(len(arrays))]
    for name, array in zip(names, arrays):
        np.save(os.path.join(folder, name), array)
    for name in os.listdir(folder):
        if name.startswith("out"):
            os.remove(os.path.join(folder, name))
    ch(folder, "predict", "--load", network, "--input", *names, "--output", "out.npy")
    results = [np.load(os.path.join(folder, "out.npy"))]
    while os.path.exists(further := os.path.join(folder, f"out_{len(results)}.npy")):
        results.append(np.load(further))
    return results


def differs(ours, theirs, mask):
    """Where two lists of outputs are further apart than float32 allows, in words."""
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs, not {len(theirs)}"
    for place, (own, other) in enumerate(zip(ours, theirs)):
        if own.shape != other.shape:
            return f"output {place}: {own.shape}, not {other.shape}"
        by_token = mask is not None and other.shape[:2] == mask.shape
        apart = np.abs(own - other)[mask] if by_token else np.abs(own - other)
        most = max(1.0, float(np.abs(other[mask] if by_token else other).max(initial=0)))
        if not apart.max(initial=0) <= TOLERANCE * most:
            return f"output {place}: {apart.max():.3g} apart, largest value {most:.3g}"
    return ""


def greedy(model, prompt, count):
    """Greedy tokens as long as the choice is clear."""
    ids = list(prompt)
    for _ in range(count):
        with torch.no_grad():
            scores = model(input_ids=torch.tensor([ids])).logits[0, -1]
        best = scores.topk(2).values
        if best[0] - best[1] < 1e-4 * max(1, float(best[0].abs())):
            break
        ids.append(int(scores.argmax()))
    return ids[len(prompt):]


def unused(key):
    """Tensors that a network has and does not use: poolers under other heads, the second bias of a head that is not tied."""
    return "pooler" in key or key in ("lm_head.bias", "cls.predictions.bias", "cls.seq_relationship.weight", "cls.seq_relationship.bias")


def check(seed, folder):
    draw = drawn.Draw(seed)
    family = drawn.FAMILIES[seed % len(drawn.FAMILIES)]
    model, name, kind, settings = drawn.drawn_model(draw, family)
    form = drawn.write_model(model, os.path.join(folder, "net"), draw)
    told = f"{seed} {name} {form} {settings}"
    for case, (arrays, wanted, mask) in drawn.cases_of(model, kind, draw, getattr(model.config, "pad_token_id", None)).items():
        apart = differs(predict(folder, arrays), wanted, mask)
        if apart:
            raise AssertionError(f"{told}\n    {case}: {apart}")
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        prompt = [5, 17, 9, 33, 2]
        np.save(os.path.join(folder, "prompt.npy"), np.array(prompt))
        wanted = greedy(model, prompt, 12)
        try:
            text = ch(folder, "generate", "--load", "net", "--input", "prompt.npy", "--tokens", 12, "--ids", "--ignore-end")
        except Refused as refused:
            if "dynamic" not in str(refused):
                raise
        else:
            ours = [int(i) for i in text.split()][:len(wanted)]
            if ours != wanted:
                raise AssertionError(f"{told}\n    generates {ours}, not {wanted}")
    ch(folder, "export", "--load", "net", "--to", "written")
    again, loading = type(model).from_pretrained(os.path.join(folder, "written"), output_loading_info=True, dtype=torch.float32,
                                                 attn_implementation="eager")
    lost = [key for key in [*loading["missing_keys"], *loading["unexpected_keys"]] if not unused(key)]
    if lost:
        raise AssertionError(f"{told}\n    written back: {lost}")
    ours, theirs = again.eval().state_dict(), model.state_dict()
    for key, value in theirs.items():
        if not unused(key) and not torch.equal(ours[key], value):
            raise AssertionError(f"{told}\n    written back: '{key}' is another")


def main():
    count, first = int(os.environ.get("MASE_FOLDERS", "120")), int(os.environ.get("MASE_FOLDERS_SEED", "1"))
    results, failed = collections.Counter(), []
    for seed in range(first, first + count):
        folder = tempfile.mkdtemp()
        try:
            check(seed, folder)
            results["equal"] += 1
        except Refused as refused:
            results["refused"] += 1
            print(f"{seed} refused: {refused}")
        except AssertionError as failure:
            results["FAILED"] += 1
            failed.append(seed)
            print(f"FAILED {failure}")
        finally:
            shutil.rmtree(folder)
    print(f"{count} folders: {dict(results)}; transformers {transformers.__version__}, torch {torch.__version__}")
    return 1 if failed or results["equal"] < count / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
