"""Columns of links from the attributes of a graph's edges: their meanings, and the assumptions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import pandas as pd

from planner.arrays import Floats
from planner.contract.columns import list_some
from planner.contract.notes import add_note
from planner.contract.readings import assume_absent, describe, readings_of
from planner.contract.synonyms import other_names
from planner.contract.units import plain, split_unit, unit_of
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import (
    MBPS_EXPONENT,
    RateUnit,
    drop_incomplete,
    to_floats,
)
from planner_models.traffic.problem.schema import LINKS, MOST_MBPS

CAPACITIES: Final = ("LinkSpeedRaw", "capacity_mbps", "capacity", "bandwidth")
DECIMAL_EXPONENTS: Final = {Fraction(10) ** exponent: exponent for exponent in range(-9, 13)}

Rows = Sequence[tuple[str, Mapping[str, str]]]
"""Place and attributes by name of each edge."""


@dataclass(frozen=True, kw_only=True)
class EdgeSettings:
    """Attributes of edges as a user names them; None: found by name.

    unit          of capacities without a unit in their name; None: Mbit/s, which is said
    default_mbps  capacity of edges without one
    """

    capacity: str | None = None
    unit: RateUnit | None = None
    default_mbps: float | None = None
    weight: str | None = None
    cost: str | None = None


@dataclass(frozen=True, kw_only=True)
class EdgeColumns:
    """Columns of links, (number of edges,) each, and the names of the attributes that they are from."""

    columns: dict[str, Floats] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


def read_columns(rows: Rows, settings: EdgeSettings, faults: FileErrors) -> EdgeColumns:
    """Return capacities (Mbit/s), and weights, costs and latencies (ms) where edges have them."""
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    read = EdgeColumns()
    _read_capacities(rows, names, settings, read, faults)
    weight = _find(names, "weight", settings.weight, faults)
    if weight is not None:
        read.columns["weight"] = _read_weights(rows, weight, faults)
        _check_values(rows, weight, "weight", read.columns["weight"], faults)
        read.used.add(weight)
    for ours, named in (("cost", settings.cost), ("latency_ms", None)):
        name = _find([name_read for name_read in names if name_read not in read.used], ours, named, faults)
        if name is None:
            continue
        read.used.add(name)
        values = read_numbers(rows, name, faults)
        _check_values(rows, name, ours, values, faults)
        if (complete := drop_incomplete(values, name, faults)) is not None:
            read.columns[ours] = complete
        other = readings_of(LINKS).get(ours)
        texts = {row.get(name, "").strip() for _, row in rows}
        if named is None and other == "weight" and weight is None and len(texts) > 1:
            faults.add(
                faults.file,
                f": edge attribute '{shorten(name)}' may be {describe(LINKS, ours)} or "
                f"{describe(LINKS, other)}, and no attribute is {other}: "
                f'set {other} = "{name}" or {ours} = "{name}"',
            )
    if rows and not faults.lines:
        for note in assume_absent(LINKS, read.columns, faults.file):
            add_note(note)
    return read


def note_unread(kind: str, names: Collection[str], used: Collection[str], file: str) -> None:
    """Add a note that names the attributes of a kind of element which are not read."""
    if unread := [f"'{shorten(name)}'" for name in dict.fromkeys(names) if name not in used]:
        add_note(f"{file}: ignored {kind} attributes {list_some(unread)}")


def read_numbers(rows: Rows, name: str, faults: FileErrors, default: float = math.nan) -> Floats:
    """Return one attribute of all rows; `default` where it is missing."""
    return to_floats(
        [
            faults.number(location, name, values[name]) if values.get(name, "").strip() else default
            for location, values in rows
        ]
    )


def _find(names: Sequence[str], ours: str, named: str | None, faults: FileErrors) -> str | None:
    """Return the attribute that is one of our columns: as the user says, by our name, or by others."""
    if named is not None:
        if names and named not in names:
            faults.add(faults.file, f": no edge has the attribute '{named}'", near=(named, names))
        return named if named in names else None
    if ours in names:
        return ours
    accepted = {plain(ours), *map(plain, other_names(LINKS, ours))}
    fitting = [name for name in names if plain(name) in accepted]
    if len(fitting) > 1:
        several = " and ".join(f"'{shorten(name)}'" for name in fitting)
        faults.add(faults.file, f": edge attributes {several} may both be {ours}; set {ours} to one of them")
    if fitting and fitting[0] != ours:
        add_note(f"{faults.file}: read edge attribute '{shorten(fitting[0])}' as {ours}")
    return fitting[0] if fitting else None


def _read_weights(rows: Rows, name: str, faults: FileErrors) -> Floats:
    missing = sum(not values.get(name, "").strip() for _, values in rows)
    if missing:
        add_note(
            f"assumed: {faults.file}: {missing} of {len(rows)} edges have no '{shorten(name)}' and weigh 1"
        )
    return read_numbers(rows, name, faults, 1.0)


def _read_capacities(
    rows: Rows, attributes: Sequence[str], settings: EdgeSettings, read: EdgeColumns, faults: FileErrors
) -> None:
    """Add the capacities of edges, Mbit/s, each by the first attribute that it has."""
    names = CAPACITIES if settings.capacity is None else (settings.capacity,)
    default_mbps = settings.default_mbps
    if (
        settings.capacity is not None
        and attributes
        and settings.capacity not in attributes
        and default_mbps is None
    ):
        faults.add(
            faults.file,
            f": no edge has the attribute '{settings.capacity}'",
            near=(settings.capacity, attributes),
        )
        default_mbps = math.nan  # so that only one fault reports it
    exponents = {name: _stated_exponent(name) for name in names}
    missing = 0
    capacities = []
    assumed: dict[str, None] = {}
    for location, values in rows:
        name = next((name for name in names if values.get(name, "").strip()), None)
        if name is None:
            missing += 1
            capacities.append(math.nan if default_mbps is None else default_mbps)
            continue
        exponent = exponents[name]
        if exponent is None:
            exponent = MBPS_EXPONENT[settings.unit or "mbps"]
            if settings.unit is None:
                assumed[name] = None
        read.used.add(name)
        capacities.append(faults.number(location, name, values[name], exponent=exponent, largest=MOST_MBPS))
        _check_values([(location, values)], name, "capacity_mbps", to_floats(capacities[-1:]), faults)
    if missing and default_mbps is None:
        listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        faults.add(
            faults.file,
            f": {missing} of {len(rows)} edges have no {listed}; "
            "set default_capacity_mbps, or capacity to the attribute that holds it",
        )
    for name in assumed:
        add_note(
            f"assumed: {faults.file}: edge attribute '{shorten(name)}' is in Mbit/s; "
            "capacity_unit sets another unit"
        )
    read.columns["capacity_mbps"] = to_floats(capacities)


def _stated_exponent(name: str) -> int | None:
    """Return the power of ten from the unit in an attribute's name to Mbit/s; None where it has no unit."""
    if name == "LinkSpeedRaw":  # of the Topology Zoo
        return MBPS_EXPONENT["bps"]
    _, ours = unit_of("capacity_mbps")
    for _, units in split_unit(name):
        if ours is not None and len(units) == 1 and units[0].dimension == "rate":
            return DECIMAL_EXPONENTS.get(units[0].factor_to(ours))
    return None


def _check_values(rows: Rows, name: str, ours: str, values: Floats, faults: FileErrors) -> None:
    """Add an error for each edge with a value out of the range of our column, without missing ones."""
    column = LINKS.columns[ours]
    series = pd.Series(values)
    for rule, test in column.rules:
        for row in (~test(series) & series.notna()).to_numpy().nonzero()[0].tolist():
            location, attributes = rows[row]
            text = shorten(attributes.get(name, "").strip())
            faults.add(location, f": {name} is '{text}', {rule}", rule=f"{name} {rule}")
