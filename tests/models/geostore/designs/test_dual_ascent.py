"""Dual ascent of a group alone: its prices are feasible, and their bound is no worse than without them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.geostore.designs.component import allowed_attachments, costs_of, single
from planner_models.geostore.designs.dual_ascent import ascend_dual
from planner_models.geostore.designs.placement import arrays_of, solve_component
from planner_models.geostore.designs.relaxation import Arrays, Multipliers
from tests.models.geostore.stores import store


def lagrangian(data: Arrays, prices: Multipliers) -> float:
    """Return the bound of prices of a group without covers, by operations on whole arrays."""
    attach, copies, volume = prices.attach[0], prices.copies[0], data.volume[0]
    reduced = data.opening[0] + copies.sum(axis=0) - attach.sum(axis=0)
    saved = np.minimum(volume[:, None, None] * data.price_to[0][None] - copies[:, :, None], 0.0)
    users = (data.attachment + attach + saved.sum(axis=1)).min(axis=1)
    order = np.sort(reduced)
    number = max(int(data.least[0]), int((reduced < 0).sum()))
    return float(order[:number].sum() + users.sum())


@given(seed=st.integers(0, 1_000))
@settings(max_examples=10)
def test_prices_bound_the_optimum_and_are_not_worse_than_none(seed: int) -> None:
    problem = store(seed, regions=7, groups=1, users=4, limit_ms=None)
    component = single(problem, 0, costs_of(problem, causal=True), allowed_attachments(problem))
    data = arrays_of(component)
    zero = np.zeros((1, *component.attachment.shape))
    prices = Multipliers(zero.copy(), data.cheapest.copy(), np.zeros(len(data.need)), np.zeros((0, 7)))
    before = lagrangian(data, prices)
    ascend_dual(data, component.state, prices)
    assert (prices.attach >= 0).all()
    after = lagrangian(data, prices)
    assert after >= before - 1e-6 * abs(before)
    assert after <= solve_component(component, gap=1e-9).cost * (1 + 1e-9)
