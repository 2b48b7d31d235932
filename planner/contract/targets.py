"""Reproduction targets: tables and figures of papers, declared as data, and functions for our values.

A target is one table or figure of a paper. `data/published/<system>.toml` declares its published values
and how they are judged (`read_targets`); a function of the system computes our values for these rows of
`data/published/<system>.csv` by running scenarios or the system's functions, and
`planner.runs.reproduction` judges them. No published value is an input of the run that it judges, unless
its row is declared as calibrated.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, Literal, Protocol

import pandas as pd

from planner.contract.drawing import Curve as Curve
from planner.contract.drawing import Drawing

TOLERANCE: Final = 0.15  # relative difference within which a value counts as reproduced


class Study(Protocol):
    """Services of the engine for targets.

    quick  whether to do a smaller or shorter run with the same conclusion, seconds instead of minutes
    """

    @property
    def quick(self) -> bool: ...

    def compare(
        self,
        scenario: str,
        *,
        designs: Sequence[str] | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Return the metrics of a shipped scenario's designs, one row each, as in `planner compare`.

        changes  dotted keys of the scenario and their values, as `--set` takes them
        raises   InputError for a scenario that cannot be used, and the error of a design that fails
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetValues:
    """Our values for the rows of a target.

    values     by the row's id: a number in the row's unit; for a statement in words, whether it is true;
               None for unknown
    notes      by id: the reading of the row, or the reason for a difference
    shortened  ids of rows that a quick run is too short for: they get no verdict
    """

    values: Mapping[str, float | bool | None]
    notes: Mapping[str, str] = field(default_factory=dict)
    shortened: frozenset[str] = frozenset()
    curves: tuple[Drawing, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A table or figure of a paper that is reproduced.

    name        in the system, e.g. "table_3_3"
    about       its content, in one line
    rows        ids of the published rows that are judged, in the order of display
    find        function that computes our values
    tolerance   relative difference within which a row counts as reproduced; `tolerances` for single rows
    bounds      rows with a bound instead of a value ("less than 10%"): the side on which ours must be
    orders      groups of rows that are judged by order where their values differ
    calibrated  rows that an open parameter was fitted to
    lost        parts of the figure that the source no longer contains: shown as not available
    numberless  rows with no number to compare: settings of the paper, and claims without a figure
    not_covered  rows that no model here computes: the finder gives them no value, and a note with the reason
    """

    name: str
    place: str
    about: str
    rows: tuple[str, ...]
    find: Callable[[Study], TargetValues]
    tolerance: float = TOLERANCE
    tolerances: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, Literal["at least", "at most"]] = field(default_factory=dict)
    orders: tuple[tuple[str, ...], ...] = ()
    calibrated: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()
    numberless: frozenset[str] = frozenset()
    not_covered: frozenset[str] = frozenset()


def read_targets(system: str, finders: Mapping[str, Callable[[Study], TargetValues]]) -> tuple[Target, ...]:
    """Return the targets that `data/published/<system>.toml` declares, in its order.

    A table of the file is a target: its key is the target's name, its keys are fields of `Target`.

    finders  the function that computes our values, by the target's name
    raises   ValueError where the file and `finders` do not name the same targets
    """
    text = (files("planner_data") / "published" / f"{system}.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)
    if declared.keys() != finders.keys():
        differing = ", ".join(sorted(declared.keys() ^ finders.keys()))
        raise ValueError(
            f"published/{system}.toml: declares other targets than the system finds: {differing}"
        )
    return tuple(
        Target(
            name=name,
            place=target["place"],
            about=target["about"],
            rows=tuple(target["rows"]),
            find=finders[name],
            tolerance=target.get("tolerance", TOLERANCE),
            tolerances=target.get("tolerances", {}),
            bounds=target.get("bounds", {}),
            orders=tuple(tuple(group) for group in target.get("orders", ())),
            calibrated=frozenset(target.get("calibrated", ())),
            lost=tuple(target.get("lost", ())),
            numberless=frozenset(target.get("numberless", ())),
            not_covered=frozenset(target.get("not_covered", ())),
        )
        for name, target in declared.items()
    )
