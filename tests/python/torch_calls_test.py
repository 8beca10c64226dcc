# SPDX-License-Identifier: Apache-2.0
"""Calls with unusual arguments, one by one: values and a training step as torch's, at batches other than the traced
one; and what the library cannot keep to is refused, not left out."""
import copy
import os
import tempfile
import unittest

import numpy as np
import package

package.need_torch()
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import mase  # noqa: E402


class Call(nn.Module):
    def __init__(self, function, **tensors):
        super().__init__()
        self.function = function
        for name, value in tensors.items():
            if value.is_floating_point():
                setattr(self, name, nn.Parameter(value))
            else:
                self.register_buffer(name, value)

    def forward(self, x):
        return self.function(self, x)


def calls():
    draw = torch.Generator().manual_seed(3)

    def table(*shape):
        return torch.randn(*shape, generator=draw)

    plain = {
        "slices": lambda m, x: x[:, -3:, ::2, 1:100],
        "numbers": lambda m, x: x[:, [2, 0, -1]],
        "numbers behind ...": lambda m, x: x[..., [3, 0], :],
        "flip": lambda m, x: x.flip(1, -1),
        "roll": lambda m, x: torch.roll(x, (2, -1), (1, 3)),
        "repeat_interleave": lambda m, x: x.repeat_interleave(2, dim=1),
        "tensor_split": lambda m, x: torch.tensor_split(x, 3, 2)[1],
        "sort": lambda m, x: torch.sort(x, 2, descending=True)[0],
        "reflect": lambda m, x: F.pad(x, (2, 1, 0, 3), "reflect"),
        "replicate": lambda m, x: F.pad(x, (-1, 2, 5, -2), "replicate"),
        "circular": lambda m, x: F.pad(x, (-1, 2, 1, -2), "circular"),
        "max pool with places": lambda m, x: (lambda r: (r[0], r[1]))(F.max_pool2d(x, 3, 2, 1, return_indices=True)),
        "divisor": lambda m, x: F.avg_pool2d(x, 2, 2, 0, True, False, 3),
        "interpolate": lambda m, x: F.interpolate(x, scale_factor=1.7, recompute_scale_factor=True),
        "interpolate a line": lambda m, x: F.interpolate(x[:, :, 0], scale_factor=1.6, mode="linear"),
        "larger": lambda m, x: torch.max(x, x * x) - torch.min(x, -x),
        "bicubic": lambda m, x: F.interpolate(x, scale_factor=(1.5, 2.3), mode="bicubic"),
        "floor division": lambda m, x: x * 3 // 0.7 + torch.div(x, 0.3, rounding_mode="trunc"),
        "remainder": lambda m, x: x * 3 % 0.7 + torch.fmod(x, 0.3) + torch.remainder(x, x * x + 1),
        "clamp by tensors": lambda m, x: torch.clamp(x, x.mean(1, keepdim=True), x.mean(1, keepdim=True) + 0.3),
        "where as a method": lambda m, x: x.where(x > 1, x * 0.5) + x.where(x < 0, torch.tensor(0.25)),
        "argmin": lambda m, x: x.argmin(2),
        "truth": lambda m, x: ((x > 0) & (x < 1) | ~(x > -1)).float() * x,
        "logic": lambda m, x: torch.logical_xor(x > 0, torch.logical_not(x > 1)).float() + x,
        "any and all": lambda m, x: (x > 1).any(1, keepdim=True) & (x > -2).all(dim=2, keepdim=True),
        "log1p": lambda m, x: torch.log1p(x * 1e-6) * 1e6 + torch.log1p(x * x),
        "expm1": lambda m, x: torch.expm1(x * 1e-6) * 1e6 + torch.expm1(x),
        "powers": lambda m, x: x ** 17 * 1e-3 + torch.relu(x) ** 1.5,
        "alpha": lambda m, x: torch.add(x, x * x, alpha=2) - torch.sub(x, x, alpha=0.5),
        "einsum with a table": lambda m, x: torch.einsum("bchw,bcxw->bchx", x, x),
        "logsumexp": lambda m, x: torch.logsumexp(x, 1),
        "threshold": lambda m, x: F.threshold(x, 0.1, 3.0),
        "both of a maximum": lambda m, x: torch.max(x, 2),
        "all pieces": lambda m, x: x.split([1, 3], 1),
        "group norm": lambda m, x: F.group_norm(x, 2) + F.instance_norm(x),
    }
    for name, function in plain.items():
        yield name, Call(function)
    yield "einsum", Call(lambda m, x: torch.einsum("bchw,wk->bkch", x, m.w), w=table(6, 3))
    yield "prelu", Call(lambda m, x: F.prelu(x, m.w), w=table(4))
    yield "norms", Call(lambda m, x: F.group_norm(x, 2, m.w, m.b), w=table(4), b=table(4))
    yield "limits", Call(lambda m, x: torch.clamp(x, m.a, max=m.b), a=table(4, 1, 1) - 1, b=table(6) + 1)
    for layer in (nn.ReflectionPad2d((1, 2, 3, 0)), nn.ReplicationPad2d((1, 2, 3, 0)), nn.MaxPool2d(3, 2, 1, ceil_mode=True),
                  nn.AvgPool2d(3, padding=1, ceil_mode=True, divisor_override=5), nn.AdaptiveAvgPool2d((3, 4)),
                  nn.AdaptiveMaxPool2d((5, 4)), nn.AdaptiveMaxPool2d((9, None)), nn.InstanceNorm2d(4, track_running_stats=True),
                  nn.InstanceNorm2d(4, affine=True, momentum=0.3, track_running_stats=True), nn.BatchNorm2d(4, momentum=None),
                  nn.Upsample(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True), nn.Threshold(0.1, 5.0),
                  nn.Upsample((9, 5), mode="bicubic", align_corners=True), nn.AlphaDropout(0.3),
                  nn.Softmax2d(), nn.Softmin(1), nn.ChannelShuffle(2),
                  nn.Conv2d(4, 6, (2, 3), padding=(1, 2), stride=2, padding_mode="circular")):
        yield str(layer), nn.Sequential(layer)
    for layer in (nn.Conv3d(2, 3, (2, 3, 2), (1, 2, 1), (1, 1, 0)), nn.Conv3d(2, 4, 2, groups=2, bias=False, dilation=(1, 2, 1))):
        yield str(layer), nn.Sequential(nn.Unflatten(1, (2, 2)), layer)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(11, 5), nn.Linear(5, 11)
        self.out.weight = self.table.weight

    def forward(self, x):
        return self.out(self.table(x)).mean(1)


class TiedConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, stride=2)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


class PartlyTrained(nn.Module):
    """Of which a layer, a table and what lies before a detach are not trained."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.table = nn.Parameter(torch.randn(6), requires_grad=False)
        self.b.requires_grad_(False)

    def forward(self, x):
        return self.c(self.b(self.a(x).detach() + self.a(x * self.table)))


class Trained(nn.Module):
    """Whose gradients with respect to its input are those of a parameter."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.shift = inner, nn.Parameter(torch.full((4, 7, 6), 0.1))

    def forward(self, x):
        y = self.inner(x + self.shift)
        return (y[0] if isinstance(y, tuple) else y).flatten(1)


def tensors(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


class Calls(unittest.TestCase):
    def close(self, ours, theirs):
        ours, theirs = tensors(ours), tensors(theirs)
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a.detach().double(), b.detach().double(), rtol=1e-4, atol=2e-5)

    def test_values(self):
        for name, module in calls():
            with self.subTest(name):
                torch.manual_seed(0)
                module.eval()
                graph = mase.from_torch(module, torch.randn(2, 4, 7, 6))
                back = mase.to_torch(graph).eval()
                for batch in (1, 5):
                    x = torch.randn(batch, 4, 7, 6)
                    self.close(graph(x), module(x))
                    self.close(back(x), module(x))

    def test_bags_of_rows(self):
        for mode in ("sum", "mean", "max"):
            module = nn.Sequential(nn.EmbeddingBag(11, 5, mode=mode)).eval()
            x = torch.randint(0, 11, (6, 7))
            graph = mase.from_torch(module, x[:2])
            self.close(graph(x), module(x))
            self.step(module, x)

    def test_what_alpha_dropout_drops(self):
        """Its mean and variance stay, and all that is dropped has one value."""
        torch.manual_seed(0)
        back = mase.to_torch(mase.from_torch(nn.Sequential(nn.AlphaDropout(0.3)), torch.randn(2, 50))).train()
        x = torch.randn(4000, 50)
        y = back(x)
        self.assertAlmostEqual(float(y.mean()), 0, delta=0.02)
        self.assertAlmostEqual(float(y.var()), 1, delta=0.02)
        values, counts = torch.unique((y * 1e4).round(), return_counts=True)
        self.assertAlmostEqual(float(counts.max()) / y.numel(), 0.3, delta=0.01)

    def test_logsumexp_of_infinities(self):
        x = torch.randn(4, 3)
        x[1], x[2, 0], x[3, 1] = -np.inf, np.inf, -np.inf
        graph = mase.from_torch(Call(lambda m, x: torch.logsumexp(x, 1)), torch.randn(2, 3))
        self.close(graph(x), torch.logsumexp(x, 1))

    def step(self, module, x):
        """One step of both by plain gradient descent: all parameters and buffers as torch's."""
        graph = mase.from_torch(module, x)
        theirs = copy.deepcopy(module).train()
        output = theirs(x)
        y = torch.randn(output.shape)
        F.mse_loss(output, y).backward()
        with torch.no_grad():
            for parameter in theirs.parameters():
                if parameter.grad is not None:
                    parameter -= 0.1 * parameter.grad
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.npz")
            np.savez(path, x_train=x.numpy(), y_train=y.numpy(), x_test=x.numpy(), y_test=y.numpy())
            run = mase.train(graph, path, scaling="none", val_split="train", task="regression", batch_size=len(x), max_epochs=1,
                             learning_rate=0.1, training_optimizer="sgd", optimizer={"momentum": 0.0, "nesterov": False},
                             schedule="constant", save=False, progress=False)
        state = theirs.state_dict()
        for name, value in run.graph.state_dict().items():
            if not name.startswith("_tensor_constant"):  # computed once, such as numbers of indices
                self.close(torch.as_tensor(np.array(value)), state[name])

    def test_a_training_step(self):
        for name, module in calls():
            if name in ("argmin", "floor division", "any and all", "both of a maximum", "all pieces") or "ChannelShuffle" in name or "AlphaDropout" in name:
                continue  # without a gradient in torch, drawn, or several results
            with self.subTest(name):
                torch.manual_seed(0)
                self.step(Trained(module), torch.randn(6, 4, 7, 6))

    def test_parameters_that_layers_share_are_trained_as_one(self):
        torch.manual_seed(0)
        for module, x in ((Tied(), torch.randint(0, 11, (6, 7))), (TiedConvolutions(), torch.randn(6, 4, 7, 6))):
            graph = mase.from_torch(module, x[:2])
            self.close(graph(x), module(x))
            self.close(mase.to_torch(graph)(x), module(x))
            back = mase.to_torch(graph)
            self.assertEqual(len(list(back.parameters())), len(list(module.parameters())))
            self.assertEqual(sorted(back.state_dict()), sorted(module.state_dict()))
            graph.load_state_dict(module.state_dict())
        self.step(Tied(), torch.randint(0, 11, (6, 7)))

    def test_what_torch_does_not_train_stays(self):
        torch.manual_seed(0)
        self.step(PartlyTrained(), torch.randn(6, 6))
        half = nn.Sequential(nn.Linear(6, 6))
        half[0].bias.requires_grad_(False)
        with self.assertRaisesRegex(mase.Error, "bias is not to be trained"):
            mase.from_torch(half, torch.randn(2, 6))

    def test_quantised_in_both(self):
        """Blocks and scales go by all dimensions of an operand; methods round as functions do."""
        torch.manual_seed(0)
        networks = (nn.Sequential(nn.Linear(6, 5)), Call(lambda m, x: x.softmax(2)), Call(lambda m, x: x.matmul(x.transpose(2, 3))))
        for module in networks:
            graph = mase.from_torch(module, torch.randn(2, 4, 7, 6))
            for name in ("binary", "block_fp", "ternary", "e4m3", "binary_residual"):
                with self.subTest(f"{module} {name}"):
                    quantized = graph.quantize(default=getattr(mase.formats, name)())
                    x = torch.randn(3, 4, 7, 6)
                    self.close(quantized(x), mase.to_torch(quantized)(x))
                    self.assertFalse(torch.allclose(quantized(x), graph(x), rtol=0, atol=1e-6))

    def test_numbers_are_printed_where_torch_has_them(self):
        text = str(mase.from_torch(Call(lambda m, x: torch.gather(1 - x, 2, x.argmax(2, keepdim=True))), torch.randn(2, 4, 7, 6)))
        self.assertIn("operator.sub](args = (1, %x), kwargs = {})", text)
        self.assertIn("torch.gather](args = (%sub, 2, %argmax), kwargs = {})", text)

    def test_what_is_not_kept_to_is_refused(self):
        for module, words in ((nn.Embedding(11, 5, max_norm=1.0), "max_norm"),
                              (nn.Embedding(11, 5, scale_grad_by_freq=True), "scale_grad_by_freq")):
            with self.assertRaisesRegex(mase.Error, words):
                mase.from_torch(nn.Sequential(module), torch.randint(0, 11, (2, 7)))
        with self.assertRaisesRegex(mase.Error, "interpolate"):
            mase.from_torch(Call(lambda m, x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)),
                            torch.randn(2, 4, 8, 8))
        with self.assertRaisesRegex(mase.Error, "weight_g"):
            mase.from_torch(nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 5))), torch.randn(2, 6))
        with self.assertRaisesRegex(mase.Error, "std"):
            mase.from_torch(Call(lambda m, x: x - x.std()), torch.randn(2, 4))
        norms = nn.Sequential(nn.BatchNorm2d(4), nn.BatchNorm2d(4))
        norms[1].weight = norms[0].weight
        with self.assertRaisesRegex(mase.Error, "shares 0.weight"):
            mase.from_torch(norms, torch.randn(2, 4, 8, 8))


if __name__ == "__main__":
    package.main()
