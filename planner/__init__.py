"""Optimization and planning for networked systems.

    import planner
    result = planner.compare("traffic/germany50", designs=["ecmp", "optimum"])
    result.metrics

Every verb takes a problem, a scenario, or the name of one. Names load on first use: importing planner loads
no solver and no pandas.
"""

from __future__ import annotations

from planner.runs.presenter import register_presenter
from planner.version import __version__

TYPE_CHECKING = False  # as checkers of types know it; importing typing takes longer than all of this

_HOMES = {
    "Options": "planner.options",
    "PlannerError": "planner.errors",
    "InputError": "planner.errors",
    "PlanRejected": "planner.errors",
    "DesignFailure": "planner.errors",
    "SolverFailure": "planner.errors",
    "Proof": "planner.contract.proof",
    "Status": "planner.contract.proof",
    "Store": "planner.store.store",
    "alternatives": "planner.runs.alternatives",
    "check": "planner.runs.files",
    "compare": "planner.runs.evaluation",
    "diff": "planner.runs.diff",
    "explain": "planner.runs.what_if",
    "export": "planner.runs.files",
    "failures": "planner.sweeps.failures",
    "generate": "planner.runs.files",
    "load": "planner.scenarios.scenario",
    "model": "planner.runs.model",
    "recipes": "planner.coordination.recipes",
    "reproduce": "planner.runs.reproduction",
    "roll": "planner.runs.rolling",
    "simulate": "planner.runs.simulate",
    "solve": "planner.runs.evaluation",
    "sweep": "planner.sweeps.sweep",
    "upgrades": "planner.sweeps.upgrades",
}

__all__ = [
    "DesignFailure",
    "InputError",
    "Options",
    "PlanRejected",
    "PlannerError",
    "Proof",
    "SolverFailure",
    "Status",
    "Store",
    "__version__",
    "alternatives",
    "check",
    "compare",
    "diff",
    "explain",
    "export",
    "failures",
    "generate",
    "load",
    "model",
    "recipes",
    "reproduce",
    "roll",
    "simulate",
    "solve",
    "sweep",
    "upgrades",
]

if TYPE_CHECKING:
    from typing import Any

    from planner.contract.proof import Proof, Status
    from planner.coordination.recipes import recipes
    from planner.errors import DesignFailure, InputError, PlannerError, PlanRejected, SolverFailure
    from planner.options import Options
    from planner.runs.alternatives import alternatives
    from planner.runs.diff import diff
    from planner.runs.evaluation import compare, solve
    from planner.runs.files import check, export, generate
    from planner.runs.model import model
    from planner.runs.presenter import Presenter
    from planner.runs.reproduction import reproduce
    from planner.runs.rolling import roll
    from planner.runs.simulate import simulate
    from planner.runs.what_if import explain
    from planner.scenarios.scenario import load
    from planner.store.store import Store
    from planner.sweeps.failures import failures
    from planner.sweeps.sweep import sweep
    from planner.sweeps.upgrades import upgrades


def _load_presenter() -> Presenter:
    """Return the module that makes pages, charts and documents of results."""
    from planner.reports import presentation

    return presentation


register_presenter(_load_presenter)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'planner' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
