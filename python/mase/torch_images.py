# SPDX-License-Identifier: Apache-2.0
"""Rewrites of images at other sizes, and of convolutions of volumes."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from mase.torch_rewrites import Unsupported, reshape, rewrites, rewrites_layers


@rewrites("interpolate", "upsample")
def _resized(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
             antialias=False):
    if antialias:
        raise Unsupported
    if len(input.shape) == 3:  # a plane of height 1
        if not (size is None or isinstance(size, int)):
            size = size[0]
        factor = scale_factor[0] if isinstance(scale_factor, (tuple, list)) else scale_factor
        flat = _resized(input.unsqueeze(2), None if size is None else (1, size), None if factor is None else (1.0, float(factor)),
                        "bilinear" if mode == "linear" else mode, align_corners, recompute_scale_factor)
        return flat.squeeze(2)
    if mode == "bicubic":
        return _resized_by_tables(input, size, scale_factor, align_corners, recompute_scale_factor)
    return input.through(torch.nn.Upsample(size, scale_factor, mode, align_corners, recompute_scale_factor))


def _resized_by_tables(x, size, scale_factor, align_corners, recompute):
    """One dimension after the other, by the table of shares that torch itself gives for unit vectors."""
    def table(dim):
        count = x.shape[dim]
        if not isinstance(count, int):
            raise Unsupported
        own = size if size is None or isinstance(size, int) else size[dim - 2]
        factor = scale_factor[dim - 2] if isinstance(scale_factor, (tuple, list)) else scale_factor
        units = torch.eye(count).reshape(1, count, count, 1)
        return F.interpolate(units, None if own is None else (own, 1), None if factor is None else (float(factor), 1.0),
                             "bicubic", align_corners, recompute)[0, :, :, 0]

    across = torch.transpose(torch.matmul(x, table(3)), 2, 3)
    return torch.transpose(torch.matmul(across, table(2)), 2, 3)


@rewrites_layers("Upsample", when=lambda layer: layer.mode == "bicubic")
def _bicubic_layer(layer, x):
    return _resized(x, layer.size, layer.scale_factor, layer.mode, layer.align_corners,
                    getattr(layer, "recompute_scale_factor", None))


@rewrites("conv3d")
def _volume(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Each plane of the result is a sum of convolutions of planes, one for each tap of its depth."""
    if len(input.shape) != 5 or isinstance(padding, str) and padding != "valid":
        raise Unsupported
    strides, pads, steps = ((v,) * 3 if isinstance(v, int) else tuple(v)
                            for v in (stride, 0 if isinstance(padding, str) else padding, dilation))
    depth, taps = input.shape[2], weight.shape[2]
    planes = []
    for at in range((depth + 2 * pads[0] - steps[0] * (taps - 1) - 1) // strides[0] + 1):
        parts = []
        for tap in range(taps):
            place = at * strides[0] - pads[0] + tap * steps[0]
            if 0 <= place < depth:
                parts.append(F.conv2d(input[:, :, place], weight[:, :, tap], None, strides[1:], pads[1:], steps[1:], groups))
        if not parts:
            raise Unsupported  # nothing but padding
        plane = parts[0]
        for part in parts[1:]:
            plane = plane + part
        planes.append(plane if bias is None else plane + reshape(bias, [-1, 1, 1]))
    return torch.stack(planes, 2)


@rewrites_layers("Conv3d")
def _volume_layer(layer, x):
    if layer.padding_mode != "zeros":
        raise Unsupported
    return _volume(x, layer.weight, layer.bias, layer.stride, layer.padding, layer.dilation, layer.groups)
