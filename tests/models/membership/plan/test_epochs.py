"""Epochs: the closed form beside the simulation of processes, and Erlang's formula beside its sum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner_models.membership.plan.epochs import EpochUse, cuts_without_epoch, erlang_b, simulate_cuts


@given(st.integers(0, 20), st.floats(0.01, 30.0))
def test_erlang_b_is_the_ratio_of_its_sum(servers: int, load: float) -> None:
    terms = [load**number / math.factorial(number) for number in range(servers + 1)]
    assert erlang_b(servers, load) == pytest.approx(terms[-1] / sum(terms), rel=1e-9)


@pytest.mark.parametrize(
    ("life", "bits", "per_cut", "percent"),
    [(1, 3, 4, 4.8), (7, 3, 1, 37.0), (7, 3, 4, 62.0), (30, 3, 1, 79.0), (30, 4, 1, 56.0), (1, 4, 1, 0.0)],
)
def test_cuts_without_an_epoch_are_those_of_the_simulation(
    life: float, bits: int, per_cut: int, percent: float
) -> None:
    """The values are those that the specification measured; both ways lie within 6 points of each other."""
    use = EpochUse(processes=1_500, life_days=life, cuts_per_month=6.0, epochs_per_cut=per_cut)
    closed = 100 * cuts_without_epoch(bits, use)
    assert closed == pytest.approx(percent, abs=1.0)
    cuts, missed = simulate_cuts(bits, use, years=30, rng=np.random.default_rng(0))
    assert cuts > 1_000
    assert 100 * missed / cuts == pytest.approx(closed, abs=6.0)


def test_one_more_bit_never_hurts() -> None:
    use = EpochUse(processes=1_500, life_days=7, cuts_per_month=6.0, epochs_per_cut=2)
    shares = [cuts_without_epoch(bits, use) for bits in range(1, 9)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0


def test_the_explanation_says_what_one_more_bit_saves() -> None:
    explained = planner.explain("membership/epochs", design="fenced")
    assert explained.explanation is not None
    frame = next(part.frame for part in explained.explanation.sections if "change" in part.frame.columns)
    rows = frame.set_index("change")["seconds_down"]
    assert explained.run.metrics["down_s_per_month"] > rows["one more bit of epochs"]
