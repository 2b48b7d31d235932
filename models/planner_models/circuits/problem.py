"""The problem of system `circuits`: demand between racks, a packet switch and a circuit switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError
from planner.tables import Table, adopt, few, file_name, label, number, row_name, strangers

RACKS: Final = Table(
    name="racks",
    about="a rack, and how fast its links to the two switches are, each way",
    columns={
        "rack": label("its name"),
        "circuit_mbps": number("rate of its link to the circuit switch, Mbit/s", more_than=0),
        "packet_mbps": number("rate of its link to the packet switch, Mbit/s", at_least=0),
    },
    key=("rack",),
)
DEMANDS: Final = Table(
    name="demands",
    about="data that wants to get from one rack to another",
    columns={
        "source_rack": label("rack where it is"),
        "target_rack": label("rack where it goes"),
        "bits": number("how much, bits", at_least=0),
    },
    key=("source_rack", "target_rack"),
    may_be_empty=True,
)
SWITCH: Final = Table(
    name="switch",
    about="the circuit switch, in one row",
    columns={
        "night_us": number("time to change circuits, when all are dark, us", at_least=0),
        "window_us": number(
            "the week that the schedule must fit, us; absent: all demand is served, in least time",
            more_than=0,
            optional=True,
        ),
        "shortest_day_us": number(
            "least time that circuits stay up, us", at_least=0, optional=True, default=0.0
        ),
    },
)
TABLES: Final = (RACKS, DEMANDS, SWITCH)


@dataclass(frozen=True, kw_only=True, eq=False)
class Circuits:
    """Demand between n racks, which a packet switch and a circuit switch can carry.

    racks    one row a rack: rack, circuit_mbps, packet_mbps
    demands  one row a pair: source_rack, target_rack, bits
    switch   one row: night_us, window_us?, shortest_day_us; without a window all demand is to be
             served in the least time, with one as much as fits

    A rate of 1 Mbit/s is 1 bit/us. InputError with every fault: a value out of range, an unknown
    rack, demand from a rack to itself, several rows of `switch`, a night or a shortest day that
    does not fit the window.
    """

    racks: pd.DataFrame
    demands: pd.DataFrame
    switch: pd.DataFrame

    def __post_init__(self) -> None:
        faults = adopt(self, TABLES)
        if not faults:
            faults += [*self._bad_pairs(), *self._bad_times()]
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Circuits:
        """The problem in the tables racks, demands and switch."""
        return cls(racks=tables["racks"], demands=tables["demands"], switch=tables["switch"])

    @classmethod
    def from_matrix(
        cls,
        bits: NDArray[np.float64],
        *,
        circuit_mbps: float,
        packet_mbps: float,
        night_us: float,
        window_us: float | None,
        shortest_day_us: float = 0.0,
        where: str = "demand matrix",
    ) -> Circuits:
        """The problem of an (n, n) matrix of bits from row to column, with racks r0, r1, ...

        raises  InputError for a matrix that is not square, or holds a number that is not finite,
                negative, or on its diagonal; the line names its row and column, from 1
        """
        require_matrix(bits, where)
        names = np.array([f"r{i}" for i in range(len(bits))])
        source, target = np.nonzero(bits)
        switch = {"night_us": [night_us], "shortest_day_us": [shortest_day_us]}
        if window_us is not None:
            switch["window_us"] = [window_us]
        return cls(
            racks=pd.DataFrame({"rack": names, "circuit_mbps": circuit_mbps, "packet_mbps": packet_mbps}),
            demands=pd.DataFrame(
                {"source_rack": names[source], "target_rack": names[target], "bits": bits[source, target]}
            ),
            switch=pd.DataFrame(switch),
        )

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        return {table.name: getattr(self, table.name).reset_index(drop=True) for table in TABLES}

    def size(self) -> dict[str, int]:
        """Number of racks, and of pairs with demand."""
        return {"racks": len(self.racks), "pairs": int((self.bits > 0).sum())}

    def scaled(self, factor: float) -> Circuits:
        """The same network with every demand times `factor`."""
        return self if factor == 1 else self.with_bits(self.demands["bits"].to_numpy(float) * factor)

    def with_bits(self, bits: NDArray[np.float64]) -> Circuits:
        """The same network and pairs with other demands, one for each row of `demands`."""
        return replace(self, demands=self.demands.assign(bits=bits))

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def places(self) -> pd.Index:
        """Turns names of racks into rows of `racks`."""
        places: pd.Index = pd.Index(self.racks["rack"])
        return places

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """(n,) names of the racks."""
        return self.racks["rack"].to_numpy(object)

    @cached_property
    def bits(self) -> NDArray[np.float64]:
        """(n, n) demand from row to column, bits."""
        matrix = np.zeros((len(self.racks), len(self.racks)))
        source = self.places.get_indexer(pd.Index(self.demands["source_rack"]))
        target = self.places.get_indexer(pd.Index(self.demands["target_rack"]))
        matrix[source, target] = self.demands["bits"].to_numpy(float)
        return matrix

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

    @property
    def night_us(self) -> float:
        return float(self.switch["night_us"].iloc[0])

    @property
    def shortest_day_us(self) -> float:
        return float(self.switch["shortest_day_us"].iloc[0])

    @property
    def window_us(self) -> float | None:
        """The week; None where all demand is to be served however long it takes."""
        return float(self.switch["window_us"].iloc[0]) if "window_us" in self.switch else None

    # --- validation -----------------------------------------------------------------------

    def _bad_pairs(self) -> Iterator[str]:
        frame = self.demands
        for column in ("source_rack", "target_rack"):
            yield from strangers(frame, "demands", column, self.places, "no rack of the network")
        loops = np.flatnonzero(frame["source_rack"].to_numpy() == frame["target_rack"].to_numpy())
        faults = [
            f"{row_name(frame, 'demands', row)}: source_rack and target_rack are both "
            f"'{frame['source_rack'].iloc[row]}', must differ"
            for row in loops.tolist()
        ]
        yield from few(faults, file_name(frame, "demands"), "from a rack to itself")

    def _bad_times(self) -> Iterator[str]:
        where = file_name(self.switch, "switch")
        if len(self.switch) != 1:
            yield f"{where}: has {len(self.switch)} rows, must have one"
            return
        window = self.window_us
        if window is None:
            return
        if self.night_us >= window:
            yield f"{where}: night_us is {self.night_us:g}, must be less than window_us, {window:g}"
        elif self.night_us + self.shortest_day_us > window:
            yield (
                f"{where}: shortest_day_us is {self.shortest_day_us:g}, must with the night of "
                f"{self.night_us:g} fit window_us, {window:g}"
            )


def require_matrix(bits: NDArray[np.float64], where: str) -> None:
    """InputError unless `bits` is a square matrix of finite numbers, none negative, none to itself."""
    if bits.ndim != 2 or bits.shape[0] != bits.shape[1] or not len(bits):
        raise InputError(f"{where}: has shape {bits.shape}, must be square")
    rules = (
        (~np.isfinite(bits), "must be a finite number"),
        (bits < 0, "must be at least 0"),
        ((bits != 0) & np.eye(len(bits), dtype=bool), "must be 0: a rack sends nothing to itself"),
    )
    faults = [
        f"{where} row {row + 1} column {column + 1}: {bits[row, column]:g}, {rule}"
        for broken, rule in rules
        for row, column in np.argwhere(broken).tolist()
    ]
    if faults:
        raise InputError(*few(faults, where, "with a number that cannot be"))
