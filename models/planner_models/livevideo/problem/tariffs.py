"""Bills of links: increases of a month's bill by a window, and caps on the traffic of several links.

A bill is for links together, such as those to one provider. It is a percentile of a month's samples times a
price. The month's other samples, measured or forecast, are table `samples`; the plan stands for one window of
the month, or for several with the same load, such as those of every evening. What they add then depends on
that load alone: nothing up to the level that the others set, a price per Mbit/s up to a later sample, and
nothing beyond it, where they are among the windows that are not billed.

source  Mukerjee 2018, 4.5: "95-percent-rule" billing, and a cap on total externally-bound traffic
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.networks.percentile_bills import levels_of_next

DEFAULT_PERCENTILE = 95.0


class BilledTables(Protocol):
    """Tables that tariffs are read from."""

    @property
    def links(self) -> pd.DataFrame: ...
    @property
    def bills(self) -> pd.DataFrame: ...
    @property
    def samples(self) -> pd.DataFrame: ...


class Tariffs(NamedTuple):
    """Bills of links, (B,) arrays.

    names     of the bills
    of_link   (L,) bill of each link, -1 for none
    price     of a billed Mbit/s
    low       level that is billed if the window carries nothing, Mbit/s: load up to it adds nothing
    high      level from which the window is not billed, Mbit/s; infinite where every window counts
    cap_mbps  largest load of the links together, infinite for none
    """

    names: list[str]
    of_link: Ints
    price: Floats
    low: Floats
    high: Floats
    cap_mbps: Floats

    def load(self, load_mbps: Floats) -> Floats:
        """Return the load of each bill's links, (B,), Mbit/s, of loads of links (L,)."""
        billed = self.of_link >= 0
        return np.bincount(self.of_link[billed], load_mbps[billed], minlength=len(self.names)).astype(float)

    def added(self, load: Floats) -> Floats:
        """Return the increase of each bill by the window, (B,), for a load of its links (B,)."""
        return np.asarray(self.price * (np.clip(load, self.low, self.high) - self.low))

    def total(self, load: Floats) -> Floats:
        """Return the bill of the month with the window, (B,), for a load of its links (B,)."""
        return np.asarray(self.price * np.clip(load, self.low, self.high))


def read_tariffs(problem: BilledTables) -> Tariffs:
    """Return the bills of a problem's links."""
    bills, links = problem.bills, problem.links
    names = bills["bill"].astype(str).tolist() if len(bills) else []
    number = {name: row for row, name in enumerate(names)}
    of_link = np.full(len(links), -1, dtype=np.int64)
    if "bill" in links:
        of_link = np.array(
            [number.get(name, -1) for name in links["bill"].fillna("").astype(str)], dtype=np.int64
        )
    share = _column(bills, "percentile", DEFAULT_PERCENTILE) / 100
    owner = problem.samples["bill"].astype(str).to_numpy() if len(problem.samples) else np.zeros(0, dtype=str)
    load = problem.samples["load_mbps"].to_numpy(float) if len(problem.samples) else np.zeros(0)
    times = _column(bills, "windows", 1.0).astype(np.int64)
    levels = [
        levels_of_next(load[owner == name], each, times=count)
        for name, each, count in zip(names, share.tolist(), times.tolist(), strict=True)
    ]
    low, high = np.array(levels, dtype=float).reshape(-1, 2).T
    committed = _column(bills, "commitment_mbps", 0.0)
    return Tariffs(
        names=names,
        of_link=of_link,
        price=_column(bills, "price_per_mbps", 0.0),
        low=np.maximum(low, committed),
        high=np.maximum(high, committed),
        cap_mbps=_column(bills, "cap_mbps", np.inf),
    )


def _column(bills: pd.DataFrame, name: str, default: float) -> Floats:
    """Return a column of the bills, (B,), with a value where it has none."""
    if not len(bills) or name not in bills:
        return np.full(len(bills), default)
    values = bills[name].to_numpy(float)
    return np.where(np.isnan(values), default, values)
