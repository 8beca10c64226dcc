# SPDX-License-Identifier: Apache-2.0
# What leaves the program: networks with learned steps and clips as ONNX, arrays rounded, options of styles named.
import os
import random
import struct
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from commands import ch, check, end  # noqa: E402


def newest(folder):
    found = [os.path.join(at, "best.mz") for at, _, files in os.walk(folder) if "best.mz" in files]
    return max(found, key=os.path.getmtime) if found else "best.mz"


LEARNED = """model = "mine.toml"
[passes.quantize]
by = "type"
[passes.quantize.default.config]
name = "NA"
[passes.quantize.linear.config]
name = "scale_integer"
data_in_width = 4
data_in_clip = "learned"
weight_width = 4
weight_scale = "learned"
weight_granularity = "row"
"""

with tempfile.TemporaryDirectory() as folder:
    draw = random.Random(3)
    with open(f"{folder}/rows.csv", "w") as out:
        out.write("a,b,c,d,class\n")
        for _ in range(400):
            label = draw.randrange(3)
            out.write(",".join(f"{draw.gauss(label * (k + 1) % 3, 1):.4f}" for k in range(4)) + f",k{label}\n")
    with open(f"{folder}/mine.toml", "w") as out:
        out.write('name = "mine"\nseq_blocks = [{type = "Linear", out_features = 8}, {type = "ReLU"}, '
                  '{type = "Linear"}]\n')
    with open(f"{folder}/learned.toml", "w") as out:
        out.write(LEARNED)

    # Steps and clips that were learned are numbers: the file has a quantiser for each operand.
    ch("train", "mine.toml", "rows.csv", "--target", "class", "--config", "learned.toml", "--max-epochs", "2",
       "--project", "run", folder=folder)
    best = newest(folder)
    for flavour in ("qonnx", "qcdq"):
        said = ch("export", best, "--to", f"{flavour}.onnx", "--flavour", flavour, folder=folder)
        check("Wrote mine" in said, f"learned ranges as {flavour}", said)
    try:
        import numpy
        import onnxruntime
    except ImportError:
        print("onnxruntime is not here: the written numbers were not computed with")
    else:
        x = numpy.random.default_rng(0).normal(size=(500, 4)).astype("float32")
        numpy.save(f"{folder}/x.npy", x)
        ch("predict", "--load", best, "--input", "x.npy", "--output", "y.npy", "--no-preprocess", folder=folder)
        # Its optimiser rewrites quantisers and changes what they give: the file is what is asked.
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(f"{folder}/qcdq.onnx", options)
        theirs = session.run(None, {session.get_inputs()[0].name: x})[0]
        ours = numpy.load(f"{folder}/y.npy")
        # A value between two steps may go to the other one: single rows, not many.
        wrong = (abs(ours - theirs).max(axis=1) > 1e-4).mean()
        check(wrong <= 0.01, f"{wrong:.3f} of the rows differ from onnxruntime")

    # Hardware takes them as numbers of few bits, says so, and the integers are the network's.
    said = ch("emit", best, "--no-prove", "--output", "learned", folder=folder)
    check("learned steps and clips were rounded to 3 significant bits" in said and "0 mismatches" in said,
          "ch emit freezes what was learned", said)
    said = ch("estimate", best, folder=folder)
    check("LUTs" in said, "ch estimate of learned ranges", said)
    # As a pass, with all digits: the same network without the parameters.
    ch("pass", "freeze_scales", best, "--save", "frozen.mz", folder=folder)
    said = [ch("test", one, "rows.csv", "--target", "class", "--no-output", folder=folder) for one in (best, "frozen.mz")]
    figures = [[line for line in one.split("\n") if "test_acc_epoch" in line] for one in said]
    check(figures[0] and figures[0] == figures[1], "frozen scales compute the same", "\n".join(said))
    check("weight_scale" not in ch("inspect", "frozen.mz", folder=folder), "and are parameters no longer")

    # A guess of fraction bits that cuts most values off is said, when training goes on from there.
    with open(f"{folder}/narrow.toml", "w") as out:
        out.write(LEARNED.split('name = "scale_integer"')[0] + 'name = "integer"\ndata_in_width = 4\n'
                  'data_in_frac_width = 4\nweight_width = 6\nweight_frac_width = 4\nbias_width = 6\nbias_frac_width = 4\n')
    ch("train", "mine.toml", "rows.csv", "--target", "class", "--max-epochs", "1", "--project", "float", folder=folder)
    said = ch("train", "mine.toml", "rows.csv", "--target", "class", "--load", newest(folder), "--config", "narrow.toml",
              "--max-epochs", "1", "--project", "narrow", folder=folder)
    check("before training, on 256 training rows, values are cut off" in said and "calibrate" in said and
          "ends at -0.5 and 0.4375" in said, "saturation is said", said)
    said = ch("train", "mine.toml", "rows.csv", "--target", "class", "--load", newest(folder), "--config", "learned.toml",
              "--max-epochs", "1", "--project", "wide", folder=folder)
    check("cut off" not in said, "ranges that are found cut nothing off", said)

    # Arrays are rounded as tensors of checkpoints are.
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    with open(f"{folder}/a.npy", "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<4f", 0.3, 1.26, -7, 99))
    said = ch("quantize", "--input", "a.npy", "--format", "integer", "--set", "width=8", "--set", "frac_width=2",
              folder=folder)
    check("25.00%" in said, "one of four values saturates", said)

    # All styles that have an option are named, not one of them.
    with open(f"{folder}/q.toml", "w") as out:
        out.write(LEARNED.split('name = "scale_integer"')[0] + 'name = "integer"\ndata_in_width = 6\n'
                  'data_in_frac_width = 3\nweight_width = 6\nweight_frac_width = 4\nbias_width = 6\n'
                  'bias_frac_width = 4\n')
    ch("train", "mine.toml", "rows.csv", "--target", "class", "--max-epochs", "1", "--project", "plain", folder=folder)
    plain = newest(folder)
    said = ch("emit", "--load", plain, "--config", "q.toml", "--style", "stream", "--valid", "--output", "d",
              folder=folder, code=2)
    check("lut and unrolled" in said, "--valid names its styles", said)
    # The accuracy before the passes stands beside that of the integers.
    said = ch("emit", "--load", plain, "--config", "q.toml", "--no-prove", "--output", "e", folder=folder)
    check("before the passes" in said, "accuracy before the passes", said)

end()
