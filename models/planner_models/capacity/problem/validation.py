"""Rules of a problem of system `capacity` beyond those of single columns, and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.arrays import Bools
from planner.contract.tables import describe_rows, file_name, row_name, shorten_faults, validate_fields
from planner.errors import did_you_mean
from planner_models.capacity.problem.schema import TABLES
from planner_models.capacity.problem.tunnels import find_tunnel_faults
from planner_models.networks.classes import find_class_faults
from planner_models.networks.nodes import find_bad_ends

if TYPE_CHECKING:
    from planner_models.capacity.problem.tables import PlanningTables


def find_faults(problem: PlanningTables) -> list[str]:
    """Return every fault of a problem; later rules are only looked at where tables keep the first ones."""
    faults = validate_fields(problem, TABLES)
    if not faults:
        faults += [*_bad_rows(problem), *_bad_ends(problem)]
    if not faults:
        faults += _bad_names(problem)
    if not faults:
        faults += [*_bad_modules(problem), *_bad_members(problem), *_missing_lengths(problem)]
        faults += [*_missing_latencies(problem), *_bad_beginnings(problem)]
        faults += find_class_faults(problem.demands, problem.classes)
        if faults:
            faults += find_tunnel_faults(problem)
    return faults


def _bad_rows(problem: PlanningTables) -> Iterator[str]:
    """Yield faults of tables that must have one row, or rows in order."""
    if problem.network is not None and len(problem.network) > 1:
        yield f"{file_name(problem.network, 'network')}: has {len(problem.network)} rows, must have one"
    if problem.years is not None:
        year = problem.years["year"].to_numpy(float)
        for row in np.flatnonzero(np.diff(year) <= 0).tolist()[:1]:
            yield (
                f"{row_name(problem.years, 'years', row + 1)}: year is {year[row + 1]:g}, must be after "
                f"{year[row]:g}"
            )
    if not len(problem.links) and (problem.candidates is None or not len(problem.candidates)):
        yield f"{file_name(problem.links, 'links')}: there is no link and no candidate"


def _bad_ends(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each end that is no node, and for each row with the same node at both ends."""
    for table, start, end in (
        ("links", "tail", "head"),
        ("candidates", "tail", "head"),
        ("demands", "source", "target"),
    ):
        frame = getattr(problem, table)
        if frame is not None:
            rows = problem.find_nodes(frame[start]), problem.find_nodes(frame[end])
            yield from find_bad_ends(frame, table, (start, end), problem.node_index, rows)


def _bad_names(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each link with the name of another link or of a node."""
    names = pd.Series(problem.names)
    repeated = names.duplicated()
    is_node = names.isin(problem.node_index)
    for row in np.flatnonzero((repeated | is_node).to_numpy()).tolist()[:5]:
        frame, table, table_row = _row_of_line(problem, row)
        what = "of another link" if repeated.iloc[row] else "of a node"
        yield f"{row_name(frame, table, table_row)}: link '{names.iloc[row]}' is the name {what}, must differ"


def _row_of_line(problem: PlanningTables, row: int) -> tuple[pd.DataFrame, str, int]:
    """Return the table of a link, its name, and the row there."""
    if row < len(problem.links) or problem.candidates is None:
        return problem.links, "links", row
    return problem.candidates, "candidates", row - len(problem.links)


def _bad_modules(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each module of a link that is none."""
    if "link" not in problem.modules:
        return
    modules, names = problem.modules, problem.modules["link"].tolist()
    yield from describe_rows(
        [row for row, name in enumerate(names) if name and problem.find_line(name) < 0],
        lambda row: (
            f"{row_name(modules, 'modules', row)}: link '{names[row]}' is no link"
            + did_you_mean(names[row], problem.names)
        ),
        file_name(modules, "modules"),
        "with an unknown link",
    )


def _bad_beginnings(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each demand that begins in a year that the plan does not have."""
    if "year" not in problem.demands or problem.years is None:
        return
    year, years = problem.demands["year"].to_numpy(float), problem.year_numbers
    faults = [
        f"{row_name(problem.demands, 'demands', row)}: year is {year[row]:g}, must be one of the years: "
        f"{', '.join(map(str, years))}"
        for row in np.flatnonzero(~np.isnan(year) & ~np.isin(year, years)).tolist()
    ]
    yield from shorten_faults(faults, file_name(problem.demands, "demands"), "with an unknown year")


def _bad_members(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each member of a failure that is no element, and for differing probabilities."""
    frame = problem.failures
    if frame is None:
        return
    names = frame["member"].tolist()
    yield from describe_rows(
        [
            row
            for row, name in enumerate(names)
            if problem.find_line(name) < 0 and name not in problem.node_index
        ],
        lambda row: (
            f"{row_name(frame, 'failures', row)}: member '{names[row]}' is no link and no node"
            + did_you_mean(names[row], [*problem.names, *problem.nodes["node"]])
        ),
        file_name(frame, "failures"),
        "with an unknown member",
    )
    if "probability" in frame:
        first = frame.groupby("failure", sort=False)["probability"].transform("first")
        yield from describe_rows(
            np.flatnonzero((first != frame["probability"]).to_numpy()),
            lambda row: (
                f"{row_name(frame, 'failures', row)}: probability is {frame['probability'].iloc[row]:g}, "
                f"must be {first.iloc[row]:g} as in the first row of failure '{frame['failure'].iloc[row]}'"
            ),
            file_name(frame, "failures"),
            "with another probability",
        )


def _missing_lengths(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each link without a length, where costs are per kilometre."""
    needs = problem.lines["setup_cost_per_km"].to_numpy(float) > 0
    if (problem.modules["cost_per_km"] > 0).any():
        needs = np.ones(len(problem.lines), dtype=bool)
    missing = np.isnan(problem.length_km) & needs
    yield from _unknown_of_links(problem, missing, "length_km is missing", "costs are per kilometre")


def _missing_latencies(problem: PlanningTables) -> Iterator[str]:
    """Yield a fault for each link without a delay, where a demand has a latency limit."""
    if np.isfinite(problem.max_latency_ms).any():
        missing = np.isnan(problem.latency_ms)
        yield from _unknown_of_links(
            problem, missing, "latency_ms and length_km are missing", "demands have max_latency_ms"
        )


def _unknown_of_links(problem: PlanningTables, missing: Bools, what: str, why: str) -> Iterator[str]:
    """Yield a fault for each link (L,) of which neither a length nor the places of its ends are known."""
    faults = []
    for row in np.flatnonzero(missing).tolist():
        frame, table, table_row = _row_of_line(problem, row)
        where = row_name(frame, table, table_row)
        faults.append(f"{where}: {what}, and nodes have no latitude and longitude; {why}")
    yield from shorten_faults(faults, file_name(problem.links, "links"), "without a length")
