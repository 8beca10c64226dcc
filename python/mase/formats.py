# SPDX-License-Identifier: Apache-2.0
"""Number formats as callables on NumPy arrays and torch tensors.

    from mase import formats

    q = formats.integer(8, 4)         # 8 bits, 4 of them behind the point
    q(x)                              # x rounded to such numbers
    q.codes(x).codes                  # the integers behind them
    q.range, q.bits((16, 5))          # what can be represented, and what it costs

Every registered format is a function of this module: formats.names() lists them, and their keyword
arguments are the keys of a layer's config without the operand's prefix.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional


from mase import _native
from mase.arrays import host_array, is_torch

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np


@dataclass(frozen=True)
class Codes:
    """Integer codes of an array; scales and exponents are what groups of them share."""

    codes: np.ndarray
    scales: np.ndarray
    exponents: np.ndarray


class Format:
    """A number format with its numbers filled in. Calling it rounds an array to such numbers."""

    def __init__(self, name: str, config: Optional[dict] = None, *, _native_quantizer=None):
        self._quantizer = _native_quantizer or _native.make_quantizer(name, config or {}, name)

    @property
    def name(self) -> str:
        return self._quantizer.format

    @property
    def config(self) -> dict:
        """All keys, defaults filled in."""
        return self._quantizer.config

    def __call__(self, x: Any) -> Any:
        """The values rounded to this format, as the same kind of array.

        float32 is taken as it is; other types are converted to it first and back afterwards. Torch
        tensors keep their gradient: straight through, or what the format says.
        """
        if is_torch(x):
            from mase.torch_quantize import quantize

            return quantize(x, self._quantizer)
        rounded = self._quantizer.quantize(host_array(x))
        kind = np.asarray(x).dtype
        return rounded if kind == np.float32 or kind.kind != "f" else rounded.astype(kind)

    def codes(self, x: Any) -> Codes:
        """The integer codes of the values."""
        return Codes(**self._quantizer.codes(host_array(x)))

    def decode(self, codes: Codes) -> np.ndarray:
        """The values of codes that `codes` gave."""
        return self._quantizer.decode(codes.codes, codes.scales, codes.exponents)

    def error(self, x: Any) -> dict:
        """What rounding these values costs: max_error, mean_squared_error, sqnr (dB), saturation
        (share of values beyond the range), bits (per value)."""
        return self._quantizer.measure(host_array(x))

    def bits(self, shape: Iterable[int] = (1,)) -> float:
        """Storage per value of a tensor of this shape, shared parts included."""
        return self._quantizer.bits_per_value([int(size) for size in shape])

    @property
    def code_bits(self) -> int:
        """Bits of one code; 0 where the format has no codes."""
        return self._quantizer.code_bits

    @property
    def range(self) -> Optional[tuple]:
        """(lowest, largest), or None where they depend on the data."""
        q = self._quantizer
        return None if q.lowest is None or q.largest is None else (q.lowest, q.largest)

    @property
    def smallest_positive(self) -> Optional[float]:
        return self._quantizer.smallest_positive

    @property
    def precision(self) -> list:
        """As metadata shows it: [8, 4] for fixed point 8/4."""
        return self._quantizer.precision

    def values(self) -> np.ndarray:
        """Every representable number, ascending; empty above 16 bits."""
        return self._quantizer.values()

    def layer_config(self, operands: Iterable[str] = ("data_in", "weight", "bias")) -> dict:
        """The flat table of a layer whose operands all have this format."""
        flat: dict = {"name": self.name}
        for operand in operands:
            for key, value in self.config.items():
                if value is not None:
                    flat[f"{operand}_{key}"] = value
        return flat

    def __repr__(self) -> str:
        return f"<{self._quantizer.text()}: {self._quantizer.type_text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.name, self.config) == (other.name, other.config)

    def __hash__(self) -> int:
        return hash((self.name, repr(self.config)))

    def __reduce__(self):
        return (Format, (self.name, self.config))


def names() -> list:
    """The registered formats."""
    return sorted(_native.formats())


def make(name: str, **config: Any) -> Format:
    """The format of this name with these keys."""
    return Format(name, config)


def describe(name: str) -> str:
    """What the format is and which keys it has."""
    records = _native.formats()
    record = records.get(name) or next((r for r in records.values() if name in r["aliases"]), None)
    if record is None:
        return Format(name).name  # says which names are near
    rows = [[o["name"], o["type"], "" if o["default"] is None else str(o["default"]), o["help"]]
            for o in record["options"]]
    text = f"{name}: {record['summary']}\n{record['help']}".rstrip() + "\n"
    return text + _native.table(["Key", "Type", "Default", "Meaning"], rows)


def _constructor(name: str, record: dict) -> Callable[..., Format]:
    keys = [option["name"] for option in record["options"]]

    def construct(*positional: Any, **config: Any) -> Format:
        if len(positional) > len(keys):
            raise TypeError(f"{name}() takes at most {len(keys)} values: {', '.join(keys)}")
        for key, value in zip(keys, positional):
            if key in config:
                raise TypeError(f"{name}() got two values for '{key}'")
            config[key] = value
        return Format(name, config)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"{record['summary']}\n\nKeys: {', '.join(keys)}"
    return construct


def __getattr__(name: str) -> Callable[..., Format]:
    if not name.startswith("_"):
        records = _native.formats()
        for known, record in records.items():
            if name == known or name in record["aliases"]:
                return globals().setdefault(name, _constructor(name, record))
    raise AttributeError(f"there is no format '{name}'; formats.names() lists them")


def __dir__() -> list:
    return sorted(set(globals()) | set(names()))
