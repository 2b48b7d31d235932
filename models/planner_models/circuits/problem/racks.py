"""Racks between a packet switch and circuits: the common part of problems of a week and of many weeks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from planner.contract.table import label, number
from planner.contract.tables import report_unknown_names
from planner.errors import InputError, did_you_mean
from planner_models.networks.nodes import find_names

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
    "failed": number(
        "1: it has failed, and neither sends nor receives; absent: none has",
        at_least=0,
        at_most=1,
        whole=True,
        optional=True,
    ),
}
"""Columns of a table `racks` beside the racks' names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Racks:
    """The table `racks` of a problem as arrays. A rate of 1 Mbit/s is 1 bit/us.

    any_rack  what stands for any rack in the place of a target, whose row is then -1; "": nothing does
    """

    any_rack: ClassVar[str] = ""

    racks: pd.DataFrame

    def with_rates(self, *, circuit: ArrayLike = 1.0, packet: ArrayLike = 1.0) -> Self:
        """Return the same problem over links of a multiple of the rate: of all racks, or (n,) of each."""
        factors = {"circuit_mbps": np.asarray(circuit, float), "packet_mbps": np.asarray(packet, float)}
        changed = {name: self.racks[name] * factor for name, factor in factors.items() if (factor != 1).any()}
        return replace(self, racks=self.racks.assign(**changed)) if changed else self

    def fail(self, racks: Iterable[str]) -> Self:
        """Return the same problem with these racks failed, besides those that have failed already.

        raises  InputError for every name that is no rack
        """
        names = tuple(racks)
        if not names:
            return self
        self._require_racks("fail_racks", names)
        down = self.is_failed.copy()
        down[self.places.get_indexer(pd.Index(names))] = True
        return replace(self, racks=self.racks.assign(failed=down.astype(float)))

    def rack_factors(self, parameter: str, factors: Mapping[str, float]) -> NDArray[np.float64]:
        """Return (n,) the factor of each rack, 1 where there is none; InputError for an unknown rack."""
        self._require_racks(parameter, factors)
        every = np.ones(len(self.racks))
        for name, factor in factors.items():
            every[self.places.get_loc(name)] = factor
        return every

    def pair_factors(self, factors: Mapping[str, float], ends: pd.DataFrame) -> NDArray[np.float64]:
        """Return (rows,) the factor of each row of a table of pairs, 1 where there is none.

        raises  InputError for every name that is no pair of racks
        """
        source, target = self.rows_of(ends)
        every, faults = np.ones((len(self.racks), len(self.racks) + 1)), []  # the last column: target -1
        for name, factor in factors.items():
            pair = self.find_pair(name)
            if pair is None or pair[0] == pair[1]:
                near = did_you_mean(name, self.name_ends(source, target))
                faults.append(f"demand_factors: '{name}' is no pair of racks{near}")
            else:
                every[pair] = factor
        if faults:
            raise InputError(*faults)
        return every[source, target]

    def _require_racks(self, parameter: str, names: Iterable[str]) -> None:
        """Raise InputError for every name of an adjustment that is no rack."""
        faults = [
            f"{parameter}: '{name}' is no rack" + did_you_mean(name, self.places)
            for name in names
            if name not in self.places
        ]
        if faults:
            raise InputError(*faults)

    def report_unknown_ends(self, frame: pd.DataFrame, table: str) -> Iterator[str]:
        """Yield the faults of a table that names unknown racks as source or target."""
        for end in ENDS:
            yield from report_unknown_names(frame, table, end, self.places, "no rack of the network")

    @cached_property
    def places(self) -> pd.Index:
        """Index from names of racks to rows of `racks`."""
        names: pd.Index = pd.Index(self.racks["rack"])
        return names

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """(n,) names of the racks."""
        return self.racks["rack"].to_numpy(object)

    def rows_of(self, frame: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of `racks` that each row of a table names as source and target; -1 for none."""
        source, target = (find_names(self.places, frame[end]) for end in ENDS)
        return source, target

    def name_pairs(
        self, source: NDArray[np.int64], target: NDArray[np.int64]
    ) -> dict[str, pd.api.extensions.ExtensionArray | NDArray[np.object_]]:
        """Return the columns source_rack and target_rack of some pairs of rows of `racks`."""
        names = self.racks["rack"].array
        return {end: names.take(rows) for end, rows in zip(ENDS, (source, target), strict=True)}

    def name_ends(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> list[str]:
        """Return the names of some pairs of rows of `racks`, such as r0->r1; no two have the same."""
        names = [*(_quote(str(name)) for name in self.names), self.any_rack]
        return [f"{names[i]}->{names[j]}" for i, j in zip(source.tolist(), target.tolist(), strict=True)]

    def find_pair(self, name: str) -> tuple[int, int] | None:
        """Return the rows of `racks` of the pair of a name that `name_ends` writes; None for another name."""
        rows = {_quote(str(rack)): row for row, rack in enumerate(self.names)}
        targets = {self.any_rack: -1, **rows} if self.any_rack else rows
        parts = name.split("->")
        for split in range(1, len(parts)):
            source, target = "->".join(parts[:split]), "->".join(parts[split:])
            if source in rows and target in targets:
                return rows[source], targets[target]
        return None

    @cached_property
    def is_failed(self) -> NDArray[np.bool_]:
        """(n,) whether each rack has failed."""
        if "failed" not in self.racks:
            return np.zeros(len(self.racks), dtype=bool)
        return np.asarray(self.racks["failed"].to_numpy(float) > 0, dtype=bool)

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


def _quote(rack: str) -> str:
    """Return a rack's name within the name of a pair: quoted where it could be taken for two."""
    ambiguous = "->" in rack or rack.startswith("'")
    return "'" + rack.replace("'", "''") + "'" if ambiguous else rack


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
