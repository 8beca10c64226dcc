# SPDX-License-Identifier: Apache-2.0
"""Networks as people write them in torch: (class, shape of a sample, number of tokens or None)."""
import math

import torch
import torch.nn.functional as F
from torch import nn

NETWORKS = []


def network(*shape, tokens=None):
    def add(kind):
        NETWORKS.append((kind, shape, tokens))
        return kind

    return add


@network(3, 16, 16)
class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, "same", bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, 2, 1, groups=8), nn.GroupNorm(2, 8), nn.ReLU6(inplace=True), nn.Conv2d(8, 16, 1))
        self.down = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(8, 16, 1))
        self.leave = nn.Dropout2d(0.2)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Dropout(0.1), nn.Linear(16, 4), nn.Softmax(dim=1))

    def forward(self, x):
        x = self.stem(x)
        y = self.deep(x)
        y += self.down(x)
        return self.head(F.relu(self.leave(y), inplace=True))


@network(3, 8, 8)
class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias, self.last = (nn.Parameter(torch.randn(*s)) for s in ((4, 3, 3, 3), (4,), (5, 4)))

    def forward(self, x):
        x = F.conv2d(x, self.weight, None, 1, 1) + self.bias.view(1, -1, 1, 1)
        x = F.leaky_relu(F.avg_pool2d(x, 2), 0.1)
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = F.dropout(x, 0.3, training=self.training)
        return F.log_softmax(F.linear(x.flatten(2).max(dim=2).values, self.last), dim=1)


@network(8, 6, 6)
class Shuffled(nn.Module):
    def __init__(self):
        super().__init__()
        self.pixels, self.edge, self.conv = nn.PixelShuffle(2), nn.ZeroPad2d(1), nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)
        return self.conv(self.edge(self.pixels(x.reshape(b * c, h * w).view(b, c, h, w))))


@network(16)
class Arithmetic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gate = nn.Linear(16, 16), nn.Linear(16, 32)

    def forward(self, x, mask=None, scale: float = 2.0):
        y = 1 - self.first(x)
        if mask is not None:
            y = y * mask
        a, b = self.gate(y).chunk(2, dim=-1)
        y = abs(y) * 0.5 + 2 / (y**2 + 1) - 3 + a * torch.sigmoid(b) + y.relu()
        y = torch.clamp(y, min=-1, max=4) + torch.where(x > 0, x, torch.zeros_like(x)) + x.pow(3).sum(dim=1, keepdim=True)
        return y * scale + F.normalize(x, dim=-1) + x.std(dim=-1, keepdim=True)


@network(7, 16)
class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
        self.parts = nn.ModuleDict({"relu": nn.ReLU(), "out": nn.Linear(16, 2)})
        self.register_buffer("table", torch.randn(20, 16))
        self.layers[1].weight = self.layers[0].weight

    def forward(self, x):
        x, seen = x + self.table[:x.size(1)], []
        for layer in self.layers:
            x = self.parts["relu"](layer(x)) + x
            seen.append(x)
        y = torch.stack(seen, dim=1).mean(1)
        return {"first": self.parts["out"](y), "second": torch.einsum("bid,bjd->bij", y, x)}


@network(7, 16)
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.MultiheadAttention(16, 4, batch_first=True), nn.MultiheadAttention(16, 2)
        self.c = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        y, weights = self.a(x, x, x)
        t = y.transpose(0, 1)
        y = self.b(t, t, t, need_weights=False)[0].transpose(0, 1)
        hidden = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        return self.norm(x + self.c(y, y, y, attn_mask=hidden)[0])[:, 0], weights


@network(6, 5)
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LSTM(5, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.b, self.c = nn.GRU(8, 3), nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        first = torch.zeros(4, x.size(0), 4).to(x.device)
        y, (h, c) = self.a(x, (first, first))
        y, _ = self.b(y.transpose(0, 1))
        y, last = self.c(y.transpose(0, 1))
        return self.head(torch.cat((y[:, -1] + last[-1], h[0] * c[-1]), dim=1))


@network(9, tokens=20)
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(32, 16)
        self.post = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.pre = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True), 2,
                                         norm=nn.LayerNorm(16))
        self.out = nn.Linear(16, 20, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))[None]
        x = self.post(x, torch.full((9, 9), -math.inf).triu(1), ids == 3)
        return self.out(self.pre(x))


@network(7, 16)
class Whole(nn.Transformer):
    def __init__(self):
        super().__init__(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, x):
        return self.decoder(x[:, :3], self.encoder(x))


@network(3, 16, 16)
class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norm, self.head = nn.Conv2d(3, 24, 4, 4), nn.LayerNorm(24), nn.Linear(24, 10)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 24)), nn.Parameter(torch.randn(1, 17, 24))
        self.qkv, self.join, self.heads = nn.Linear(24, 72), nn.Linear(24, 24), 4
        self.register_buffer("seen", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.seen[:, :, :n, :n] == 0, float("-inf")).softmax(dim=-1)
        return self.head(self.norm(x + self.join((scores @ v).transpose(1, 2).contiguous().view(b, n, c)))[:, 0])
