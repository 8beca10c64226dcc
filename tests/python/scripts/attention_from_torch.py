# SPDX-License-Identifier: Apache-2.0
"""A small transformer of one's own, and torch's, as native graphs and back."""
import numpy as np
import torch
from torch import nn

import mase


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n, self.a = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.f = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = self.n(x)
        x = x + self.a(y, y, y, need_weights=False)[0]
        return x + self.f(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.p = nn.Embedding(50, 16), nn.Parameter(torch.randn(1, 12, 16))
        self.b, self.h = nn.ModuleList([Block(16) for _ in range(2)]), nn.Linear(16, 3)

    def forward(self, ids):
        x = self.e(ids) + self.p[:, : ids.shape[1]]
        for block in self.b:
            x = block(x)
        return self.h(x.mean(1))


net, ids = Net().eval(), torch.randint(0, 50, (4, 12))
graph = mase.from_torch(net, ids)
assert np.allclose(np.asarray(graph(ids.numpy())), net(ids).detach().numpy(), atol=1e-5)
graph.save("net.mz")
assert torch.allclose(mase.to_torch(mase.load("net.mz"))(ids), net(ids), atol=1e-5)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval()
x = torch.randn(3, 7, 16)
assert np.allclose(np.asarray(mase.from_torch(encoder, x)(x.numpy())), encoder(x).detach().numpy(), atol=1e-5)
