"""Hierarchical partitioning in its worst event: local decisions answer what the global one does not know yet.

The global decision is old when the event comes, and no other follows. What the local decisions then cost is
compared with a decision that is made again with all information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pandas as pd

from planner.contract.design import Mechanism
from planner.formatting import percent
from planner.scenarios.scenario import load

COLUMNS: Final = ("scenario", "design", "event", "lost", "excess", "unserved", "version")


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """The event after which a design costs most over a decision with all information.

    event     in words
    excess    cost over that of a decision with all information, less 1
    without   the same without an event
    unserved  clients without service after any event
    events    number of events
    """

    scenario: str
    design: str
    mechanism: Mechanism
    event: str
    excess: float
    without: float
    unserved: float
    events: int

    def words(self) -> str:
        """Return the worst case in one sentence."""
        scenario = load(self.scenario)
        title = f"{scenario.system.label}, {scenario.design_title(self.design)}"
        lost = f"{self.unserved:,.0f} clients are not served" if self.unserved else "all clients are served"
        return (
            f"{title}: at most {percent(self.excess)} above a decision with all information over "
            f"{self.events} events after the global decision, worst after the {self.event}; "
            f"without an event {percent(self.without)}; {lost}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "scenario": self.scenario,
            "design": self.design,
            "event": self.event,
            "excess": self.excess,
            "excess_without_event": self.without,
            "unserved_clients": self.unserved,
            "events": self.events,
        }


@cache
def load_worst_cases() -> tuple[WorstCase, ...]:
    """Return the worst case of each design whose events are released."""
    with (files("planner_data") / "coordination" / "events.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    return tuple(
        _find_worst(str(scenario), str(design), rows)
        for (scenario, design), rows in frame.groupby(["scenario", "design"], sort=False)
    )


def _find_worst(scenario: str, design: str, rows: pd.DataFrame) -> WorstCase:
    events = rows[rows["lost"] > 0]
    worst = events.iloc[int(events["excess"].to_numpy().argmax())]
    entry = next(entry for entry in load(scenario).designs if entry.label == design)
    return WorstCase(
        scenario=scenario,
        design=design,
        mechanism=entry.design.mechanism,
        event=str(worst["event"]),
        excess=float(worst["excess"]),
        without=float(rows.loc[rows["lost"] == 0, "excess"].iloc[0]),
        unserved=float(events["unserved"].max()),
        events=len(events),
    )


def worst_cases_of(mechanisms: Sequence[Mechanism]) -> list[WorstCase]:
    """Return the worst cases of designs with one of the mechanisms."""
    return [case for case in load_worst_cases() if case.mechanism in mechanisms]
