"""The problem of system `circuitflows`: flows in time between racks that two switches connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.table import Table, label, number
from planner.contract.tables import (
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import (
    END_COLUMNS,
    LEAST_US,
    LINKS,
    MOST_MBPS,
    MOST_US,
    Racks,
    find_misfits,
)

ANY: Final = "any"
"""Target of a flow that any rack but its own may take: the plan places it."""
NONE: Final = "none"
"""The value of `after` of a flow that waits for no other."""


MOST_HORIZON_US: Final = 1e10  # almost three hours
MOST_WEEKS: Final = 10_000_000  # of a run
MOST_BYTES: Final = 1e15
MOST_COUNT: Final = 1_000_000  # of hosts in a rack, and of packets that a place holds

RACKS: Final = Table(
    name="racks",
    other_names=("tors", "nodes"),
    about="a rack, and the rates of its links, each way",
    columns={
        "rack": label("name", other_names=("tor", "node", "name")),
        "hosts": number("hosts in it", at_least=1, at_most=MOST_COUNT, whole=True),
        **LINKS,
    },
    key=("rack",),
)
FLOWS: Final = Table(
    name="flows",
    about="data that an application sends from a host to another rack, over one TCP connection",
    columns={
        "flow": label("name"),
        **END_COLUMNS,
        "target_rack": label("rack that receives; 'any': the plan chooses one"),
        "host": number(
            "number of the host in its rack that sends, from 1", at_least=1, at_most=MOST_COUNT, whole=True
        ),
        "start_us": number(
            "start, us; of a flow that waits: the earliest start", at_least=0, at_most=MOST_US
        ),
        "bytes": number("size, bytes", more_than=0, at_most=MOST_BYTES, least=1e-3),
        "after": label("flow that must end first, or 'none'"),
    },
    key=("flow",),
)
NETWORK: Final = Table(
    name="network",
    about="parameters of the whole network, in one row",
    columns={
        "horizon_us": number("length of the run, us", more_than=0, at_most=MOST_HORIZON_US, least=LEAST_US),
        "week_us": number(
            "time from one schedule to the next, us", more_than=0, at_most=MOST_US, least=LEAST_US
        ),
        "night_us": number(
            "reconfiguration time, in which all circuits are dark, us", at_least=0, at_most=MOST_US
        ),
        "shortest_day_us": number("shortest time that circuits stay up, us", at_least=0, at_most=MOST_US),
        "host_mbps": number("rate of a host's link, Mbit/s; 0: no limit", at_least=0, at_most=MOST_MBPS),
        "packet_bytes": number("size of a packet, bytes", more_than=0, at_most=1e9, least=1.0),
        "packet_delay_us": number(
            "delay of a link to or from the packet switch, us", at_least=0, at_most=1e9
        ),
        "circuit_delay_us": number("delay of a circuit, us", at_least=0, at_most=1e9),
        "reply_bytes": number(
            "size of a reply, bytes; 0: replies go around the switches and none is lost",
            at_least=0,
            at_most=1e9,
        ),
        "reply_packets": number(
            "packets of a flow that one reply is for", at_least=1, at_most=MOST_COUNT, whole=True
        ),
        "inside_packets": number(
            "packets of a pair of racks that the packet switch holds",
            at_least=1,
            at_most=MOST_COUNT,
            whole=True,
        ),
        "least_timeout_us": number(
            "shortest timeout of TCP, us", more_than=0, at_most=MOST_US, least=LEAST_US
        ),
        "big_bytes": number("flows of so many bytes or more are called big", more_than=0, at_most=1e18),
        "life_us": number(
            "time after its start at which a flow that has not ended is killed, us; 0: never",
            at_least=0,
            at_most=MOST_US,
            optional=True,
            default=0.0,
        ),
        "buffer_windows": number(
            "data that a host's TCP takes from an application ahead, in the flow's largest window; 0: all",
            at_least=0,
            at_most=1e6,
            optional=True,
            default=0.0,
        ),
        "buffer_bytes": number(
            "most of it, bytes; 0: no limit", at_least=0, at_most=MOST_BYTES, optional=True, default=0.0
        ),
        "look_us": number(
            "time between looks of an idle host for flows that start, us; 0: it sees them at once",
            at_least=0,
            at_most=MOST_US,
            optional=True,
            default=0.0,
        ),
        "batch_packets": number(
            "new packets of a flow that a host hands to its link at once",
            at_least=1,
            at_most=MOST_COUNT,
            whole=True,
            optional=True,
            default=1.0,
        ),
    },
)
TABLES: Final = (RACKS, FLOWS, NETWORK)


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Quality of the reports of demand that a scheduler gets; by default immediate and exact.

    age_us             age of a report when it arrives; before the first one nothing is known
    noise              standard deviation of the logarithm of each amount
    granularity_bytes  amounts are in whole steps of this, of which any part counts; 0: exact
    seed               of the noise
    """

    age_us: float = 0.0
    noise: float = 0.0
    granularity_bytes: float = 0.0
    seed: int = 0

    @property
    def are_exact(self) -> bool:
        """Return whether reports are immediate and exact."""
        return not (self.age_us or self.noise or self.granularity_bytes)


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowsInTime(Racks):
    """Flows over a hybrid network, observed from time 0 to a horizon. Those within a rack cross no switch.

    racks    one row a rack: rack, hosts, circuit_mbps, packet_mbps
    flows    one row a flow: flow, source_rack, target_rack, host, start_us, bytes, after
    network  one row, see NETWORK
    reports  of the demand; an observed problem differs in these alone, in truth they are exact

    A rate of 1 Mbit/s is 1 bit/us. InputError with every fault: a value out of range, an unknown rack, a
    host that its rack has not, a flow that waits for itself or for one that is not there, a night or a
    shortest day that does not fit the week.
    """

    any_rack: ClassVar[str] = ANY

    racks: pd.DataFrame
    flows: pd.DataFrame
    network: pd.DataFrame
    reports: Reports = Reports()

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_flows(), *self._bad_network()]
        if not faults:
            faults += self._bad_waits()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> FlowsInTime:
        """Return the problem in the tables racks, flows and network."""
        return cls(**take_tables(TABLES, tables))  # type: ignore[arg-type]

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of racks, and of flows."""
        return {"racks": len(self.racks), "flows": len(self.flows)}

    def scale(self, factor: float, *, pairs: Mapping[str, float] | None = None) -> FlowsInTime:
        """Return the same flows with `factor` times the bytes, and times that of their pair of racks.

        A pair with the factor 0 is left out; flows that wait for its flows wait for what those waited for.

        pairs   factors by names of pairs, such as r0->r1 or r0->any
        raises  InputError for every name that is none, and where no flow remains
        """
        if factor == 1 and not pairs:
            return self
        factors = factor * self.pair_factors(pairs or {}, self.flows)
        flows, is_positive = self.flows.assign(bytes=self.flows["bytes"] * factors), factors > 0
        if not is_positive.any():
            raise InputError("demand_factors: every flow is left out, one at least must remain")
        if not is_positive.all():
            before = self.before
            while (skipped := (before >= 0) & ~is_positive[before]).any():
                before = np.where(skipped, before[before], before)
            names = self.flows["flow"].to_numpy(object)
            after = np.where(before >= 0, names[before], NONE)
            flows = flows.assign(after=after)[is_positive].reset_index(drop=True)
        return replace(self, flows=flows)

    def with_night(self, night_us: float | None) -> FlowsInTime:
        """Return the same flows over circuits that take so long to change; None keeps the value."""
        if night_us is None:
            return self
        return replace(self, network=self.network.assign(night_us=night_us))

    # --- as arrays ------------------------------------------------------------------------

    def can_send(self, target: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (F,) the flows with working racks; `target` has their rows of `racks`, or -1."""
        works = np.append(~self.is_failed, True)  # the last one: any rack
        return np.asarray(works[self.source] & works[target], dtype=bool)

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """(F,) rows of `racks` that flows come from."""
        return self.rows_of(self.flows)[0]

    @cached_property
    def target(self) -> NDArray[np.int64]:
        """(F,) rows of `racks` that flows go to; -1 where the plan chooses."""
        return self.rows_of(self.flows)[1]

    @cached_property
    def host(self) -> NDArray[np.int64]:
        """(F,) the hosts that send, counted over all racks from 0."""
        first = np.concatenate([[0], np.cumsum(self.racks["hosts"].to_numpy(int))[:-1]])
        within = self.flows["host"].to_numpy(int) - 1
        return np.asarray(first[self.source] + within, dtype=np.int64)

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """(F,) the flow that each waits for, or -1."""
        before = pd.Index(self.flows["flow"]).get_indexer(pd.Index(self.flows["after"]))
        return np.asarray(before, dtype=np.int64)

    @cached_property
    def packets(self) -> NDArray[np.int64]:
        """(F,) packets of each flow; the last counts as a whole one."""
        count = np.ceil(self.flows["bytes"].to_numpy(float) / self.of("packet_bytes"))
        return np.asarray(count, dtype=np.int64)

    @cached_property
    def big(self) -> NDArray[np.bool_]:
        """(F,) the big flows."""
        return self.flows["bytes"].to_numpy(float) >= self.of("big_bytes")

    def of(self, name: str) -> float:
        """Return a value of the table `network`."""
        return float(self.network[name].iloc[0])

    @cached_property
    def week(self) -> Circuits:
        """One week of this network without demand, for schedulers of traffic for circuits alone."""
        switch = {"night_us": "night_us", "window_us": "week_us", "shortest_day_us": "shortest_day_us"}
        return Circuits(
            racks=self.racks[["rack", "circuit_mbps"]].assign(packet_mbps=0.0),
            demands=pd.DataFrame({"source_rack": [], "target_rack": [], "bits": []}),
            switch=pd.DataFrame({name: [self.of(column)] for name, column in switch.items()}),
        )

    # --- validation -----------------------------------------------------------------------

    def _bad_flows(self) -> list[str]:
        frame, where = self.flows, file_name(self.flows, "flows")
        faults = report_unknown_names(frame, "flows", "source_rack", self.places, "no rack of the network")
        names = [*self.places, ANY]
        faults += report_unknown_names(frame, "flows", "target_rack", names, "no rack of the network")
        if faults:
            return faults
        source, host = frame["source_rack"].tolist(), frame["host"].to_numpy(float)
        there = self.racks["hosts"].to_numpy(float)[self.source]
        absent = np.flatnonzero(host > there)
        texts = [f"host is {host[row]:g}, rack '{source[row]}' has {there[row]:g}" for row in absent[:5]]
        return faults + _list_faults(frame, absent, texts, "of hosts that are not there", where)

    def _bad_network(self) -> Iterator[str]:
        if ANY in self.places:
            yield f"{file_name(self.racks, 'racks')}: a rack is called '{ANY}', which means any rack"
        where = file_name(self.network, "network")
        if len(self.network) != 1:
            yield f"{where}: has {len(self.network)} rows, must have one"
        else:
            night, shortest, week = (self.of(f"{name}_us") for name in ("night", "shortest_day", "week"))
            yield from find_misfits(where, night, shortest, "week_us", week)
            weeks = self.of("horizon_us") / week
            if weeks > MOST_WEEKS:
                yield (
                    f"{where}: week_us is {week:g}: the run has {weeks:,.0f} weeks, must have at most "
                    f"{MOST_WEEKS:,}"
                )

    def _bad_waits(self) -> list[str]:
        frame, where = self.flows, file_name(self.flows, "flows")
        after = frame["after"].tolist()
        lost = np.flatnonzero((self.before < 0) & (frame["after"] != NONE).to_numpy())
        names = frame["flow"].tolist()
        texts = [f"after '{after[row]}' is no flow" + did_you_mean(after[row], names) for row in lost[:5]]
        if faults := _list_faults(frame, lost, texts, "with an unknown after", where):
            return faults
        # pointers that look twice as far back each time end at a flow that waits for none, or never
        behind = self.before
        for _ in range(len(behind).bit_length() + 1):
            behind = np.where(behind >= 0, behind[np.maximum(behind, 0)], -1)
        stuck = np.flatnonzero(behind >= 0)
        texts = ["waits, by `after`, for itself"] * len(stuck[:5])
        return _list_faults(frame, stuck, texts, "that wait for themselves", where)


def _list_faults(
    frame: pd.DataFrame, rows: NDArray[np.int64], texts: Sequence[str], what: str, where: str
) -> list[str]:
    """Return the faults of some rows."""
    faults = [f"{row_name(frame, 'flows', int(row))}: {text}" for row, text in zip(rows, texts, strict=False)]
    return shorten_faults(faults, where, what, count=len(rows))
