"""Bills by percentile and caps on the traffic of several links, against enumeration of all plans."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

import planner
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.livevideo import SYSTEM, LiveVideo
from planner_models.livevideo.designs import DESIGNS, bill_prices, integer_program, ladders, optimum
from planner_models.livevideo.designs.integer_program import build_program
from planner_models.livevideo.plan.check import check
from planner_models.livevideo.plan.metrics import measure
from planner_models.livevideo.problem.adjustments import adjust
from planner_models.networks.percentile_bills import billed_level
from tests.models.livevideo.networks import list_trees, problem, problems

VALUE = "service_minus_cost"
QUICK = Options(time_limit_s=1.0, threads=1, gap=1e-6)
TIERS = {"S": "source", "X": "edge", "Y": "edge", "A": "group", "B": "group"}


@st.composite
def billed(draw: st.DrawFn, tiers: int = 3) -> LiveVideo:
    """Draw a small problem, links of which are on two bills with samples, prices and caps."""
    item = draw(problems(tiers=tiers, rules=True))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    names = np.array(["", "p", "q"], dtype=object)
    samples = [
        (name, f"w{w}", float(rng.integers(0, 9))) for name in "pq" for w in range(int(rng.integers(0, 25)))
    ]
    bills: dict[str, Any] = {
        "bill": ["p", "q"],
        "price_per_mbps": rng.integers(0, 12, 2).astype(float),
        "percentile": rng.choice([80.0, 95.0, 100.0], 2),
        "windows": rng.integers(1, 4, 2).astype(float),
        "commitment_mbps": rng.choice([0.0, 2.0], 2),
        "cap_mbps": rng.choice([3.0, 5.0, np.nan], 2),
    }
    return replace(
        item,
        links=item.links.assign(bill=names[rng.integers(0, 3, len(item.links))]),
        bills=pd.DataFrame(bills),
        samples=pd.DataFrame(samples, columns=["bill", "window", "load_mbps"]),
    )


class Bill(NamedTuple):
    """A bill, whose level is that of all samples of the month."""

    name: str
    price: float
    percentile: float
    windows: int
    commitment: float
    cap: float
    others: np.ndarray

    def level(self, sample: float) -> float:
        """Return what is billed where the windows of the plan have this load, Mbit/s."""
        month = np.append(self.others, [sample] * self.windows)
        return max(billed_level(month, self.percentile / 100), self.commitment)


def list_bills(item: LiveVideo) -> list[Bill]:
    """Return the bills of a problem."""
    names = ["price_per_mbps", "percentile", "windows", "commitment_mbps", "cap_mbps"]
    owner, load = item.samples["bill"].astype(str), item.samples["load_mbps"].to_numpy(float)
    rows = zip(item.bills["bill"].astype(str), item.bills[names].to_numpy(float).tolist(), strict=True)
    return [
        Bill(name, row[0], row[1], int(row[2]), row[3], row[4], load[(owner == name).to_numpy()])
        for name, row in rows
    ]


def best_over_trees(item: LiveVideo) -> float:
    """Return the best objective value, of one tree for each object and of each choice of unbilled windows.

    The levels of bills come from the percentile of all samples, at loads of 0 and of more than any link has.
    """
    links = len(item.links)
    values, loads, owner = [0.0], [np.zeros(links)], [0]
    for number, (o, trees) in enumerate(list_trees(item).items()):
        heads = {tree: {int(item.head[link]) for link in tree} for tree in trees}
        for tree in trees:
            load = np.bincount(tree, minlength=links) * item.bitrate_mbps[o]
            is_served = (item.object == o) & np.isin(item.group, list(heads[tree]))
            is_banned = item.forbidden_pairs is not None and item.forbidden_pairs[o, list(tree)].any()
            if not is_banned:
                values.append(float(item.value[is_served].sum() - item.cost_weight * item.cost @ load))
                loads.append(load)
                owner.append(number + 1)
    load = np.array(loads).T
    once = (np.array(owner) == np.arange(1, max(owner) + 1)[:, None]).astype(float)
    rows, limits = [load, once], [item.capacity_mbps, np.ones(len(once))]
    bills, best = list_bills(item), -np.inf
    on_bill = np.array([(item.links["bill"] == bill.name).to_numpy() for bill in bills]).astype(float) @ load
    for modes in itertools.product((False, True), repeat=len(bills)):
        fixed, price, offset = 0.0, [], []
        more_rows, more_limits = [], []
        for bill, billed_load, is_unbilled in zip(bills, on_bill, modes, strict=True):
            low, high = bill.level(0.0), bill.level(1e6)
            slope = item.cost_weight * bill.price
            fixed += slope * (high - low) if is_unbilled else 0.0
            price.append(0.0 if is_unbilled else slope)
            offset.append(1e6 if is_unbilled else low)
            if not is_unbilled:
                more_rows.append(billed_load)
                more_limits.append(high)
            if not np.isnan(bill.cap):
                more_rows.append(billed_load)
                more_limits.append(bill.cap)
        zeros = np.zeros((len(bills), len(bills)))
        matrix = np.vstack([*rows, *more_rows])
        matrix = np.hstack([matrix, np.zeros((len(matrix), len(bills)))])
        matrix = np.vstack([matrix, np.hstack([on_bill, zeros - np.eye(len(bills))])])
        upper = np.concatenate([*limits, more_limits, offset])
        result = milp(
            np.append(-np.array(values), price),
            constraints=LinearConstraint(matrix, -np.inf, upper),
            bounds=Bounds(0, np.append(np.ones(len(values)), np.full(len(bills), np.inf))),
            integrality=np.append(np.ones(len(values)), np.zeros(len(bills))),
            options={"mip_rel_gap": 0.0},
        )
        if result.success:
            best = max(best, -result.fun - fixed)
    return best


def value_of(item: LiveVideo, plan: Any) -> float:
    """Return the objective value, of which bills are computed from all samples of a month."""
    figures = measure(item, plan, None)
    value = figures[VALUE]
    assert value is not None
    if item.has_bills:
        load = pd.Series(item.tariffs.load(_loads(item, plan)), index=item.tariffs.names)
        added = sum(
            bill.price * (bill.level(float(load[bill.name])) - bill.level(0.0)) for bill in list_bills(item)
        )
        assert figures["added_to_bills"] == pytest.approx(added)
    return value


def _loads(item: LiveVideo, plan: Any) -> np.ndarray:
    rate = item.bitrate_mbps[item.object_rows(plan.trees["channel"], plan.trees["bitrate_kbps"])]
    link = item.link_rows(plan.trees["tail"], plan.trees["head"])
    return np.bincount(link, rate, minlength=len(item.links)).astype(float)


@pytest.mark.slow
@given(st.integers(2, 3).flatmap(lambda tiers: billed(tiers=tiers)))
@settings(max_examples=6)
def test_the_optimum_is_that_of_all_plans_and_no_plan_or_bound_passes_it(item: LiveVideo) -> None:
    best = best_over_trees(item)
    exact = optimum.distribute(item)
    assert exact.proof.objective == pytest.approx(best, abs=1e-6)
    assert exact.plan is not None
    x = build_program(item).point(item, exact.plan)
    program = build_program(item).program
    assert float(program.cost @ x) == pytest.approx(best, abs=1e-6)
    for design in DESIGNS:
        decision = design.run(design.observe(item), options=QUICK, previous=None)
        assert decision.plan is not None, design.name
        assert not len(check(item, decision.plan)), design.name
        assert value_of(item, decision.plan) <= best + 1e-6, design.name
        if decision.proof.bound is not None:
            assert decision.proof.bound >= best - 1e-6, design.name


@given(billed())
@settings(max_examples=4)
def test_prices_of_bills_give_a_bound_and_plans_within_caps(item: LiveVideo) -> None:
    best = best_over_trees(item)
    search = bill_prices._Search(item, ladders.distribute, QUICK)
    search.is_small = False  # without the integer program
    if not item.has_bills:
        return
    decision = search.run()
    assert decision.plan is not None
    assert not len(check(item, decision.plan))
    assert decision.proof.bound is not None
    assert value_of(item, decision.plan) <= best + 1e-6 <= decision.proof.bound + 2e-6


@pytest.mark.slow
@given(billed(tiers=3))
@settings(max_examples=3)
def test_the_model_in_words_has_the_same_optimum(item: LiveVideo) -> None:
    words = integer_program.solve(item, options=Options(backend="pyomo:highs"))
    assert words.proof.objective == pytest.approx(optimum.distribute(item).proof.objective, abs=1e-6)


def two_ways(**bill: Any) -> LiveVideo:
    """Return one channel of 2 Mbit/s for A and B, over X at a cost of 3 or over Y, which is on a bill."""
    item = problem(
        [
            ("S", "X", 9.0, 3.0),
            ("S", "Y", 9.0, 0.0),
            ("X", "A", 9.0, 0.0),
            ("Y", "A", 9.0, 0.0),
            ("Y", "B", 9.0, 0.0),
        ],
        [("v", 2_000.0, 1.0), ("w", 1_000.0, 1.0)],
        [("A", "v", 2_000.0, 10.0), ("B", "w", 1_000.0, 10.0)],
        tiers=TIERS,
        settings=pd.DataFrame({"service_weight": [1.0], "cost_weight": [1.0], "chunk_s": [2.0]}),
    )
    samples = [4.0, 1.0, *[0.5] * 18]
    return replace(
        item,
        links=item.links.assign(bill=["", "transit", "", "", ""]),
        bills=pd.DataFrame([{"bill": "transit", "price_per_mbps": 5.0, "cap_mbps": np.nan, **bill}]),
        samples=pd.DataFrame(
            {"bill": "transit", "window": [f"w{n}" for n in range(len(samples))], "load_mbps": samples}
        ),
    )


@pytest.mark.parametrize(
    ("bill", "trees", "added"),
    [
        # 21 samples with the window, one unbilled: up to 1 Mbit/s costs nothing, up to 4 costs 5 each
        ({}, {"v over X", "w over Y"}, 0.0),
        ({"price_per_mbps": 1.0}, {"v over Y", "w over Y"}, 2.0),
        # four windows are not billed, and three of them were busier than 0.5: this one may be the fourth
        ({"percentile": 80.0}, {"v over Y", "w over Y"}, 0.0),
        # the peak of 4 Mbit/s is billed in any case
        ({"percentile": 100.0}, {"v over Y", "w over Y"}, 0.0),
        ({"price_per_mbps": 100.0, "commitment_mbps": 3.0}, {"v over Y", "w over Y"}, 0.0),
        ({"price_per_mbps": 0.0, "cap_mbps": 2.5}, {"v over X", "w over Y"}, 0.0),
        ({"price_per_mbps": 0.0, "cap_mbps": 0.5}, {"v over X"}, 0.0),
    ],
)
def test_a_window_uses_what_its_month_has_paid_for(
    bill: dict[str, float], trees: set[str], added: float
) -> None:
    item = two_ways(**bill)
    decision = optimum.distribute(item)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    first = decision.plan.trees[decision.plan.trees["tail"] == "S"]
    assert {f"{row.channel} over {row.head}" for row in first.itertuples()} == trees
    assert measure(item, decision.plan, None)["added_to_bills"] == pytest.approx(added)


def test_a_cap_that_a_plan_exceeds_is_a_violation_with_its_amount() -> None:
    free = two_ways(price_per_mbps=0.0)
    plan = optimum.distribute(free).plan
    assert plan is not None
    found = check(two_ways(cap_mbps=2.5), plan)
    assert found.frame.to_dict("records") == [
        {"limit": "cap", "where": "transit", "amount": 3.0, "allowed": 2.5, "unit": "Mbit/s"}
    ]


def test_scales_of_prices_and_caps() -> None:
    item = adjust(two_ways(cap_mbps=10.0), bill_price_scale=2.0, cap_scale=0.25)
    assert item.tariffs.price.tolist() == [10.0]
    assert item.tariffs.cap_mbps.tolist() == [2.5]


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        (
            "links",
            {"bill": "transi"},
            "links row 1: bill 'transi' is no bill of table bills; did you mean 'transit'",
        ),
        ("samples", {"bill": "other"}, "samples row 1: bill 'other' is no bill of table bills"),
        ("bills", {"price_per_mbps": -1.0}, "bills row 1: price_per_mbps is -1.0, must be at least 0"),
        ("bills", {"percentile": 0.0}, "bills row 1: percentile is 0.0, must be greater than 0"),
        ("samples", {"load_mbps": -2.0}, "samples row 1: load_mbps is -2.0, must be at least 0"),
        ("links", None, "bills: no link is on a bill"),
    ],
)
def test_bad_bills_are_one_line(table: str, change: dict[str, Any] | None, message: str) -> None:
    tables = two_ways().to_tables()
    tables[table] = tables[table].drop(columns="bill") if change is None else tables[table].assign(**change)
    with pytest.raises(InputError) as caught:
        LiveVideo.from_tables(tables)
    assert message in str(caught.value)


def test_most_moved_is_refused_beside_bills() -> None:
    with pytest.raises(InputError, match="most_moved"):
        SYSTEM.design("vdn").run(two_ways(), parameters={"most_moved": 1})


@pytest.mark.parametrize(("cap_mbps", "raised"), [(0.0, False), (1.0, True)])
def test_explain_raises_caps_that_grow(cap_mbps: float, raised: bool) -> None:
    text = str(planner.explain(two_ways(cap_mbps=cap_mbps), design="optimum"))
    assert ("higher cap" in text) == raised
    assert "1 of 1 bill stays as it is, 0 leave these windows unbilled, 1 has a full cap" in text
