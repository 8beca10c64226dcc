# SPDX-License-Identifier: Apache-2.0
"""Rewrites of what takes indices in another order: flipped, rolled, repeated, by lists of numbers; and of pools that
say where their maxima stand."""
from __future__ import annotations

import torch
import torch.fx

from mase.torch_rewrites import Unsupported, reshape, rewrites, rewrites_layers

def _picked(x, dim, numbers):
    """Entries of a dimension by numbers that are known."""
    if not isinstance(x.shape[dim], int):
        raise Unsupported  # of the batch
    return torch.index_select(x, dim, torch.tensor([n % x.shape[dim] for n in numbers]))


@rewrites("flip")
def _flipped(x, *dims):
    for dim in dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims:
        x = _picked(x, dim % len(x.shape), range(x.shape[dim] - 1, -1, -1))
    return x


@rewrites("fliplr")
def _flipped_left(x):
    return _flipped(x, 1)


@rewrites("roll")
def _rolled(x, shifts, dims=None):
    if dims is None:
        raise Unsupported
    pairs = [(shifts, dims)] if isinstance(shifts, int) else zip(shifts, dims)
    for shift, dim in pairs:
        x = _picked(x, dim % len(x.shape), range(-shift, x.shape[dim] - shift))
    return x


@rewrites("repeat_interleave")
def _each_repeated(x, repeats, dim=None):
    if dim is None or not isinstance(repeats, int):
        raise Unsupported
    return _picked(x, dim % len(x.shape), [i for i in range(x.shape[dim]) for _ in range(repeats)])


@rewrites("tensor_split")
def _nearly_even(x, indices_or_sections, dim=0):
    size, at = x.shape[dim], indices_or_sections
    if isinstance(at, int):
        return torch.split(x, [size // at + (i < size % at) for i in range(at)], dim)
    places = [0, *(min(p % size if p < 0 else p, size) for p in at), size]
    return torch.split(x, [b - a for a, b in zip(places, places[1:])], dim)


def _by_numbers(node: torch.fx.Node) -> bool:
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    return any(isinstance(entry, (list, torch.fx.Node)) for entry in index)


@rewrites("getitem", when=_by_numbers)
def _chosen(x, index):
    """One dimension by a list of numbers, the others by slices."""
    index = list(index) if isinstance(index, tuple) else [index]
    lists = [i for i, entry in enumerate(index) if isinstance(entry, (list, torch.Tensor)) or hasattr(entry, "dtype")]
    if not lists:
        return x[tuple(index)]  # sizes that were computed
    place = lists[0]
    if len(lists) > 1 or any(isinstance(entry, int) for entry in index):
        raise Unsupported
    chosen, index[place] = index[place], slice(None)
    dim = place if Ellipsis not in index[:place] else place - len(index)
    if isinstance(chosen, list):
        if not all(type(n) is int for n in chosen):
            raise Unsupported
        return _picked(x[tuple(index)], dim % len(x.shape), chosen)
    if chosen.dtype not in (torch.int32, torch.int64) or len(chosen.shape) != 1:
        raise Unsupported
    return torch.index_select(x[tuple(index)], dim, chosen)


@rewrites("max_pool2d_with_indices")
def _largest_places(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True):
    return x.through(torch.nn.MaxPool2d(kernel_size, stride, padding, dilation, True, ceil_mode))


@rewrites("max_pool1d_with_indices")
def _largest_places_1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True):
    return x.through(torch.nn.MaxPool1d(kernel_size, stride, padding, dilation, True, ceil_mode))


@rewrites("adaptive_max_pool2d_with_indices")
def _adaptive_places(x, output_size, return_indices=True):
    return x.through(torch.nn.AdaptiveMaxPool2d(output_size, True))


@rewrites_layers("PixelUnshuffle")
def _pixels_apart(layer, x):
    n, c, h, w = x.shape
    r = layer.downscale_factor
    x = torch.permute(reshape(x, [n, c, h // r, r, w // r, r]), [0, 1, 3, 5, 2, 4])
    return reshape(x, [n, c * r * r, h // r, w // r])


@rewrites_layers("ChannelShuffle")
def _channels_mixed(layer, x):
    sizes = list(x.shape)
    x = torch.transpose(reshape(x, [sizes[0], layer.groups, sizes[1] // layer.groups, *sizes[2:]]), 1, 2)
    return reshape(x, sizes)


@rewrites("pixel_shuffle")
def _pixels(x, upscale_factor):
    n, c, h, w = x.shape
    r = upscale_factor
    x = torch.permute(reshape(x, [n, c // (r * r), r, r, h, w]), [0, 1, 4, 2, 5, 3])
    return reshape(x, [n, c // (r * r), h * r, w * r])


@rewrites_layers("PixelShuffle")
def _pixel_layer(layer, x):
    return _pixels(x, layer.upscale_factor)
