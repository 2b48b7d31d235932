"""Volumes and prices of volumes, in GB, as rates and prices of rates, which make a month's bill."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.notes import add_note
from planner.contract.tables import file_name, row_name, shorten_faults

MONTH_S: Final = 30 * 86_400.0
"""Length of all windows together where no times tell it, s."""
MEGABITS_OF_GB: Final = 8_000.0
MEAN: Final = "mean"
Tables = dict[str, pd.DataFrame | None]


def in_rates(tables: Mapping[str, pd.DataFrame | None]) -> tuple[Tables, list[str]]:
    """Return valid tables of a month without volumes: `traffic_gb`, `price_per_gb` and others are converted.

    Returns:
        The tables, and faults: rows with neither or both of two columns, and prices of volumes where not the
        mean is billed.
    """
    traffic, contracts, tiers = tables["traffic"], tables["contracts"], tables["tiers"]
    assert traffic is not None
    assert contracts is not None
    pairs = [
        (traffic, "traffic", "traffic_mbps", "traffic_gb"),
        (contracts, "contracts", "price_per_mbps", "price_per_gb"),
        *((tiers, "tiers", *pair) for pair in TIER_PAIRS if tiers is not None),
    ]
    faults = list(itertools.chain.from_iterable(itertools.starmap(_unclear_rows, pairs)))
    has_both = (_column(contracts, "commitment_mbps") > 0) & (_column(contracts, "commitment_gb") > 0)
    has_bursts = ~np.isnan(_column(contracts, "burst_price_per_mbps")) & ~np.isnan(
        _column(contracts, "burst_price_per_gb")
    )
    faults += [
        f"{row_name(contracts, 'contracts', row)}: has both burst_price_per_mbps and burst_price_per_gb; "
        "keep one"
        for row in np.flatnonzero(has_bursts).tolist()
    ]
    faults += [
        f"{row_name(contracts, 'contracts', row)}: has both commitment_mbps and commitment_gb; keep one"
        for row in np.flatnonzero(has_both).tolist()
    ]
    faults += _faults_of_billing(contracts, tiers)
    is_by_volume = "commitment_gb" in contracts or "burst_price_per_gb" in contracts
    has_volumes = is_by_volume or any(volume in frame for frame, _, _, volume in pairs)
    if faults or not has_volumes:
        return dict(tables), faults
    step_s = _window_length(traffic)
    month_s = step_s * traffic["window"].nunique()
    of_window, of_month = MEGABITS_OF_GB / step_s, MEGABITS_OF_GB / month_s  # Mbit/s of a GB
    changed: Tables = {
        "traffic": _joined(traffic, "traffic_mbps", "traffic_gb", of_window),
        "contracts": _joined(
            _joined(
                _joined(contracts, "price_per_mbps", "price_per_gb", 1 / of_month),
                "burst_price_per_mbps", "burst_price_per_gb", 1 / of_month,
            ),
            "commitment_mbps", "commitment_gb", of_month,
        ),
        "tiers": None if tiers is None else _joined(
            _joined(tiers, "price_per_mbps", "price_per_gb", 1 / of_month), "above_mbps", "above_gb", of_month
        ),
    }  # fmt: skip
    return {**tables, **changed}, []


TIER_PAIRS: Final = (("above_mbps", "above_gb"), ("price_per_mbps", "price_per_gb"))


def _column(frame: pd.DataFrame, name: str) -> Floats:
    return frame[name].to_numpy(float) if name in frame else np.full(len(frame), np.nan)


def _joined(frame: pd.DataFrame, rate: str, volume: str, factor: float) -> pd.DataFrame:
    """Return a table with the rates of its volumes in place of them."""
    if volume not in frame:
        return frame
    amounts = _column(frame, volume) * factor
    rates = np.where(np.isnan(amounts), _column(frame, rate), amounts)
    changed = frame.assign(**{rate: rates})
    order = [name for name in frame.columns if name != volume]
    if rate not in order:
        order.insert(list(frame.columns).index(volume), rate)
    changed = changed[order]
    changed.attrs = dict(frame.attrs)
    return changed


def _unclear_rows(frame: pd.DataFrame, table: str, rate: str, volume: str) -> list[str]:
    """Return a fault for each row with neither a rate nor a volume, or with both."""
    where = file_name(frame, table)
    if rate not in frame and volume not in frame:
        return [f"{where}: column '{rate}' or '{volume}' is missing"] if len(frame) else []
    count = (~np.isnan(_column(frame, rate))).astype(int) + ~np.isnan(_column(frame, volume))
    faults = [
        f"{row_name(frame, table, row)}: "
        + (
            f"has both {rate} and {volume}; keep one"
            if count[row]
            else f"{rate if rate in frame else volume} is empty"
        )
        for row in np.flatnonzero(count != 1).tolist()
    ]
    return shorten_faults(faults, where, f"without one of {rate} and {volume}")


def _faults_of_billing(contracts: pd.DataFrame, tiers: pd.DataFrame | None) -> list[str]:
    """Return a fault for each price or commitment of a volume in a contract that does not bill the mean."""
    rule = dict(zip(_pairs(contracts), contracts["billing"].astype(str), strict=True))
    faults = []
    tables: list[tuple[pd.DataFrame, str, tuple[str, ...]]]
    tables = [(contracts, "contracts", ("price_per_gb", "burst_price_per_gb", "commitment_gb"))]
    tables += [] if tiers is None else [(tiers, "tiers", ("price_per_gb", "above_gb"))]
    for frame, table, names in tables:
        for name in names:
            pairs = _pairs(frame)
            for row in np.flatnonzero(~np.isnan(_column(frame, name))).tolist():
                billing = rule.get(pairs[row], MEAN)
                if billing != MEAN:
                    faults.append(
                        f"{row_name(frame, table, row)}: {name} is of a volume, but billing is '{billing}': "
                        f"write billing '{MEAN}', or {name.replace('_gb', '_mbps')}"
                    )
    return shorten_faults(faults, file_name(contracts, "contracts"), "with volumes where no volume is billed")


def _pairs(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(frame["cdn"].astype(str), frame["region"].astype(str), strict=True))


def _window_length(traffic: pd.DataFrame) -> float:
    """Return the length of a window, s: as its times tell, else that all windows are a month together."""
    if "step_s" in traffic.attrs:
        return float(traffic.attrs["step_s"])
    count = traffic["window"].nunique()
    words = "the window lasts" if count == 1 else f"the {count:,} windows together last"
    add_note(
        f"assumed: {file_name(traffic, 'traffic')}: {words} 30 days; two or more times in column window, "
        "such as 2024-03-31 00:05, tell another length"
    )
    return MONTH_S / count


def take_off_credit(volumes: Floats, prices: Floats, credit: float) -> tuple[Floats, Floats]:
    """Return price steps by which every volume costs `credit` less, but at least 0.

    volumes  (K,) Mbit/s from which prices apply, from 0 and ascending
    prices   (K,) of a Mbit/s; at least 0
    credit   amount of money
    """
    if credit <= 0:
        return volumes, prices
    width = np.diff(np.append(volumes, np.inf))
    paid = np.concatenate([[0.0], np.cumsum(width[:-1] * prices[:-1])])  # for the volume at each step's start
    step = int(np.flatnonzero(paid <= credit)[-1])
    if prices[step] <= 0:  # the last step: no volume costs more than the credit
        return np.zeros(1), np.zeros(1)
    start = float(volumes[step] + (credit - paid[step]) / prices[step])
    later = volumes > start
    return (
        np.concatenate([[0.0, start], volumes[later]]),
        np.concatenate([[0.0, prices[step]], prices[later]]),
    )
