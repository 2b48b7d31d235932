"""Quantities as Kubernetes writes them, such as 500m, 1Gi and 1e3."""

from __future__ import annotations

import re
from typing import Final

from planner.errors import InputError

SUFFIXES: Final = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    **{f"{letter}i": 1024.0 ** (power + 1) for power, letter in enumerate("KMGTPE")},
}
FORM: Final = re.compile(r"([+-]?(?:\d++\.?+\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*)")
BYTES_PER_GB: Final = 1e9


def read_quantity(value: object, where: str) -> float:
    """Return the number of a quantity; raises InputError for text that is none, and for negative ones."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number, suffix = float(value), ""
    else:
        match = FORM.fullmatch(str(value).strip())
        if match is None:
            raise InputError(f"{where}: '{str(value)[:40]}' is no quantity, such as 500m, 1Gi or 1e3")
        number, suffix = float(match[1]), match[2]
    if suffix not in SUFFIXES:
        valid = ", ".join(name for name in SUFFIXES if name)
        raise InputError(f"{where}: '{str(value)[:40]}' has the unknown suffix '{suffix}'; valid: {valid}")
    result = number * SUFFIXES[suffix]
    if not 0 <= result < 1e30:
        raise InputError(f"{where}: '{str(value)[:40]}' must be at least 0 and finite")
    return result
