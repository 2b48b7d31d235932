"""Failure rates of sites from incidents, with exact intervals of Poisson counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.periods import UnclearTimes, read_times
from planner.contract.table import Table, label
from planner.contract.tables import shorten_faults
from planner.errors import InputError, did_you_mean
from planner.io.table_files import read_table

INCIDENTS: Final = Table(
    name="incidents",
    other_names=("outages",),
    about="an outage of a site: when it began, and when it ended",
    columns={
        "site": label("site that was down"),
        "start": label(
            "beginning: a date and time, or s after some time",
            other_names=("start_s", "began", "started_at", "start time", "from"),
        ),
        "end": label(
            "end: a date and time, or s after the same time",
            other_names=("end_s", "ended", "resolved_at", "end time", "to"),
        ),
    },
    may_be_empty=True,
)
LEVEL: Final = 0.95
Which = Literal["mean", "low", "high"]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Failures of a site of a kind in a month, with an interval at 95%, and the mean time to repair, s.

    count  incidents behind it
    """

    count: int
    mean: float
    low: float
    high: float
    repair_s: float

    def value(self, which: Which) -> float:
        """Return the mean, or an end of the interval."""
        return {"mean": self.mean, "low": self.low, "high": self.high}[which]


def poisson_rate(count: int, site_months: float) -> tuple[float, float, float]:
    """Return the rate in a month, and the ends of its exact interval at 95% (Garwood 1936)."""
    from scipy.stats import chi2

    tail = (1 - LEVEL) / 2
    low = 0.0 if count == 0 else float(chi2.ppf(tail, 2 * count)) / 2
    high = float(chi2.ppf(1 - tail, 2 * count + 2)) / 2
    return count / site_months, low / site_months, high / site_months


def read_incidents(path: Path, kinds: dict[str, str], months: float) -> dict[str, Rate]:
    """Return the rate of each kind of sites with incidents, over all its sites.

    kinds   kind by site
    months  length of the observation
    raises  InputError for unknown sites, times that are none, and an end before its start
    """
    return rates_by_kind(read_outages(path, kinds), kinds, months)


def read_outages(path: Path, sites: Collection[str]) -> pd.DataFrame:
    """Return the incidents of a file: site, start, end, and both as start_s and end_s.

    raises  InputError for unknown sites, times that are none, and an end before its start
    """
    frame = read_table(INCIDENTS, path)
    texts = pd.concat([frame["start"], frame["end"]], ignore_index=True)
    times = read_seconds(texts, path.name)
    seconds = frame.assign(start_s=times[: len(frame)], end_s=times[len(frame) :])
    faults = []
    for row, name in enumerate(frame["site"].astype(str)):
        where = f"{path.name} row {row + 1}"
        if name not in sites:
            faults.append(f"{where}: '{name}' is no site" + did_you_mean(name, sites))
        if seconds["end_s"].iloc[row] < seconds["start_s"].iloc[row]:
            end, start = frame["end"].iloc[row], frame["start"].iloc[row]
            faults.append(f"{where}: end is {end}, must be at least the start, {start}")
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "with such a fault"))
    return seconds


def read_seconds(texts: pd.Series, file: str) -> Floats:
    """Return times as seconds: numbers as they are, dates and times from the first of them on.

    raises  InputError for the first one that is neither, or below 0, and where both occur
    """
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    is_number = np.isfinite(numbers)
    if is_number.all():
        if len(numbers) and numbers.min() < 0:
            raise InputError(f"{file}: a time is {numbers.min():g}, must be at least 0")
        return numbers
    if is_number.any():
        row = int(np.flatnonzero(~is_number)[0])
        raise InputError(
            f"{file}: '{texts.iloc[row]}' and '{texts[is_number].iloc[0]}' are times of two kinds; write "
            "dates and times, or seconds"
        )
    try:
        times = read_times(texts)
    except UnclearTimes as error:
        raise InputError(f"{file}: {error}") from None
    return np.asarray((times - times.min()).dt.total_seconds().to_numpy(float))


def rates_by_kind(frame: pd.DataFrame, kinds: dict[str, str], months: float) -> dict[str, Rate]:
    """Return the rate of each kind that has incidents."""
    length = (frame["end_s"] - frame["start_s"]).to_numpy(float)
    kind = frame["site"].astype(str).map(kinds)
    rates = {}
    for name in dict.fromkeys(kind):
        rows = (kind == name).to_numpy(bool)
        sites = sum(other == name for other in kinds.values())
        mean, low, high = poisson_rate(int(rows.sum()), sites * months)
        rates[str(name)] = Rate(
            count=int(rows.sum()), mean=mean, low=low, high=high, repair_s=float(length[rows].mean())
        )
    return rates


def say_rates(rates: dict[str, Rate]) -> Sequence[str]:
    """Return a sentence for each rate: its value and its interval."""
    return [
        f"{kind}: {rate.mean:.3g} failures a month from {rate.count} incidents (95%: {rate.low:.2g} to "
        f"{rate.high:.2g}), {rate.repair_s:,.0f} s each"
        for kind, rate in rates.items()
    ]
