# SPDX-License-Identifier: Apache-2.0
"""Random ONNX models: one to six operators of some eighty kinds over ten operator sets, with an open
or a fixed batch, and with what goes wrong easily: values computed from the size of the batch, nodes
that join its entries, reshapes and transposes that move it, branches and loops. A model is a pure
function of its seed; `model(seed)` gives it with an input. Needs onnx and numpy."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSETS = (9, 11, 12, 13, 14, 15, 17, 18, 20, 21)
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Maker:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice(OPSETS))
        self.nodes, self.constants, self.count = [], [], 0
        self.kinds = []
        self.rows = int(self.rng.integers(1, 7))
        rank = int(self.rng.choice([2, 2, 3, 3, 4]))
        self.shape = [self.rows] + [int(self.rng.integers(1, 6)) for _ in range(rank - 1)]
        self.open = bool(self.rng.random() < 0.6)
        self.x = ("x", list(self.shape))

    # Parts of models. A value is (name, shape with the rows of the input that is made).
    def name(self):
        self.count += 1
        return f"v{self.count}"

    def node(self, op, inputs, shape, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, [i[0] if isinstance(i, tuple) else i for i in inputs],
                                           names, **attributes))
        return (names[0], shape) if outputs == 1 else [(n, shape) for n in names]

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return (name, list(np.asarray(array).shape))

    def floats(self, *shape):
        return self.constant(self.rng.normal(0, 1, shape).astype(np.float32))

    def ints(self, *values):
        return self.constant(np.array(values, dtype=np.int64))

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def axis(self, value):
        return int(self.rng.integers(len(value[1])))

    def signed(self, axis, rank):
        return axis - rank if self.rng.random() < 0.3 else axis

    # Axes as an attribute, or as an input since an operator set.
    def with_axes(self, op, v, axes, shape, since, **attributes):
        if self.opset >= since:
            return self.node(op, [v, self.ints(*axes)], shape, **attributes)
        return self.node(op, [v], shape, axes=list(axes), **attributes)

    def unsqueezed(self, v, axes):
        shape = list(v[1])
        for axis in sorted(axes):
            shape.insert(axis, 1)
        return self.with_axes("Unsqueeze", v, axes, shape, 13)

    # One number of the batch: float, shape [].
    def batch_number(self, v):
        kind = self.pick(["gather", "size", "prod", "slice", "sum"])
        shape = self.node("Shape", [v], [len(v[1])])
        if kind == "gather":
            number = self.node("Gather", [shape, self.constant(np.int64(self.axis(v)))], [])
        elif kind == "size":
            number = self.node("Size", [v], [])
        elif kind == "prod":
            number = self.node("ReduceProd", [shape], [], keepdims=0)
        elif kind == "slice" and self.opset >= 10:
            part = self.node("Slice", [shape, self.ints(0), self.ints(1)], [1])
            number = self.with_axes("Squeeze", part, [0], [], 13)
        else:
            number = self.node("ReduceSum", [shape], [], keepdims=0)
        return number

    def batch_size(self, v):
        return self.node("Gather", [self.node("Shape", [v], [len(v[1])]), self.constant(np.int64(0))], [])

    # Kinds of nodes. Each takes a value and gives another one, or None where it does not apply.
    def unary(self, v):
        plain = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Floor", "Ceil", "Softplus", "Softsign", "Selu",
                 "LeakyRelu", "Elu", "HardSigmoid", "Erf", "Sign", "Identity", "Sin", "Cos", "Shrink"]
        late = {"ThresholdedRelu": 10, "Round": 11, "Celu": 12, "HardSwish": 14, "Mish": 18, "Gelu": 20}
        op = self.pick(plain + [name for name, since in late.items() if self.opset >= since])
        numbers = {"LeakyRelu": {"alpha": 0.3}, "Elu": {"alpha": 0.7}, "ThresholdedRelu": {"alpha": 0.2},
                   "HardSigmoid": {"alpha": 0.3, "beta": 0.4}, "Celu": {"alpha": 0.8},
                   "Shrink": {"lambd": 0.4, "bias": self.pick([0.0, 0.2])}}
        return self.node(op, [v], v[1], **numbers.get(op, {}))

    def exp(self, v):
        return self.node("Exp", [self.node("Tanh", [v], v[1])], v[1])

    def sqrt(self, v):
        return self.node("Sqrt", [self.node("Abs", [v], v[1])], v[1])

    def clip(self, v):
        if self.opset < 11:
            return self.node("Clip", [v], v[1], min=-0.6, max=0.9)
        return self.node("Clip", [v, self.constant(np.float32(-0.6)), self.constant(np.float32(0.9))], v[1])

    def broadcast(self, v):
        op = self.pick(["Add", "Sub", "Mul", "Div", "Max", "Min"])
        own = [1 if self.rng.random() < 0.4 or i == 0 else d for i, d in enumerate(v[1])]
        own = own[int(self.rng.integers(len(own) + 1)):]
        values = self.rng.normal(0, 1, own)
        if op == "Div":
            values = np.where(values < 0, values - 0.5, values + 0.5)
        other = self.constant(values.astype(np.float32))
        pair = [v, other] if op == "Div" or self.rng.random() < 0.7 else [other, v]
        return self.node(op, pair, v[1])

    def power(self, v):
        return self.node("Pow", [self.node("Abs", [v], v[1]), self.constant(np.float32(self.pick([0.5, 1.5, 2, 3])))],
                         v[1])

    def both(self, v):
        other = self.unary(v)
        return self.node(self.pick(["Add", "Sub", "Mul"]), [v, other], v[1])

    def choose(self, v):
        where = self.node(self.pick(["Greater", "Less"]), [v, self.constant(np.float32(0.05))], v[1])
        return self.node("Where", [where, v, self.unary(v)], v[1])

    def compare(self, v):
        truth = self.node(self.pick(["Greater", "Less"]), [v, self.constant(np.float32(0.1))], v[1])
        if self.rng.random() < 0.5:
            truth = self.node("Not", [truth], v[1])
        return self.node("Cast", [truth], v[1], to=FLOAT)

    def to_int(self, v):
        whole = self.node("Cast", [self.node("Mul", [v, self.constant(np.float32(5))], v[1])], v[1], to=INT)
        divided = self.node(self.pick(["Div", "Mul", "Add"]), [whole, self.constant(np.int64(3))], v[1])
        return self.node("Cast", [divided], v[1], to=FLOAT)

    def reduce(self, v):
        op = self.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                        "ReduceSumSquare", "ReduceProd", "ReduceLogSumExp"])
        rank = len(v[1])
        axes = sorted({self.axis(v) for _ in range(int(self.rng.integers(1, 3)))})
        keep = bool(self.rng.random() < 0.6)
        shape = [1 if i in axes else d for i, d in enumerate(v[1]) if keep or i not in axes]
        axes = [self.signed(a, rank) for a in axes]
        return self.with_axes(op, v, axes, shape, 13 if op == "ReduceSum" else 18, keepdims=int(keep))

    def softmax(self, v):
        op = self.pick(["Softmax", "LogSoftmax", "Softmax", "Hardmax"])
        return self.node(op, [v], v[1], axis=self.signed(self.axis(v), len(v[1])) if self.opset >= 11 else self.axis(v))

    def arg(self, v):
        axis, keep = self.axis(v), bool(self.rng.random() < 0.5)
        shape = [1 if i == axis else d for i, d in enumerate(v[1]) if keep or i != axis]
        place = self.node(self.pick(["ArgMax", "ArgMin"]), [v], shape, axis=axis, keepdims=int(keep))
        return self.node("Cast", [place], shape, to=FLOAT)

    def topk(self, v):
        if self.opset < 11:
            return None
        axis = self.axis(v)
        k = int(self.rng.integers(1, v[1][axis] + 1))
        shape = [k if i == axis else d for i, d in enumerate(v[1])]
        values, _ = self.node("TopK", [v, self.ints(k)], shape, outputs=2, axis=axis)
        return values

    def cumsum(self, v):
        if self.opset < 11:
            return None
        return self.node("CumSum", [v, self.constant(np.int64(self.axis(v)))], v[1],
                         exclusive=int(self.rng.integers(2)), reverse=int(self.rng.integers(2)))

    def transpose(self, v):
        order = [int(i) for i in self.rng.permutation(len(v[1]))]
        return self.node("Transpose", [v], [v[1][i] for i in order], perm=order)

    def reshape(self, v):
        count = int(np.prod(v[1]))
        dims, rest = [], count
        for _ in range(int(self.rng.integers(0, 3))):
            factors = [f for f in range(1, rest + 1) if rest % f == 0]
            dims.append(self.pick(factors))
            rest //= dims[-1]
        dims.append(rest)
        self.rng.shuffle(dims)
        wanted = list(dims)
        if self.rng.random() < 0.7:
            wanted[int(self.rng.integers(len(wanted)))] = -1
        if wanted[0] == v[1][0] and self.rng.random() < 0.7:
            wanted[0] = 0
        return self.node("Reshape", [v, self.ints(*wanted)], dims)

    def reshape_by_shape(self, v):
        """As exporters write it: the batch from Shape, the rest as numbers."""
        batch = self.unsqueezed(self.batch_size(self.x), [0])
        count = int(np.prod(v[1]))
        if count % self.rows:
            return None
        rest = count // self.rows
        factors = [f for f in range(1, rest + 1) if rest % f == 0]
        inner = self.pick(factors)
        shape = self.node("Concat", [batch, self.ints(inner, -1)], [3], axis=0)
        return self.node("Reshape", [v, shape], [self.rows, inner, rest // inner])

    def flatten(self, v):
        axis = int(self.rng.integers(len(v[1]) + 1))
        return self.node("Flatten", [v], [int(np.prod(v[1][:axis])), int(np.prod(v[1][axis:]))], axis=axis)

    def unsqueeze(self, v):
        return self.unsqueezed(v, [int(self.rng.integers(len(v[1]) + 1))]) if len(v[1]) < 5 else None

    def squeeze(self, v):
        ones = [i for i, d in enumerate(v[1]) if d == 1 and i > 0]
        if not ones:
            return None
        axis = self.pick(ones)
        return self.with_axes("Squeeze", v, [axis], [d for i, d in enumerate(v[1]) if i != axis], 13)

    def concat(self, v):
        axis = self.axis(v)
        other = self.unary(v)
        return self.node("Concat", [v, other], [2 * d if i == axis else d for i, d in enumerate(v[1])], axis=axis)

    def split(self, v):
        axis = self.axis(v)
        if v[1][axis] < 2:
            return None
        first = int(self.rng.integers(1, v[1][axis]))
        sizes = [first, v[1][axis] - first]
        if self.opset >= 13:
            parts = self.node("Split", [v, self.ints(*sizes)], [], outputs=2, axis=axis)
        else:
            parts = self.node("Split", [v], [], outputs=2, axis=axis, split=sizes)
        which = int(self.rng.integers(2))
        return (parts[which][0], [sizes[which] if i == axis else d for i, d in enumerate(v[1])])

    def slice(self, v):
        axis = self.axis(v)
        size = v[1][axis]
        start = int(self.rng.integers(size))
        step = self.pick([1, 1, 2, -1])
        places = list(range(size))[start::step]
        end = {True: -size - 5, False: 1 << 40}[step < 0]
        shape = [len(places) if i == axis else d for i, d in enumerate(v[1])]
        if self.opset < 10:
            return None if step != 1 else self.node("Slice", [v], shape, axes=[axis], starts=[start], ends=[1 << 40])
        return self.node("Slice", [v, self.ints(start), self.ints(end), self.ints(axis), self.ints(step)], shape)

    def gather(self, v):
        axis = self.axis(v)
        if self.rng.random() < 0.4:
            index, inner = self.constant(np.int64(self.rng.integers(v[1][axis]))), []
        else:
            inner = [int(self.rng.integers(1, 4))]
            index = self.ints(*[int(i) for i in self.rng.integers(-v[1][axis] if self.opset >= 11 else 0, v[1][axis], inner)])
        return self.node("Gather", [v, index], v[1][:axis] + inner + v[1][axis + 1:], axis=axis)

    def gather_elements(self, v):
        if self.opset < 11:
            return None
        axis = self.axis(v)
        shape = [d if i != axis and self.rng.random() < 0.6 else int(self.rng.integers(1, d + 1)) for i, d in enumerate(v[1])]
        index = self.constant(self.rng.integers(-v[1][axis], v[1][axis], shape))
        return self.node("GatherElements", [v, index], shape, axis=axis)

    def tile(self, v):
        times = [int(self.rng.choice([1, 1, 2])) for _ in v[1]]
        return self.node("Tile", [v, self.ints(*times)], [d * t for d, t in zip(v[1], times)])

    def pad(self, v):
        mode = self.pick(["constant", "edge", "reflect"])
        pads = [int(self.rng.integers(0, 2)) if d > 1 and (i > 0 or self.rng.random() < 0.2) else 0
                for i, d in enumerate(v[1])] * 2
        shape = [d + 2 * p for d, p in zip(v[1], pads)]
        if self.opset < 11:
            return self.node("Pad", [v], shape, mode=mode, pads=pads)
        return self.node("Pad", [v, self.ints(*pads)], shape, mode=mode)

    def expand(self, v):
        if len(v[1]) > 4:
            return None
        times = int(self.rng.integers(1, 4))
        shape = [times] + v[1] if v[1][0] != 1 or self.rng.random() < 0.5 else v[1]
        return self.node("Expand", [v, self.ints(*shape)], shape)

    def trilu(self, v):
        return self.node("Trilu", [v], v[1], upper=int(self.rng.integers(2))) if self.opset >= 14 and len(v[1]) > 1 else None

    def matmul(self, v):
        if len(v[1]) < 2:
            return None
        out = int(self.rng.integers(1, 5))
        return self.node("MatMul", [v, self.floats(v[1][-1], out)], v[1][:-1] + [out])

    def self_product(self, v):
        if len(v[1]) < 2:
            return None
        order = list(range(len(v[1])))
        order[-1], order[-2] = order[-2], order[-1]
        turned = self.node("Transpose", [v], [v[1][i] for i in order], perm=order)
        return self.node("MatMul", [v, turned], v[1][:-1] + [v[1][-2]])

    def gemm(self, v):
        if len(v[1]) != 2:
            return None
        turn = int(self.rng.random() < 0.3)
        rows, inner = (v[1][1], v[1][0]) if turn else v[1]
        out = int(self.rng.integers(1, 5))
        return self.node("Gemm", [v, self.floats(inner, out), self.floats(out)], [rows, out], transA=turn, alpha=0.7)

    def conv(self, v):
        if len(v[1]) not in (3, 4):
            return None
        dims = len(v[1]) - 2
        out = int(self.rng.integers(1, 4))
        kernel = [int(self.rng.choice([1, 3])) for _ in range(dims)]
        pads = [k // 2 for k in kernel] * 2
        return self.node("Conv", [v, self.floats(out, v[1][1], *kernel)], [v[1][0], out] + v[1][2:], pads=pads)

    def pool(self, v):
        if len(v[1]) not in (3, 4):
            return None
        if self.rng.random() < 0.3:
            return self.node(self.pick(["GlobalAveragePool", "GlobalMaxPool"]), [v], v[1][:2] + [1] * (len(v[1]) - 2))
        dims = len(v[1]) - 2
        return self.node(self.pick(["MaxPool", "AveragePool"]), [v], v[1], kernel_shape=[3] * dims,
                         pads=[1] * (2 * dims))

    def norm(self, v):
        kind = self.pick(["batch", "layer", "lp", "mean", "instance"])
        if kind == "batch" and len(v[1]) in (2, 3, 4):
            c = v[1][1]
            variance = self.constant(self.rng.uniform(0.5, 2, c).astype(np.float32))
            return self.node("BatchNormalization", [v, self.floats(c), self.floats(c), self.floats(c), variance], v[1])
        if kind == "layer" and self.opset >= 17:
            axis = self.axis(v)
            if int(np.prod(v[1][axis:])) < 2:
                return None
            return self.node("LayerNormalization", [v, self.floats(*v[1][axis:])], v[1], axis=axis)
        if kind == "lp":
            return self.node("LpNormalization", [v], v[1], axis=self.axis(v), p=self.pick([1, 2]))
        if kind == "mean" and len(v[1]) == 4 and self.rows > 1:
            return self.node("MeanVarianceNormalization", [v], v[1], axes=self.pick([[2, 3], [0, 2, 3], [1, 2, 3]]))
        if kind == "instance" and len(v[1]) in (3, 4) and np.prod(v[1][2:]) > 1:
            return self.node("InstanceNormalization", [v, self.floats(v[1][1]), self.floats(v[1][1])], v[1])
        return None

    def einsum(self, v):
        if self.opset < 12 or len(v[1]) not in (2, 3):
            return None
        letters = "abc"[:len(v[1])]
        out = list(letters)
        self.rng.shuffle(out)
        out = out[:int(self.rng.integers(1, len(out) + 1))]
        return self.node("Einsum", [v], [v[1][letters.index(c)] for c in out], equation=f"{letters}->{''.join(out)}")

    def resize(self, v):
        if self.opset < 13 or len(v[1]) != 4:
            return None
        mode = self.pick(["nearest", "linear"])
        shape = v[1][:2] + [2 * d for d in v[1][2:]]
        return self.node("Resize", [v, "", self.constant(np.array([1, 1, 2, 2], np.float32))], shape, mode=mode,
                         coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def quantize(self, v):
        if self.opset < 10:
            return None
        scale, zero = self.constant(np.float32(0.0371)), self.constant(np.uint8(117))
        codes = self.node("QuantizeLinear", [v, scale, zero], v[1])
        return self.node("DequantizeLinear", [codes, scale, zero], v[1])

    def dynamic_quantize(self, v):
        if self.opset < 11:
            return None
        codes, scale, zero = self.node("DynamicQuantizeLinear", [v], v[1], outputs=3)
        return self.node("DequantizeLinear", [codes, scale, zero], v[1])

    def one_hot(self, v):
        place = self.node("ArgMax", [v], v[1][:-1], axis=-1 if self.opset >= 11 else len(v[1]) - 1, keepdims=0)
        return self.node("OneHot", [place, self.constant(np.int64(v[1][-1])), self.constant(np.array([0.2, 1.3], np.float32))],
                         v[1][:-1] + [v[1][-1]])

    def recurrent(self, v):
        if len(v[1]) != 3:
            return None
        op, gates = self.pick([("RNN", 1), ("GRU", 3), ("LSTM", 4)])
        hidden, width = int(self.rng.integers(1, 4)), v[1][2]
        _, last = self.node(op, [v, self.floats(1, gates * hidden, width), self.floats(1, gates * hidden, hidden)],
                            [1, v[1][1], hidden], outputs=2, hidden_size=hidden)
        return last

    # What is computed from the batch.
    def times_batch(self, v):
        number = self.node("Cast", [self.batch_number(self.pick([self.x, v]))], [], to=FLOAT)
        if self.rng.random() < 0.3:
            number = self.node("Sqrt", [number], [])
        return self.node(self.pick(["Mul", "Add", "Div", "Sub"]), [v, number], v[1])

    def filled(self, v):
        shape = self.node("Shape", [v], [len(v[1])])
        value = helper.make_tensor("value", FLOAT, [1], [0.37])
        ones = self.node("ConstantOfShape", [shape], v[1], value=value)
        if self.rng.random() < 0.4:
            ones = self.reduce(ones)
            if self.rng.random() < 0.5 and ones[1] and int(np.prod(ones[1])) == 1:
                return self.node("Mul", [v, self.node("Reshape", [ones, self.ints(1)], [1])], v[1])
            return ones if ones[1] else None
        return self.node(self.pick(["Add", "Mul"]), [v, ones], v[1])

    def expanded_constant(self, v):
        shape = self.node("Shape", [v], [len(v[1])])
        return self.node("Add", [v, self.node("Expand", [self.floats(1), shape], v[1])], v[1])

    def by_size(self, v):
        limit = self.constant(np.int64(int(self.rng.integers(0, 8))))
        test = self.node(self.pick(["Less", "Greater", "Equal"]), [self.batch_size(v), limit], [])
        if self.rng.random() < 0.5:
            return self.node("Where", [test, v, self.unary(v)], v[1])
        branches = []
        for op in ("Neg", "Tanh"):
            out = self.name()
            branches.append(helper.make_graph([helper.make_node(op, [v[0]], [out])], op, [],
                                              [helper.make_tensor_value_info(out, FLOAT, None)]))
        return self.node("If", [test], v[1], then_branch=branches[0], else_branch=branches[1])

    def branch(self, v):
        test = self.constant(np.bool_(self.rng.random() < 0.5))
        branches = []
        for op in ("Relu", "Abs"):
            out = self.name()
            branches.append(helper.make_graph([helper.make_node(op, [v[0]], [out])], op, [],
                                              [helper.make_tensor_value_info(out, FLOAT, None)]))
        return self.node("If", [test], v[1], then_branch=branches[0], else_branch=branches[1])

    def loop(self, v):
        turns = self.constant(np.int64(int(self.rng.integers(0, 4))))
        if self.rng.random() < 0.4:
            turns = self.batch_size(self.x)
        turn, going, carried, kept, out = (self.name() for _ in range(5))
        body = helper.make_graph(
            [helper.make_node("Identity", [going], [kept]), helper.make_node("Tanh", [carried], [out])], "body",
            [helper.make_tensor_value_info(turn, INT, []), helper.make_tensor_value_info(going, BOOL, []),
             helper.make_tensor_value_info(carried, FLOAT, None)],
            [helper.make_tensor_value_info(kept, BOOL, []), helper.make_tensor_value_info(out, FLOAT, None)])
        return self.node("Loop", [turns, "", v], v[1], body=body)

    def batch_range(self, v):
        if self.opset < 11 or v[1][0] != self.rows or len(v[1]) < 2:
            return None
        numbers = self.node("Range", [self.constant(np.int64(0)), self.batch_size(v), self.constant(np.int64(1))],
                            [self.rows])
        column = self.unsqueezed(self.node("Cast", [numbers], [self.rows], to=FLOAT), list(range(1, len(v[1]))))
        return self.node("Add", [v, column], v[1])

    KINDS = ("unary unary unary exp sqrt clip broadcast broadcast power both choose compare to_int reduce reduce "
             "softmax softmax arg topk cumsum transpose transpose reshape reshape reshape_by_shape flatten unsqueeze "
             "squeeze concat split slice gather gather_elements tile pad expand trilu matmul matmul self_product gemm "
             "conv pool norm norm einsum resize quantize dynamic_quantize one_hot recurrent times_batch times_batch "
             "filled expanded_constant by_size branch loop batch_range").split()

    def made(self):
        v = self.x
        wanted = int(self.rng.integers(1, 7))
        for _ in range(60):
            kind = self.pick(self.KINDS)
            if not v[1]:
                v = self.node("Add", [self.x, v], self.x[1])
            before = len(self.nodes), len(self.constants)
            given = getattr(self, kind)(v)
            if given is None or int(np.prod(given[1])) > 4000 or 0 in given[1]:
                del self.nodes[before[0]:], self.constants[before[1]:]
                continue
            v = given
            self.kinds.append(kind)
            if len(self.kinds) == wanted:
                break
        if self.rng.random() < 0.1:
            self.kinds.append("identity")
            v = self.node("Identity", [v], v[1])
        sizes = ["N" if self.open and i == 0 else d for i, d in enumerate(self.shape)]
        graph = helper.make_graph(self.nodes, "random", [helper.make_tensor_value_info("x", FLOAT, sizes)],
                                  [helper.make_tensor_value_info(v[0], FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        x = self.rng.normal(0, 1, self.shape).astype(np.float32)
        return model, x, self.kinds


def model(seed):
    """(model, input, kinds of nodes)"""
    return Maker(seed).made()
