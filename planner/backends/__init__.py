"""Linear and integer programs, and the solvers behind one call.

`solve(model, options)` takes a `LinearProgram` to the backend that `options.backend` names and returns a
`Solution`. Names load on first use: importing this package loads no solver and no NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Solution": "planner.backends.solution",
    "prefer_interior_point": "planner.backends.dispatch",
    "solve": "planner.backends.dispatch",
}

__all__ = ["Solution", "prefer_interior_point", "solve"]

if TYPE_CHECKING:
    from planner.backends.dispatch import prefer_interior_point, solve
    from planner.backends.solution import Solution


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'planner.backends' has no attribute '{name}'")
