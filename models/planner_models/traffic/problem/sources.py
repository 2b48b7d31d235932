"""Sources of problems of system `traffic`: one for each file format or collection that it reads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from planner_models.traffic.problem import series
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import graphml, graphs, net2plan, repetita, sndlib, topohub


def _source(read: Callable[..., Any]) -> Callable[..., Traffic]:
    """Return a function with the reader's parameters that builds a problem from the tables it reads."""

    @functools.wraps(read)
    def source(**parameters: Any) -> Traffic:
        first = next(iter(inspect.signature(read).parameters))  # positional: a path or a network's name
        return Traffic.from_tables(read(parameters.pop(first), **parameters))

    return source


SOURCES: Final = {
    "topohub": _source(topohub.read),
    "graphml": _source(graphml.read),
    "sndlib": _source(sndlib.read),
    "graph": _source(graphs.read),
    "net2plan": _source(net2plan.read),
    "repetita": _source(repetita.read),
    "percentile": series.read_percentile,
}
