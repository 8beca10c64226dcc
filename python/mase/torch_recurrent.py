# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM over sequences whose length is known: turn after turn. The weights of the inputs are
multiplied with all turns at once, those of the state with the state before."""
from __future__ import annotations

from typing import Any, Callable, List

import torch
import torch.nn.functional as F

from mase.torch_rewrites import LAYERS, Unsupported

_LONGEST = 2048  # turns; each is several nodes
_Turn = Callable[[Any, Any, List[Any]], List[Any]]  # gates of the inputs, gates of the state, states before => states


def _lstm_turn(inputs, own, states):
    enter, forget, made, leave = torch.chunk(inputs + own, 4, 1)
    cell = torch.sigmoid(forget) * states[1] + torch.sigmoid(enter) * torch.tanh(made)
    return [torch.sigmoid(leave) * torch.tanh(cell), cell]


def _gru_turn(inputs, own, states):
    x_reset, x_update, x_made = torch.chunk(inputs, 3, 1)
    h_reset, h_update, h_made = torch.chunk(own, 3, 1)
    update = torch.sigmoid(x_update + h_update)
    made = torch.tanh(x_made + torch.sigmoid(x_reset + h_reset) * h_made)
    return [made + update * (states[0] - made)]


def _tanh_turn(inputs, own, states):
    return [torch.tanh(inputs + own)]


def _relu_turn(inputs, own, states):
    return [torch.relu(inputs + own)]


def _one_way(layer, x, suffix, turn: _Turn, states, backwards):
    """The states of all turns, and those after the last."""
    biases = [[getattr(layer, f"bias_{side}{suffix}")] if layer.bias else [] for side in ("ih", "hh")]
    weight = getattr(layer, f"weight_hh{suffix}")
    inputs = F.linear(x, getattr(layer, f"weight_ih{suffix}"), *biases[0])
    length = x.shape[1]
    seen: List[Any] = [None] * length
    for t in reversed(range(length)) if backwards else range(length):
        states = turn(inputs[:, t], F.linear(states[0], weight, *biases[1]), states)
        seen[t] = torch.unsqueeze(states[0], 1)
    return torch.cat(seen, 1), states


def _recurrent(layer, x, given, turn: _Turn):
    if getattr(layer, "proj_size", 0) or len(x.shape) != 3:
        raise Unsupported
    x = x if layer.batch_first else torch.transpose(x, 0, 1)
    if not isinstance(x.shape[1], int) or not 0 < x.shape[1] <= _LONGEST:
        raise Unsupported
    ways, count = (2 if layer.bidirectional else 1), (2 if turn is _lstm_turn else 1)
    last: List[List[Any]] = [[] for _ in range(count)]
    for depth in range(layer.num_layers):
        results = []
        for way in range(ways):
            if given is None:
                states = [x.constant(0.0).filled([x.shape[0], layer.hidden_size])] * count
            else:
                states = [state[depth * ways + way] for state in given]
            suffix = f"_l{depth}" + ("_reverse" if way else "")
            result, states = _one_way(layer, x, suffix, turn, states, way == 1)
            results.append(result)
            for kept, state in zip(last, states):
                kept.append(state)
        x = results[0] if ways == 1 else torch.cat(results, 2)
        if layer.dropout and depth + 1 < layer.num_layers:
            x = F.dropout(x, layer.dropout)
    x = x if layer.batch_first else torch.transpose(x, 0, 1)
    ends = tuple(torch.stack(states, 0) for states in last)
    return x, (ends if count == 2 else ends[0])


def _lstm(layer, x, hx=None):
    return _recurrent(layer, x, hx, _lstm_turn)


def _gru(layer, x, hx=None):
    return _recurrent(layer, x, None if hx is None else [hx], _gru_turn)


def _rnn(layer, x, hx=None):
    turn = _tanh_turn if layer.nonlinearity == "tanh" else _relu_turn
    return _recurrent(layer, x, None if hx is None else [hx], turn)


LAYERS.update({torch.nn.LSTM: _lstm, torch.nn.GRU: _gru, torch.nn.RNN: _rnn})
