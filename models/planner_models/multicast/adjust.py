"""What can be changed of any problem: how much tables hold, and which switches have failed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.tables import few
from planner_models.multicast.fabric import LAYERS
from planner_models.multicast.failures import draw
from planner_models.multicast.problem import Multicast

MOST_ENTRIES: Final = 1_000_000_000
Entries = Annotated[int, Field(ge=1, le=MOST_ENTRIES)] | None


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
    failure_seed: Annotated[int, Field(ge=0, description="where they are drawn")] = 0,
) -> Multicast:
    """The problem with other tables, and more aggregation switches failed, drawn uniformly.

    Sizes hold for switches with a table of their own too; entries that others have occupied stay
    occupied. Plans are made without knowing of failures.

    raises  InputError for tables smaller than what is occupied, and more failures than switches
    """
    sizes = zip(LAYERS, (core_entries, aggregation_entries, edge_entries), strict=True)
    problem = resized(problem, {layer: table_size if size is None else size for layer, size in sizes})
    if not failed_aggregations:
        return problem
    names = draw(problem.wiring, failed_aggregations, np.random.default_rng(failure_seed))
    if problem.failed is not None:
        names = [
            *problem.failed["switch"],
            *(name for name in names if name not in set(problem.failed["switch"])),
        ]
    adjusted = copy.copy(problem)  # nothing that was worked out before depends on what has failed
    object.__setattr__(adjusted, "failed", pd.DataFrame({"switch": names}))
    return adjusted


def resized(problem: Multicast, sizes: Mapping[str, int | None]) -> Multicast:
    """The problem with so many entries in every table of a layer; None leaves the layer's as they are."""
    given = {layer: float(size) for layer, size in sizes.items() if size is not None}
    if not given:
        return problem
    switches = problem.switches
    if switches is not None:
        at = pd.Series(problem.wiring.layers, index=problem.wiring.switches).reindex(switches["switch"])
        size = at.map(given).to_numpy(float)
        full = np.flatnonzero(switches["occupied"].to_numpy() > size).tolist()
        faults = [
            f"problem: '{switches['switch'].iloc[row]}' has {switches['occupied'].iloc[row]:g} entries "
            f"occupied, its table cannot be of {size[row]:g}"
            for row in full
        ]
        if faults:
            raise InputError(*few(faults, "problem", "with more entries occupied"))
        if "entries" in switches:
            switches = switches.assign(entries=np.where(np.isnan(size), switches["entries"], size))
    columns = {f"{layer}_entries": size for layer, size in given.items()}
    return problem.with_entries(problem.fabric.assign(**columns), switches)
