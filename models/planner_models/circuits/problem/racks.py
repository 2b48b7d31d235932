"""Racks between a packet switch and circuits: what problems of a week and of many weeks have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.tables import label, number, report_unknown_names
from planner.errors import InputError

ENDS: Final = ("source_rack", "target_rack")
END_COLUMNS: Final = {"source_rack": label("rack that sends"), "target_rack": label("rack that receives")}

LEAST_MBPS: Final = 1e-3
MOST_MBPS: Final = 1e9
LEAST_US: Final = 1e-3
MOST_US: Final = 1e12  # eleven days
MOST_BITS: Final = 1e18

LINKS: Final = {
    "circuit_mbps": number(
        "rate of its link to the circuit switch, Mbit/s",
        more_than=0,
        at_most=MOST_MBPS,
        least=LEAST_MBPS,
        usual=(10, 1e7),
    ),
    "packet_mbps": number("rate of its link to the packet switch, Mbit/s", at_least=0, at_most=MOST_MBPS),
}
"""Columns of a table `racks` beside the racks' names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Racks:
    """The table `racks` of a problem as arrays. A rate of 1 Mbit/s is 1 bit/us."""

    racks: pd.DataFrame

    def with_rates(self, *, circuit: float = 1.0, packet: float = 1.0) -> Self:
        """Return the same problem over links of a multiple of the rate."""
        if circuit == packet == 1:
            return self
        scaled = {"circuit_mbps": self.racks["circuit_mbps"] * circuit}
        return replace(
            self, racks=self.racks.assign(**scaled, packet_mbps=self.racks["packet_mbps"] * packet)
        )

    def report_unknown_ends(self, frame: pd.DataFrame, table: str) -> Iterator[str]:
        """Yield the faults of a table that names unknown racks as source or target."""
        for end in ENDS:
            yield from report_unknown_names(frame, table, end, self.places, "no rack of the network")

    @cached_property
    def places(self) -> pd.Index:
        """Index from names of racks to rows of `racks`."""
        places: pd.Index = pd.Index(self.racks["rack"])
        return places

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """(n,) names of the racks."""
        return self.racks["rack"].to_numpy(object)

    def rows_of(self, frame: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of `racks` that each row of a table names as source and target; -1 for none."""
        source, target = (self.places.get_indexer(pd.Index(frame[end])).astype(np.int64) for end in ENDS)
        return source, target

    def name_pairs(
        self, source: NDArray[np.int64], target: NDArray[np.int64]
    ) -> dict[str, NDArray[np.object_]]:
        """Return the columns source_rack and target_rack of some pairs of rows of `racks`."""
        return dict(zip(ENDS, (self.names[source], self.names[target]), strict=True))

    @cached_property
    def circuit_mbps(self) -> NDArray[np.float64]:
        """(n, n) rate of a circuit from row to column: the slower of its ends."""
        rate = self.racks["circuit_mbps"].to_numpy(float)
        slower: NDArray[np.float64] = np.minimum(rate[:, None], rate[None, :])
        return slower

    @cached_property
    def packet_mbps(self) -> NDArray[np.float64]:
        """(n,) rate of each rack's link to the packet switch."""
        return self.racks["packet_mbps"].to_numpy(float)


def require_fit(night_us: float, shortest_day_us: float, week: str, week_us: float) -> None:
    """Raise InputError where a night that a scenario sets does not fit the week."""
    for fault in find_misfits("problem", night_us, shortest_day_us, week, week_us):
        raise InputError(fault)


def find_misfits(
    where: str, night_us: float, shortest_day_us: float, week: str, week_us: float
) -> Iterator[str]:
    """Yield a fault where a night, or with it the shortest day, does not fit the week, named `week`."""
    if night_us >= week_us:
        yield f"{where}: night_us is {night_us:g}, must be less than {week}, {week_us:g}"
    elif night_us + shortest_day_us > week_us:
        yield (
            f"{where}: shortest_day_us is {shortest_day_us:g}, must with the night of {night_us:g} fit "
            f"{week}, {week_us:g}"
        )
