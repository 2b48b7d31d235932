"""Closed forms of updates: printed values, drawn bursts, and consistency of single joins with bursts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast.problem import update_equations

FIGURE_7 = update_equations.Tenant(pods=8, edges=24, hosts=24, aggregation_copies=3, core_copies=9)


def test_figure_7() -> None:
    assert FIGURE_7.size == 4608
    assert update_equations.burst_updates(FIGURE_7, 300, batched=False).total == pytest.approx(2.78, abs=0.01)
    assert update_equations.burst_updates(FIGURE_7, 300, batched=True).total == pytest.approx(0.62, abs=0.01)
    assert update_equations.join_updates(FIGURE_7, 300).total == pytest.approx(1.63, abs=0.01)
    assert update_equations.leave_updates(FIGURE_7, 300).total == pytest.approx(1.64, abs=0.01)


def test_update_load_of_section_4_3_2() -> None:
    table_2b = update_equations.Updates(edge=1, aggregation=(1.89 + 1.86) / 2, core=(1.64 + 1.55) / 2)
    load = update_equations.updates_per_second(table_2b, k=48, events_per_pod=1000)
    assert (round(load.edge), round(load.aggregation), round(load.core)) == (42, 78, 133)


tenants = st.builds(
    update_equations.Tenant,
    pods=st.integers(1, 3),
    edges=st.integers(1, 3),
    hosts=st.integers(1, 4),
    aggregation_copies=st.integers(1, 3),
    core_copies=st.integers(1, 9),
)


def simulate_burst(
    tenant: update_equations.Tenant, joins: int, *, batched: bool, rng: np.random.Generator, times: int = 100
) -> update_equations.Updates:
    """Return `burst_updates` by drawing hosts `times` times and counting switches."""
    totals = np.zeros(3)
    ra, rc = tenant.aggregation_copies, tenant.core_copies
    for _ in range(times):
        edge = rng.choice(tenant.size, size=joins, replace=False) // tenant.hosts
        edges, pods = len(np.unique(edge)), len(np.unique(edge // tenant.edges))
        totals += (edges, ra * pods, rc) if batched else (joins, ra * edges, rc * pods)
    edge, aggregation, core = (totals / (joins * times)).tolist()
    return update_equations.Updates(edge=edge, aggregation=aggregation, core=core)


@given(tenants, st.data())
def test_closed_form_is_what_is_drawn(tenant: update_equations.Tenant, data: st.DataObject) -> None:
    joins = data.draw(st.integers(1, tenant.size))
    for batched in (False, True):
        exact = update_equations.burst_updates(tenant, joins, batched=batched)
        rng = np.random.default_rng(1)
        drawn = simulate_burst(tenant, joins, batched=batched, rng=rng, times=300)
        assert drawn.edge == pytest.approx(exact.edge, rel=0.15)
        assert drawn.aggregation == pytest.approx(exact.aggregation, rel=0.15)
        assert drawn.core == pytest.approx(exact.core, rel=0.15)


@given(tenants)
def test_single_joins_add_up_to_a_burst(tenant: update_equations.Tenant) -> None:
    for joins in {1, tenant.size // 2 or 1, tenant.size}:
        steps = [update_equations.join_updates(tenant, members).total for members in range(joins)]
        assert sum(steps) == pytest.approx(
            joins * update_equations.burst_updates(tenant, joins, batched=False).total
        )
        undone = [update_equations.leave_updates(tenant, members + 1).total for members in range(joins)]
        assert undone == pytest.approx(steps)


@given(tenants, st.data())
def test_batches_never_take_more(tenant: update_equations.Tenant, data: st.DataObject) -> None:
    joins = data.draw(st.integers(1, tenant.size))
    item, all_ = (
        update_equations.burst_updates(tenant, joins, batched=batched).total for batched in (True, False)
    )
    assert item <= all_ + 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: update_equations.burst_updates(FIGURE_7, 4609, batched=True),
            "joins is 4609, must be from 1 to 4608",
        ),
        (lambda: update_equations.join_updates(FIGURE_7, 4608), "must be from 0 to 4607"),
        (lambda: update_equations.leave_updates(FIGURE_7, 0), "must be from 1 to 4608"),
        (lambda: dataclasses.replace(FIGURE_7, pods=0), "pods is 0, must be at least 1"),
    ],
)
def test_bad_numbers_are_one_clear_line(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=words):
        call()
