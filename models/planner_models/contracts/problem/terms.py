"""Terms of contracts as price steps: a credit makes the first volumes free."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats


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
