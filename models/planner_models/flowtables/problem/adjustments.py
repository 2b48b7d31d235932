"""Adjustments that apply to every problem of system `flowtables`, whatever its source."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import MOST_ENTRIES

Cost = Annotated[float | None, Field(ge=0, le=1e9, description="in place of the value in the table costs")]


def adjust(
    problem: FlowTables,
    *,
    probe_ns: Cost = None,
    upcall_us: Cost = None,
    revalidate_us: Cost = None,
    flow_limit: Annotated[
        int | None,
        Field(ge=1, le=MOST_ENTRIES, description="most entries, in place of the value in the table costs"),
    ] = None,
    table_limit: Annotated[
        int | None,
        Field(
            ge=0,
            le=MOST_ENTRIES,
            description="most entries of all flow tables where neighbours are merged; 0: as without merging",
        ),
    ] = None,
    nic_entries: Annotated[
        int | None,
        Field(ge=0, le=MOST_ENTRIES, description="entries in the TCAM of a network card; 0: no card"),
    ] = None,
    nic_masks: Annotated[
        int | None,
        Field(ge=0, le=MOST_ENTRIES, description="different masks of entries in the card; 0: any number"),
    ] = None,
    first_connections: Annotated[
        int | None, Field(ge=1, description="connections at the start of the table flows that are kept")
    ] = None,
) -> FlowTables:
    """Return the problem with other costs or limits of the switch, or with fewer connections."""
    costs = {
        "probe_ns": probe_ns,
        "upcall_us": upcall_us,
        "revalidate_us": revalidate_us,
        "flow_limit": flow_limit,
        "table_limit": table_limit,
        "nic_entries": nic_entries,
        "nic_masks": nic_masks,
    }
    changed = problem.with_costs(**{name: float(value) for name, value in costs.items() if value is not None})
    if first_connections is not None and first_connections < len(changed.flows):
        changed = changed.with_flows(changed.flows.iloc[:first_connections])
    return changed
