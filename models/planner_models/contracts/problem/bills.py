"""Bills of a month: contracts that are billed together, and their metered traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.tables import describe_rows, file_name, row_name

if TYPE_CHECKING:
    import pandas as pd

OUT, IN, BOTH, LARGER = "out", "in", "in + out", "larger"
METERED: Final = (OUT, IN, BOTH, LARGER)
TERMS: Final = (
    *("billing", "metered", "price_per_mbps", "burst_price_per_mbps", "commitment_mbps", "credit"),
    *("first_window", "last_window"),
)
"""Columns of `contracts` that are terms of a bill, not of a port: equal in all rows of a bill."""


class BilledMonth(Protocol):
    """What bills need of a problem of `contracts`; its fields are explained there."""

    @property
    def contracts(self) -> pd.DataFrame: ...
    @property
    def traffic(self) -> pd.DataFrame: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def regions(self) -> Sequence[str]: ...
    @property
    def region(self) -> Ints: ...
    @property
    def bill(self) -> Ints: ...
    @property
    def bills(self) -> Sequence[str]: ...
    @property
    def metered(self) -> Sequence[str]: ...
    @property
    def traffic_mbps(self) -> Floats: ...
    @property
    def in_ratio(self) -> Floats: ...


class Meter(NamedTuple):
    """One series of samples of a bill: traffic out, in, or both together.

    bill  position of the bill
    kind  `out`, `in` or `in + out`
    """

    bill: int
    kind: str


def find_bills(problem: BilledMonth) -> tuple[Ints, list[str]]:
    """Return the bill of each contract, (N,), and the names of the bills, by their first rows."""
    contracts = problem.contracts
    if "bill" not in contracts:
        return np.arange(len(contracts)), list(problem.names)
    keys: dict[tuple[str, str], int] = {}
    names: list[str] = []
    rows = []
    for row, (cdn, bill) in enumerate(
        zip(contracts["cdn"].astype(str), contracts["bill"].astype(str), strict=True)
    ):
        key = (cdn, bill) if bill else ("", str(row))
        if key not in keys:
            keys[key] = len(names)
            names.append(f"{cdn}, bill {bill}" if bill else problem.names[row])
        rows.append(keys[key])
    return np.array(rows, dtype=np.int64), names


def find_meters(problem: BilledMonth) -> list[Meter]:
    """Return the meters of all bills: two where the larger of in and out is billed."""
    first = np.unique(problem.bill, return_index=True)[1]
    meters = []
    for position, row in enumerate(first.tolist()):
        metered = problem.metered[row]
        kinds = (OUT, IN) if metered == LARGER else (metered,)
        meters += [Meter(position, kind) for kind in kinds]
    return meters


def meter_factor(problem: BilledMonth, kind: str) -> Floats:
    """Return the metered traffic of a Mbit/s out, by window and region, (W, R)."""
    if kind == OUT:
        return np.ones_like(problem.traffic_mbps)
    return problem.in_ratio + (kind == BOTH)


def find_parts(problem: BilledMonth) -> list[Ints]:
    """Return the regions that are planned together: those with a common bill; each region is in one part."""
    label = np.arange(len(problem.regions))
    for bill in range(len(problem.bills)):
        together = np.unique(label[problem.region[problem.bill == bill]])
        label[np.isin(label, together)] = together.min(initial=len(label))
    return [np.flatnonzero(label == value) for value in np.unique(label)]


def find_faults_of_bills(problem: BilledMonth) -> Iterator[str]:
    """Yield the faults of bills: terms that differ in rows of one bill, and directions without traffic."""
    contracts, traffic = problem.contracts, problem.traffic
    where = file_name(contracts, "contracts")
    _, first, position = np.unique(problem.bill, return_index=True, return_inverse=True)
    first_row = first[position]
    for name in TERMS:
        if name not in contracts or (first_row == np.arange(len(contracts))).all():
            continue
        yield from describe_rows(
            _differing(contracts[name], first_row),
            partial(_say_difference, contracts, name, first_row),
            where,
            f"with another {name} than their bill",
        )
    if "traffic_in_mbps" not in traffic:
        yield from describe_rows(
            [row for row, metered in enumerate(problem.metered) if metered != OUT],
            lambda row: (
                f"{row_name(contracts, 'contracts', row)}: metered is '{problem.metered[row]}', but "
                f"{file_name(traffic, 'traffic')} has no column traffic_in_mbps"
            ),
            where,
            "without traffic to meter",
        )
        return
    no_way = (traffic["traffic_in_mbps"].to_numpy(float) > 0) & (traffic["traffic_mbps"].to_numpy(float) <= 0)
    yield from describe_rows(
        np.flatnonzero(no_way),
        lambda row: (
            f"{row_name(traffic, 'traffic', row)}: traffic_mbps is 0, must be greater where traffic_in_mbps "
            "is not 0, as traffic in follows the CDN that carries traffic out"
        ),
        file_name(traffic, "traffic"),
        "with traffic in alone",
    )


def _differing(column: pd.Series, first_row: Ints) -> list[int]:
    """Return the rows with other values than the first rows (N,) of their bills."""
    values = column.astype(object).where(column.notna(), None).tolist()
    return [row for row, start in enumerate(first_row.tolist()) if values[row] != values[start]]


def _say_difference(contracts: pd.DataFrame, name: str, first_row: Ints, row: int) -> str:
    """Return the fault of a row with another term than the first row of its bill."""
    start = int(first_row[row])
    first, bill = row_name(contracts, "contracts", start), contracts["bill"].iloc[row]
    return (
        f"{row_name(contracts, 'contracts', row)}: {name} is {contracts[name].iloc[row]}, must be "
        f"{contracts[name].iloc[start]} as in {first}, which is on the same bill '{bill}'"
    )
