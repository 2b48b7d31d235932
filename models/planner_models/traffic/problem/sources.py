"""Sources of problems of system `traffic`: one for each file format or collection that it reads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from planner_models.flowrecords.recognition import recognized_by
from planner_models.traffic.problem import series
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import (
    flow_records,
    graphml,
    graphs,
    net2plan,
    repetita,
    sndlib,
    topohub,
)


def _source(read: Callable[..., Any], suffixes: Sequence[str] = ()) -> Callable[..., Traffic]:
    """Return a function with the reader's parameters that builds a problem from the tables it reads.

    suffixes  endings of files that are of this source, for `planner new scenario`
    """

    @functools.wraps(read)
    def source(**parameters: Any) -> Traffic:
        first = next(iter(inspect.signature(read).parameters))  # positional: a path or a network's name
        return Traffic.from_tables(read(parameters.pop(first), **parameters))

    source.suffixes = tuple(suffixes)  # type: ignore[attr-defined]
    return source


SOURCES: Final = {
    "topohub": _source(topohub.read),
    "graphml": _source(graphml.read, (".graphml",)),
    "sndlib": _source(sndlib.read),
    "graph": _source(graphs.read, graphs.ENDINGS),
    "net2plan": _source(net2plan.read, (".n2p",)),
    "repetita": _source(repetita.read),
    "percentile": series.read_percentile,
    "flow_records": recognized_by(flow_records.read, needs_network=True),
}
