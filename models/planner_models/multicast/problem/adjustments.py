"""Adjustments of any problem: sizes of tables, and failed switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner_models.multicast.problem.failures import draw_failures
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import LAYERS

MAX_ENTRIES: Final = 1_000_000_000
Entries = Annotated[int, Field(ge=0, le=MAX_ENTRIES)] | None


def adjust(
    problem: Multicast,
    *,
    table_size: Annotated[Entries, Field(description="entries of every switch; none: as given")] = None,
    core_entries: Annotated[
        Entries, Field(description="entries of every core switch; none: table_size, or as given")
    ] = None,
    aggregation_entries: Annotated[
        Entries, Field(description="entries of every aggregation switch; none: table_size, or as given")
    ] = None,
    edge_entries: Annotated[
        Entries, Field(description="entries of every edge switch; none: table_size, or as given")
    ] = None,
    failed_aggregations: Annotated[
        int, Field(ge=0, description="aggregation switches that fail, besides those in table failed")
    ] = 0,
    failure_seed: Annotated[int, Field(ge=0, description="seed of the failures")] = 0,
) -> Multicast:
    """Return the problem with tables of other sizes, and more aggregation switches failed, drawn uniformly.

    Sizes apply to switches with their own table too; occupied entries stay occupied, so that smaller tables
    have no free entry. Plans are made without knowledge of failures.

    raises  InputError for more failures than switches
    """
    sizes = zip(LAYERS, (core_entries, aggregation_entries, edge_entries), strict=True)
    problem = resize_tables(problem, {layer: table_size if size is None else size for layer, size in sizes})
    if not failed_aggregations:
        return problem
    names = draw_failures(problem.wiring, failed_aggregations, np.random.default_rng(failure_seed))
    if problem.failed is not None:
        names = list(dict.fromkeys([*problem.failed["switch"], *names]))
    return problem.with_failed(names)


def resize_tables(problem: Multicast, sizes: Mapping[str, int | None]) -> Multicast:
    """Return the problem with so many entries in every table of a layer; None leaves the layer unchanged."""
    given = {layer: float(size) for layer, size in sizes.items() if size is not None}
    if not given:
        return problem
    switches = problem.switches
    if switches is not None:
        at = pd.Series(problem.wiring.layers, index=problem.wiring.switches).reindex(switches["switch"])
        size = at.map(given).to_numpy(float)
        occupied = switches["occupied"].to_numpy()
        switches = switches.assign(occupied=np.where(np.isnan(size), occupied, np.minimum(occupied, size)))
        if "entries" in switches:
            switches["entries"] = np.where(np.isnan(size), switches["entries"], size)
    columns = {f"{layer}_entries": size for layer, size in given.items()}
    return problem.with_entries(problem.fabric.assign(**columns), switches)
