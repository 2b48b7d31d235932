"""Values of all variables of a program from those of some blocks, such as the decisions of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Floats
from planner.backends.linear_program import LinearProgram
from planner.options import Options

ROUNDING_MARGIN: Final = 1e-9
"""Largest difference of a variable from its given value, relative to it or to 1 where that is more."""


def complete(program: LinearProgram, values: Mapping[str, Floats], options: Options) -> Floats | None:
    """Return the best point (n,) in which blocks of variables have given values, but for rounding.

    values   of each block, by its name, in its shape or flat
    returns  None where no point is found
    """
    lower, upper = program.lower.copy(), program.upper.copy()
    for name, amounts in values.items():
        block = next(block for block in program.columns if block.name == name)
        members = slice(block.start, block.stop)
        x = np.asarray(amounts, dtype=float).reshape(-1)
        margin = ROUNDING_MARGIN * np.maximum(np.abs(x), 1.0)
        if program.integer is not None:
            margin = np.where(program.integer[members], 0.0, margin)
        lower[members], upper[members] = (
            np.clip(limit, program.lower[members], program.upper[members])
            for limit in (x - margin, x + margin)
        )
    return backends.solve(replace(program, lower=lower, upper=upper), replace(options, service="best")).x
