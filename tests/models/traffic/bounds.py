"""Bounds of the optimum, solved once for each problem: tests of many designs draw the same problems."""

from __future__ import annotations

from typing import Any

from planner_models.traffic import Traffic
from planner_models.traffic.designs.optimum import optimum

_BOUNDS: dict[tuple[Any, ...], float] = {}


def optimum_bound(problem: Traffic, **parameters: Any) -> float:
    """Return the proven bound of the optimum of a problem that its tables describe wholly.

    parameters  of the optimum, such as its objective
    """
    tables = sorted(problem.to_tables().items())
    cells = tuple(
        (name, tuple(frame), tuple(map(tuple, frame.to_numpy().tolist()))) for name, frame in tables
    )
    key = (cells, tuple(sorted(parameters.items())))
    if key not in _BOUNDS:
        bound = optimum.route(problem, **parameters).proof.bound
        assert bound is not None
        _BOUNDS[key] = bound
    return _BOUNDS[key]
