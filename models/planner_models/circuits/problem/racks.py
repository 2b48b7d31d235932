"""Racks between a packet switch and circuits: what problems of a week and of many weeks have in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.tables import number
from planner.errors import InputError

LINKS: Final = {
    "circuit_mbps": number("rate of its link to the circuit switch, Mbit/s", more_than=0),
    "packet_mbps": number("rate of its link to the packet switch, Mbit/s", at_least=0),
}
"""Columns of a table `racks` beside the racks' names."""


class Racks:
    """The table `racks` of a problem as arrays. A rate of 1 Mbit/s is 1 bit/us."""

    racks: pd.DataFrame

    @cached_property
    def places(self) -> pd.Index:
        """Index from names of racks to rows of `racks`."""
        places: pd.Index = pd.Index(self.racks["rack"])
        return places

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """(n,) names of the racks."""
        return self.racks["rack"].to_numpy(object)

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


def scale_rates(racks: pd.DataFrame, *, circuit: float, packet: float) -> pd.DataFrame:
    """Return the racks with multiples of the rates of their links to the circuit and the packet switch."""
    return racks.assign(
        circuit_mbps=racks["circuit_mbps"] * circuit, packet_mbps=racks["packet_mbps"] * packet
    )


def require_fit(*, night_us: float, shortest_day_us: float, week: str, week_us: float) -> None:
    """Raise InputError where a night that a scenario sets does not fit the week."""
    for fault in find_misfits(
        "problem", night_us=night_us, shortest_day_us=shortest_day_us, week=week, week_us=week_us
    ):
        raise InputError(fault)


def find_misfits(
    where: str, *, night_us: float, shortest_day_us: float, week: str, week_us: float
) -> Iterator[str]:
    """Yield a fault where a night, or with it the shortest day, does not fit the week, named `week`."""
    if night_us >= week_us:
        yield f"{where}: night_us is {night_us:g}, must be less than {week}, {week_us:g}"
    elif night_us + shortest_day_us > week_us:
        yield (
            f"{where}: shortest_day_us is {shortest_day_us:g}, must with the night of {night_us:g} fit "
            f"{week}, {week_us:g}"
        )
