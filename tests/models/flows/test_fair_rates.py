"""Rates against a plain implementation, the optimality conditions, and a conic solver."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.errors import SolverFailure
from planner_models.flows import fair_rates
from planner_models.flows.fair_rates import max_min_rates, proportional_rates
from planner_models.traffic import check
from planner_models.traffic.designs import ecmp
from tests.models.traffic.networks import network

Floats = NDArray[np.float64]
Case = tuple[sp.csr_array, Floats, Floats, Floats]


@st.composite
def cases(draw: st.DrawFn, max_flows: int = 12, max_links: int = 8, finite: bool = False) -> Case:
    """Draw shares, capacities, caps and weights; many of them equal, as in data centers."""
    flows, links = draw(st.integers(1, max_flows)), draw(st.integers(1, max_links))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    drawings = draw(st.booleans())
    share = (random.random((flows, links)) < draw(st.sampled_from([0.2, 0.5, 0.9]))).astype(float)
    share *= 1.0 if drawings else random.choice([1e-3, 0.25, 0.5, 1.0], size=share.shape)
    capacity = random.integers(1, 5, links).astype(float)
    cap = random.choice([0.5, 1.0, 3.0] if finite else [0.5, 1.0, 3.0, np.inf], size=flows)
    cap[share.sum(axis=1) == 0] = 1.0
    weight = random.choice([1.0, 2.0, 0.5], size=flows)
    return sp.csr_array(share), capacity, cap, weight


def fill_progressively(share: sp.csr_array, capacity: Floats, cap: Floats, weight: Floats) -> Floats:
    """Return max-min fair rates by the textbook's progressive filling, on dense arrays."""
    uses = share.toarray()
    rate, rising = np.zeros(len(cap)), np.ones(len(cap), dtype=bool)
    while rising.any():
        pull = (uses * weight[:, None])[rising].sum(axis=0)
        room = np.maximum(capacity - rate @ uses, 0.0)
        level = np.full(len(capacity), np.inf)
        level[pull > 0] = room[pull > 0] / pull[pull > 0]
        limit = np.where(rising, cap / weight, np.inf)
        height = min(level.min(initial=np.inf), limit.min())
        full = level <= height * (1 + 1e-9)
        stops = rising & ((limit <= height * (1 + 1e-9)) | (uses[:, full] > 0).any(axis=1))
        rate[stops] = np.minimum(weight * height, cap)[stops]
        rising &= ~stops
    return rate


@given(cases())
def test_max_min_rates_equal_those_of_plain_filling(case: Case) -> None:
    share, capacity, cap, weight = case
    assert max_min_rates(share, capacity, cap, weight=weight) == pytest.approx(
        fill_progressively(*case), rel=1e-9, abs=1e-12
    )


@given(cases())
def test_every_flow_is_at_its_cap_or_has_a_bottleneck(case: Case) -> None:
    share, capacity, cap, weight = case
    rate = max_min_rates(share, capacity, cap, weight=weight)
    uses = share.toarray()
    load = rate @ uses
    assert (load <= capacity * (1 + 1e-9)).all()
    for flow in range(len(cap)):
        if rate[flow] >= cap[flow] * (1 - 1e-9):
            continue
        full = (uses[flow] > 0) & (load >= capacity * (1 - 1e-9))
        highest = [(rate / weight)[uses[:, link] > 0].max() for link in np.flatnonzero(full)]
        assert any(rate[flow] / weight[flow] >= level * (1 - 1e-9) for level in highest)


@given(cases(), st.floats(0.01, 100))
def test_max_min_scales_with_its_unit(case: Case, unit: float) -> None:
    share, capacity, cap, weight = case
    item = max_min_rates(share, capacity, cap, weight=weight)
    assert max_min_rates(share, capacity * unit, cap * unit, weight=weight) == pytest.approx(
        item * unit, rel=1e-9
    )


def test_the_textbook_example() -> None:
    # one long flow over two links, one short flow on each: max-min halves, proportional gives 1/3 and 2/3
    share = sp.csr_array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    no_cap = np.full(3, np.inf)
    assert max_min_rates(share, [1.0, 1.0], no_cap).tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert proportional_rates(share, [1.0, 1.0], no_cap).tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])


def test_a_weight_of_two_is_two_flows() -> None:
    share = sp.csr_array(np.ones((2, 1)))
    assert max_min_rates(share, [3.0], [np.inf, np.inf], weight=[1.0, 2.0]).tolist() == pytest.approx(
        [1.0, 2.0]
    )
    assert proportional_rates(share, [3.0], [np.inf, np.inf], weight=[1.0, 2.0]).tolist() == pytest.approx(
        [1.0, 2.0]
    )


def test_a_link_without_capacity_stops_only_its_flows() -> None:
    share = sp.csr_array([[1.0, 0.0], [0.0, 1.0]])
    assert max_min_rates(share, [0.0, 1.0], [5.0, 5.0]).tolist() == [0.0, 1.0]
    assert proportional_rates(share, [0.0, 1.0], [5.0, 5.0]).tolist() == pytest.approx([0.0, 1.0])


def test_a_flow_without_links_sends_at_its_cap() -> None:
    share = sp.csr_array((2, 1))
    assert max_min_rates(share, [1.0], [7.0, np.inf]).tolist() == [7.0, np.inf]
    assert proportional_rates(share, [1.0], [7.0, 3.0]).tolist() == [7.0, 3.0]
    with pytest.raises(ValueError, match="a flow without a cap must use a link"):
        proportional_rates(share, [1.0], [7.0, np.inf])


def test_shares_of_different_orders_of_magnitude() -> None:
    # once the large flow has stopped, what is left of the first link's sum is all rounding
    share = sp.csr_array([[1.0, 1.0], [1e-9, 0.0]])
    assert max_min_rates(share, [1.0, 0.25], [np.inf, 1e12]).tolist() == pytest.approx([0.25, 0.75e9])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [1.0, 2.0], [1.0]), "share is 1 x 1, capacity"),
        (([[-1.0]], [1.0], [1.0]), "must be at least 0"),
        (([[1.0]], [-1.0], [1.0]), "must be at least 0"),
    ],
)
def test_arrays_of_different_sizes_are_errors(arguments: tuple[list[float], ...], message: str) -> None:
    share, capacity, cap = arguments
    with pytest.raises(ValueError, match=message):
        max_min_rates(sp.csr_array(np.array(share)), capacity, cap)


# --- proportional fairness ----------------------------------------------------------------


@given(cases())
def test_prices_support_proportionally_fair_rates(case: Case) -> None:
    """The conditions of Karush, Kuhn and Tucker, independent of the algorithm."""
    share, capacity, cap, weight = case
    rate, price = fair_rates._solve_proportional(share, capacity, cap, weight, 1e-9, 200)
    load = share.T @ rate
    assert (load <= capacity * (1 + 1e-9)).all()
    assert (rate <= cap * (1 + 1e-9)).all()
    assert (price >= 0).all()
    assert price * (capacity - load) == pytest.approx(0.0, abs=1e-6 * weight.sum())
    path = share @ price
    with np.errstate(divide="ignore"):
        assert rate == pytest.approx(np.minimum(cap, weight / path), rel=1e-4)


def by_clarabel(share: sp.csr_array, capacity: Floats, cap: Floats, weight: Floats) -> Floats:
    """Maximize the sum of w log x as exponential cones: (u, 1, x) with u <= log x."""
    flows, links = share.shape
    q = np.r_[np.zeros(flows), -weight]
    eye, zero = sp.eye_array(flows), sp.csr_array((flows, flows))
    linear = sp.vstack(
        [sp.hstack([share.T, sp.csr_array((links, flows))]), sp.hstack([eye, zero]), sp.hstack([-eye, zero])]
    )
    cones: list[object] = [clarabel.NonnegativeConeT(links + 2 * flows)]
    rows, right = [linear], [capacity, cap, np.zeros(flows)]
    for flow in range(flows):
        block = np.zeros((3, 2 * flows))
        block[0, flows + flow], block[2, flow] = -1.0, -1.0
        rows.append(sp.csr_array(block))
        right.append(np.array([0.0, 1.0, 0.0]))
        cones.append(clarabel.ExponentialConeT())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((2 * flows, 2 * flows)),
        q,
        sp.csc_matrix(sp.vstack(rows)),
        np.concatenate(right),
        cones,
        settings,
    )
    return np.array(solver.solve().x)[:flows]


@given(cases(max_flows=6, max_links=4, finite=True))
def test_proportional_rates_equal_those_of_clarabel(case: Case) -> None:
    share, capacity, cap, weight = case
    assert proportional_rates(share, capacity, cap, weight=weight) == pytest.approx(
        by_clarabel(*case), rel=2e-3
    )


def test_too_few_iterations_are_an_error() -> None:
    share = sp.csr_array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(SolverFailure, match="2 iterations leave a gap of"):
        proportional_rates(share, [1.0, 1.0], np.full(3, np.inf), iterations=2)


def test_the_sparse_factorization_of_many_links() -> None:
    random = np.random.default_rng(1)
    flows, links = 900, fair_rates.DENSE_MAX_LINKS + 200
    link = np.array([random.choice(links, 3, replace=False) for _ in range(flows)])
    share = sp.csr_array(
        (np.ones(3 * flows), link.ravel(), np.arange(0, 3 * flows + 1, 3)), shape=(flows, links)
    )
    rate, price = fair_rates._solve_proportional(share, np.ones(links), np.ones(flows), None, 1e-9, 200)
    assert rate == pytest.approx(np.minimum(1.0, 1 / np.maximum(share @ price, 1e-12)), rel=1e-5)


# --- plans of fixed routes ----------------------------------------------------------------


def test_elastic_demands_fit_and_given_ones_are_served() -> None:
    problem = network([("a", "b", 4.0)], [("a", "b", 9.0)])
    given_rates, reached = ecmp.route(problem), ecmp.route(problem, rates="max-min")
    assert given_rates.guarantees == frozenset({"demand"})
    assert reached.guarantees == frozenset({"capacity"})
    assert given_rates.plan is not None
    assert reached.plan is not None
    assert given_rates.plan.links["load_mbps"].tolist() == [9.0]
    assert reached.plan.links["load_mbps"].tolist() == [4.0]
    assert check(problem, reached.plan).of_limits({"capacity"}).frame.empty
