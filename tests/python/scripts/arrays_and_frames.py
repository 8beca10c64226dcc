# SPDX-License-Identifier: Apache-2.0
"""Arrays and DataFrames through train, test and predict, which mean the same rows and the same scaling."""
import numpy as np

import mase

draw = np.random.default_rng(0)
x = (draw.normal(size=(600, 8)) * 100 + 50).astype("f4")
y = ((x - 50) @ draw.normal(size=(8, 3))).argmax(1)
run = mase.train("jsc-toy", (x, y), max_epochs=5, batch_size=32, learning_rate=1e-2, seed=1)
accuracy = mase.test(run.graph, (x, y)).accuracy
assert abs((np.asarray(mase.predict(run.graph, x)).argmax(1) == y).mean() - accuracy) < 1e-6
mase.train("jsc-toy", (x, np.array(["a", "b", "c"])[y]), max_epochs=1, batch_size=32)
mase.test(run.graph.quantize(linear=mase.formats.integer(8, 4)), (x, y), split="val")
for wrong in (lambda: mase.trian, lambda: mase.train("jsc-toi", (x, y)), lambda: mase.test(run.graph, (x, y), split="vall"),
              lambda: mase.train("jsc-toy", (x, y), max_epoch=2)):
    try:
        wrong()
    except (AttributeError, mase.Error) as error:
        assert "did you mean" in str(error), error
    else:
        raise AssertionError("no error")

try:
    import pandas
except ImportError:
    raise SystemExit(0)
frame = pandas.DataFrame(draw.normal(size=(400, 6)), columns=list("abcdef"))
frame["kind"] = np.where(frame.a + frame.b > 0, "yes", "no")
run = mase.train("jsc-toy", frame, target="kind", max_epochs=4, batch_size=16, learning_rate=1e-2)
tested = mase.test(run.graph, frame, target="kind")
outputs = np.asarray(mase.predict(run.graph, frame.drop(columns="kind")))
assert abs(((outputs.argmax(1) == 1) == (frame.kind == "yes")).mean() - tested.accuracy) < 1e-6
for given, word in (({}, "target"), ({"target": "kin"}, "did you mean 'kind'"), ({"target": "a"}, "kind")):
    try:
        mase.train("jsc-toy", frame, max_epochs=1, **given)
    except mase.Error as error:
        assert word in str(error), error
    else:
        raise AssertionError("no error")
