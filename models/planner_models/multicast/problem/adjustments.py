"""Adjustments of any problem: sizes of tables, rates of groups, and failed switches and links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner_models.multicast.problem.failures import draw_failures
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.schema import MOST_MBPS
from planner_models.multicast.problem.topology import LAYERS, find_rows

MAX_ENTRIES: Final = 1_000_000_000
Entries = Annotated[int, Field(ge=0, le=MAX_ENTRIES)] | None
Factor = Annotated[float, Field(ge=0, le=MAX_ENTRIES, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Sizes of tables, failures, and factors on entries and rates."""

    table_size: Annotated[Entries, Field(description="entries of every switch; none: as given")] = None
    core_entries: Annotated[
        Entries, Field(description="entries of every core switch; none: table_size, or as given")
    ] = None
    aggregation_entries: Annotated[
        Entries, Field(description="entries of every aggregation switch; none: table_size, or as given")
    ] = None
    edge_entries: Annotated[
        Entries, Field(description="entries of every edge switch; none: table_size, or as given")
    ] = None
    processor_mbps: Annotated[
        Annotated[float, Field(ge=0, le=MOST_MBPS, allow_inf_nan=False)] | None,
        Field(
            description="traffic of groups without an entry that the processor of every switch forwards, "
            "Mbit/s; none: as given, else 100"
        ),
    ] = None
    failed_aggregations: Annotated[
        int, Field(ge=0, description="aggregation switches that fail, besides those in table failed")
    ] = 0
    failure_seed: Annotated[int, Field(ge=0, description="seed of the failures")] = 0
    fail_switches: Annotated[
        tuple[str, ...],
        Field(
            description="switches that fail, by their exact names, besides those in table failed; hosts of "
            "an edge switch fail with it"
        ),
    ] = ()
    fail_links: Annotated[
        tuple[str, ...],
        Field(
            description="links between switches that fail, such as edge-0-0<->aggregation-0-1, besides those "
            "in table failed_links"
        ),
    ] = ()
    entry_factors: Annotated[
        dict[str, Factor],
        Field(description="switches, and what the number of their table entries is multiplied by"),
    ] = field(default_factory=dict)
    rate_factors: Annotated[
        dict[str, Factor],
        Field(description="groups, and what their rate is multiplied by; 0: the group is left out"),
    ] = field(default_factory=dict)


@spread(adjustments=Adjustments())
def adjust(
    problem: Multicast,
    *,
    adjustments: Adjustments,
) -> Multicast:
    """Return the problem with tables of other sizes, groups of other rates, and more failures.

    Sizes apply to switches with their own table too; occupied entries stay occupied, so that smaller tables
    have no free entry. Plans are made without
    knowledge of failures, unless a design has a parameter for them. Switches that are drawn are aggregation
    switches, all equally likely.

    raises  InputError for more failures than switches, for unknown names, and where every group is left out
    """
    sizes = zip(
        LAYERS,
        (adjustments.core_entries, adjustments.aggregation_entries, adjustments.edge_entries),
        strict=True,
    )
    problem = resize_tables(
        problem, {layer: adjustments.table_size if size is None else size for layer, size in sizes}
    )
    if adjustments.processor_mbps is not None:
        fabric = problem.fabric.assign(processor_mbps=adjustments.processor_mbps)
        problem = problem.with_entries(fabric, problem.switches)
    problem = scale_rates(scale_tables(problem, adjustments.entry_factors), adjustments.rate_factors)
    _require("fail_switches", adjustments.fail_switches, problem.wiring.switches, "switch")
    drawn = draw_failures(
        problem.wiring, adjustments.failed_aggregations, np.random.default_rng(adjustments.failure_seed)
    )
    cut = [_parse_link(problem, name) for name in adjustments.fail_links]
    if not (drawn or adjustments.fail_switches or cut):
        return problem
    names = list(dict.fromkeys([*problem.failed_names, *adjustments.fail_switches, *drawn]))
    return problem.with_failed(names, list(dict.fromkeys([*problem.failed_pairs, *cut])))


def resize_tables(problem: Multicast, sizes: Mapping[str, int | None]) -> Multicast:
    """Return the problem with so many entries in every table of a layer; None leaves the layer unchanged."""
    sizes_given = {layer: float(size) for layer, size in sizes.items() if size is not None}
    if not sizes_given:
        return problem
    switches = problem.switches
    if switches is not None:
        layer_of = pd.Series(problem.wiring.layers, index=problem.wiring.switches).reindex(switches["switch"])
        size = layer_of.map(sizes_given).to_numpy(float)
        occupied = switches["occupied"].to_numpy()
        switches = switches.assign(occupied=np.where(np.isnan(size), occupied, np.minimum(occupied, size)))
        if "entries" in switches:
            switches["entries"] = np.where(np.isnan(size), switches["entries"], size)
    columns = {f"{layer}_entries": size for layer, size in sizes_given.items()}
    return problem.with_entries(problem.fabric.assign(**columns), switches)


def scale_tables(problem: Multicast, factors: Mapping[str, float]) -> Multicast:
    """Return the problem where tables of some switches have another number of entries, rounded down."""
    if not factors:
        return problem
    wires = problem.wiring
    _require("entry_factors", factors, wires.switches, "switch")
    size, occupied = problem.table_sizes
    row = wires.switches.get_indexer(pd.Index(list(factors)))
    size[row] = np.minimum(np.floor(size[row] * np.array(list(factors.values()))), MAX_ENTRIES)
    occupied = np.minimum(occupied, size)
    if problem.switches is not None:
        of_table = find_rows(wires.switches, problem.switches["switch"])
        if problem.is_tree:
            switches = problem.switches.assign(entries=size[of_table], occupied=occupied[of_table])
            return problem.with_entries(problem.fabric, switches)
        row = np.unique(np.concatenate([of_table, row]))
    switches = pd.DataFrame({"switch": wires.switches[row], "entries": size[row], "occupied": occupied[row]})
    return problem.with_entries(problem.fabric, switches)


def scale_rates(problem: Multicast, factors: Mapping[str, float]) -> Multicast:
    """Return the problem where some groups send at a multiple of their rate, without those of factor 0."""
    if not factors:
        return problem
    _require("rate_factors", factors, problem.group_names, "group")
    factor = np.ones(len(problem.groups))
    factor[problem.group_names.get_indexer(pd.Index(list(factors)))] = list(factors.values())
    left_out = factor == 0
    if left_out.all():
        raise InputError("rate_factors: every group is left out, one at least must remain")
    if left_out.any():
        problem = problem.without_groups(left_out)
    return problem.with_rates(problem.rate_mbps * factor[~left_out])


def _parse_link(problem: Multicast, name: str) -> tuple[str, str]:
    """Return the lower and the upper switch of a link named by both; InputError where there is none."""
    ends = tuple(end.strip() for end in name.split("<->"))
    if len(ends) != 2:
        raise InputError(f"fail_links: '{name}' must name two switches, as in edge-0-0<->aggregation-0-1")
    _require("fail_links", ends, problem.wiring.switches, "switch")
    row = problem.wiring.switches.get_indexer(pd.Index(ends))  # cores, then aggregation and edge switches
    upper, lower = ends if row[0] < row[1] else ends[::-1]
    if not problem.wiring.has_link(lower, upper):
        raise InputError(f"fail_links: there is no link between '{lower}' and '{upper}'")
    return lower, upper


def _require(parameter: str, names: Iterable[str], index: pd.Index, what: str) -> None:
    """Raise InputError for every name that is not known."""
    faults = [
        f"{parameter}: '{name}' is no {what}" + did_you_mean(name, index)
        for name in names
        if name not in index
    ]
    if faults:
        raise InputError(*faults)
