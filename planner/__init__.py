"""Optimization and planning for networked systems.

    import planner
    result = planner.compare("traffic/germany50", designs=["ecmp", "optimum"])
    result.metrics

Names load on first use: importing planner loads no solver and no pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Options": "planner.options",
    "PlannerError": "planner.errors",
    "InputError": "planner.errors",
    "PlanRejected": "planner.errors",
    "SolverFailure": "planner.errors",
    "Proof": "planner.proof",
    "Status": "planner.proof",
    "load": "planner.scenario",
    "solve": "planner.run",
    "compare": "planner.run",
    "roll": "planner.run",
    "sweep": "planner.sweeping",
    "Store": "planner.store",
}

__all__ = [
    "InputError",
    "Options",
    "PlanRejected",
    "PlannerError",
    "Proof",
    "SolverFailure",
    "Status",
    "Store",
    "__version__",
    "compare",
    "load",
    "roll",
    "solve",
    "sweep",
]

if TYPE_CHECKING:
    from planner.errors import InputError, PlannerError, PlanRejected, SolverFailure
    from planner.options import Options
    from planner.proof import Proof, Status
    from planner.run import compare, roll, solve
    from planner.scenario import load
    from planner.store import Store
    from planner.sweeping import sweep


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'planner' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
