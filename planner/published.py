"""What papers state, and the targets that put ours beside it.

A target is one table or figure of a paper. It finds our values for rows of `data/published/<system>.csv`
by running scenarios or the system's functions; `planner.reproduce` judges them. Nothing published is
an input to the run that it judges, unless its row is told to be calibrated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import pandas as pd

from planner.drawing import Curve as Curve
from planner.drawing import Drawing

TOLERANCE: Final = 0.15  # relative difference within which a value counts as reproduced


class Study(Protocol):
    """What a target may ask of the engine.

    quick  a smaller or shorter run that shows the same: minutes become seconds
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
        """The metrics of a shipped scenario's designs: a row for each, as `planner compare` prints them.

        changes  dotted keys of the scenario and their values, as `--set` takes them
        raises   InputError for a scenario that cannot be used, and the error of a design that fails
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Our values for a target's rows.

    values  by the row's id: a number in the row's unit; for a row in words, whether it holds; None
            where the run could not give it
    notes   by id: how the row was read, or why ours differs
    """

    values: Mapping[str, float | bool | None]
    notes: Mapping[str, str] = field(default_factory=dict)
    curves: tuple[Drawing, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A table or figure of a paper that we measure too.

    name        in the system, e.g. "table_3_3"
    about       what it shows, in a line
    rows        ids of the published rows that it judges, in the order in which they are shown
    find        our values
    tolerance   relative difference within which a row counts as reproduced; `tolerances` for single rows
    bounds      rows whose value is a bound ("less than 10%"): what ours must be of it
    orders      groups of rows whose order is judged where their values differ
    calibrated  rows that an open parameter was fitted to
    lost        what the figure also showed and the source no longer holds: shown as not available
    """

    name: str
    place: str
    about: str
    rows: tuple[str, ...]
    find: Callable[[Study], Found]
    tolerance: float = TOLERANCE
    tolerances: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, Literal["at least", "at most"]] = field(default_factory=dict)
    orders: tuple[tuple[str, ...], ...] = ()
    calibrated: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()
