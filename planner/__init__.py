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
    "Proof": "planner.contract.proof",
    "Status": "planner.contract.proof",
    "load": "planner.scenarios.scenario",
    "solve": "planner.runs.run",
    "compare": "planner.runs.run",
    "roll": "planner.runs.run",
    "sweep": "planner.sweeps.sweep",
    "Store": "planner.store.store",
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
    from planner.contract.proof import Proof, Status
    from planner.errors import InputError, PlannerError, PlanRejected, SolverFailure
    from planner.options import Options
    from planner.runs.run import compare, roll, solve
    from planner.scenarios.scenario import load
    from planner.store.store import Store
    from planner.sweeps.sweep import sweep


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'planner' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
