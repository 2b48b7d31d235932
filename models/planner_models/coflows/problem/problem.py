"""The problem of system `coflows`: groups of flows that arrive in time, and the racks they connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

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
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.circuits.problem.racks import END_COLUMNS, ENDS, LINKS, Racks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BITS_PER_MS: Final = 1_000.0
"""Bits in a millisecond at 1 Mbit/s."""
MOST_MS: Final = 1e10  # almost four months
MOST_BYTES: Final = 1e15
MOST_SWITCHES: Final = 64
MOST_WEIGHT: Final = 1e6
LEAST_WEIGHT: Final = 1e-6

RACKS: Final = Table(
    name="racks",
    other_names=("tors", "nodes"),
    about="a rack, and the rates of its links to each circuit switch and to the packet switch, each way",
    columns={"rack": label("name of the rack", other_names=("tor", "node", "name")), **LINKS},
    key=("rack",),
)
COFLOWS: Final = Table(
    name="coflows",
    about="a group of flows of one application; it is complete when its last flow is",
    columns={
        "coflow": label("its name"),
        "arrival_ms": number("time from which its flows can be sent, ms", at_least=0, at_most=MOST_MS),
        "weight": number(
            "what its completion counts in means, beside others; empty: 1", more_than=0, at_most=MOST_WEIGHT,
            least=LEAST_WEIGHT, optional=True, may_be_blank=True, other_names=("importance",),
        ),
        "deadline_ms": number(
            "time from its arrival by which it should be complete, ms; empty: none", more_than=0,
            at_most=MOST_MS, optional=True, may_be_blank=True, other_names=("deadline", "due", "slo"),
        ),
    },
    key=("coflow",),
)  # fmt: skip
FLOWS: Final = Table(
    name="flows",
    about="data that a coflow sends from one rack to another",
    columns={
        "coflow": label("name of its coflow"),
        **END_COLUMNS,
        "bytes": number("amount, bytes", more_than=0, at_most=MOST_BYTES, least=1.0, usual=(1e3, 1e13)),
    },
    key=("coflow", *ENDS),
)
SWITCH: Final = Table(
    name="switch",
    about="the circuit switches, in one row",
    columns={
        "setup_ms": number(
            "time that a port is dark while its circuit is set up, ms; other ports go on",
            at_least=0,
            at_most=MOST_MS,
        ),
        "circuit_switches": number(
            "number of circuit switches; each rack has a link to each",
            at_least=1,
            at_most=MOST_SWITCHES,
            whole=True,
            optional=True,
            default=1.0,
        ),
    },
)
TABLES: Final = (RACKS, COFLOWS, FLOWS, SWITCH)


@dataclass(frozen=True, kw_only=True, eq=False)
class CoflowsInTime(Racks):
    """Coflows that arrive in time, over circuit switches and a packet switch.

    racks    one row a rack: rack, circuit_mbps, packet_mbps, failed?
    coflows  one row a coflow: coflow, arrival_ms, weight?, deadline_ms?
    flows    one row a flow: coflow, source_rack, target_rack, bytes
    switch   one row: setup_ms, circuit_switches?

    InputError with every fault: a value out of range, an unknown rack or coflow, a flow from a rack to
    itself, a coflow without flows, several rows of `switch`.
    """

    racks: pd.DataFrame
    coflows: pd.DataFrame
    flows: pd.DataFrame
    switch: pd.DataFrame

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_flows(), *self._bad_switch()]
        if not faults:
            faults += self._bad_coflows()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> CoflowsInTime:
        """Return the problem in the tables racks, coflows, flows and switch."""
        return cls(**take_tables(TABLES, tables))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of racks, of coflows and of flows."""
        return {"racks": len(self.racks), "coflows": len(self.coflows), "flows": len(self.flows)}

    def scale(
        self,
        factor: float,
        *,
        pairs: Mapping[str, float] | None = None,
        coflows: Mapping[str, float] | None = None,
    ) -> CoflowsInTime:
        """Return the same coflows with `factor` times the bytes, and times those of their pair and coflow.

        Flows with the factor 0 are left out, and coflows without flows.

        pairs    factors by names of pairs, such as r0->r1
        coflows  factors by names of coflows
        raises   InputError for every name that is none, and where no flow remains
        """
        if factor == 1 and not pairs and not coflows:
            return self
        factors = factor * self.pair_factors(pairs or {}, self.flows) * self._coflow_factors(coflows or {})
        is_positive = factors > 0
        if not is_positive.any():
            raise InputError("problem: every flow is left out, one at least must remain")
        flows = self.flows.assign(bytes=self.flows["bytes"] * factors)[is_positive].reset_index(drop=True)
        remains = self.coflows["coflow"].isin(flows["coflow"])
        return replace(self, flows=flows, coflows=self.coflows[remains].reset_index(drop=True))

    def with_switch(
        self, *, setup_ms: float | None = None, circuit_switches: int | None = None
    ) -> CoflowsInTime:
        """Return the same coflows over other circuit switches; None keeps a value."""
        changed = {"setup_ms": setup_ms, "circuit_switches": circuit_switches}
        changes = {name: float(value) for name, value in changed.items() if value is not None}
        return replace(self, switch=self.switch.assign(**changes)) if changes else self

    def speed_up(self, factor: float) -> CoflowsInTime:
        """Return the same coflows arriving `factor` times as fast."""
        if factor == 1:
            return self
        return replace(self, coflows=self.coflows.assign(arrival_ms=self.coflows["arrival_ms"] / factor))

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def coflow_names(self) -> NDArray[np.object_]:
        """(C,) names of the coflows."""
        return self.coflows["coflow"].to_numpy(object)

    @cached_property
    def arrival_ms(self) -> Floats:
        """(C,) times at which coflows arrive."""
        return self.coflows["arrival_ms"].to_numpy(float)

    @cached_property
    def weight(self) -> Floats:
        """(C,) weights of coflows; 1 where the table has none."""
        if "weight" not in self.coflows:
            return np.ones(len(self.coflows))
        return self.coflows["weight"].fillna(1.0).to_numpy(float)

    @cached_property
    def relative_weight(self) -> Floats:
        """(C,) weights over the mean weight of coflows with working racks."""
        works = self.can_complete
        mean = float(self.weight[works].mean()) if works.any() else 1.0
        return self.weight / mean

    @cached_property
    def due_ms(self) -> Floats:
        """(C,) times by which coflows should be complete, from time 0; infinite without a deadline."""
        if "deadline_ms" not in self.coflows:
            return np.full(len(self.coflows), np.inf)
        deadline = self.coflows["deadline_ms"].to_numpy(float)
        return np.where(np.isnan(deadline), np.inf, self.arrival_ms + deadline)

    @cached_property
    def has_deadlines(self) -> bool:
        """True where any coflow has a deadline."""
        return bool(np.isfinite(self.due_ms).any())

    @cached_property
    def coflow(self) -> Ints:
        """(F,) row of `coflows` of each flow."""
        rows = pd.Index(self.coflows["coflow"]).get_indexer(pd.Index(self.flows["coflow"]))
        return np.asarray(rows, dtype=np.int64)

    @cached_property
    def source(self) -> Ints:
        """(F,) rows of `racks` that flows come from."""
        return self.rows_of(self.flows)[0]

    @cached_property
    def target(self) -> Ints:
        """(F,) rows of `racks` that flows go to."""
        return self.rows_of(self.flows)[1]

    @cached_property
    def bits(self) -> Floats:
        """(F,) amounts of flows."""
        return self.flows["bytes"].to_numpy(float) * 8

    @cached_property
    def circuit_rate(self) -> Floats:
        """(F,) rate of a circuit for each flow, bits/ms."""
        rate: Floats = self.circuit_mbps[self.source, self.target] * BITS_PER_MS
        return rate

    @cached_property
    def packet_rate(self) -> Floats:
        """(n,) rate of each rack's link to the packet switch, bits/ms."""
        return self.packet_mbps * BITS_PER_MS

    @cached_property
    def can_complete(self) -> NDArray[np.bool_]:
        """(C,) whether all racks of each coflow work."""
        cut_off = self.is_failed[self.source] | self.is_failed[self.target]
        lost = np.bincount(self.coflow, weights=cut_off, minlength=len(self.coflows))
        return np.asarray(lost == 0, dtype=bool)

    @cached_property
    def setup_ms(self) -> float:
        """Time that a port is dark while its circuit is set up."""
        return float(self.switch["setup_ms"].iloc[0])

    @cached_property
    def switches(self) -> int:
        """Number of circuit switches."""
        return int(self.switch["circuit_switches"].iloc[0])

    @property
    def has_packet_switch(self) -> bool:
        """True where any rack has a link to the packet switch."""
        return bool((self.packet_mbps > 0).any())

    # --- validation -----------------------------------------------------------------------

    def _coflow_factors(self, factors: Mapping[str, float]) -> Floats:
        """Return (F,) the factor of each flow's coflow, 1 where there is none."""
        coflow_index = pd.Index(self.coflows["coflow"])
        frame = pd.DataFrame({"coflow": list(factors)})
        if faults := report_unknown_names(frame, "coflow_factors", "coflow", coflow_index, "no coflow"):
            raise InputError(*faults)
        every = np.ones(len(self.coflows))
        every[coflow_index.get_indexer(pd.Index(list(factors)))] = list(factors.values())
        return every[self.coflow]

    def _bad_flows(self) -> list[str]:
        frame, where = self.flows, file_name(self.flows, "flows")
        faults = [
            *report_unknown_names(frame, "flows", "coflow", pd.Index(self.coflows["coflow"]), "no coflow"),
            *self.report_unknown_ends(frame, "flows"),
        ]
        if faults:
            return faults
        loops = np.flatnonzero(self.source == self.target)
        texts = [
            f"{row_name(frame, 'flows', int(row))}: source_rack and target_rack are both "
            f"'{frame['source_rack'].iloc[row]}', must differ"
            for row in loops[:5]
        ]
        return shorten_faults(texts, where, "from a rack to itself", count=len(loops))

    def _bad_coflows(self) -> list[str]:
        frame, where = self.coflows, file_name(self.coflows, "coflows")
        count = np.bincount(self.coflow, minlength=len(frame))
        empty = np.flatnonzero(count == 0)
        texts = [
            f"{row_name(frame, 'coflows', int(row))}: coflow '{frame['coflow'].iloc[row]}' has no flows, "
            "must have one at least"
            for row in empty[:5]
        ]
        return shorten_faults(texts, where, "without flows", count=len(empty))

    def _bad_switch(self) -> Iterator[str]:
        if len(self.switch) != 1:
            yield f"{file_name(self.switch, 'switch')}: has {len(self.switch)} rows, must have one"
