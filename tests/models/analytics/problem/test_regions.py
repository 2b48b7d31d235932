"""Rules of regions for every design, against a plain reading of their tables and brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, check, formulation, measure
from planner_models.analytics.designs.backfill import send_later
from planner_models.analytics.plan.plan import Levels, make_plan
from planner_models.analytics.plan.reading import from_tables
from planner_models.analytics.problem.windows import take_intervals
from tests.models.analytics.problems import tables

RULES = ["region", "cube", "query", "to", "finest"]
SIZES = {"1 s": 16.0, "5 s": 8.0, "10 s": 4.0, "none": 0.0}
SHARES = {"1 s": 1.0, "5 s": 0.8, "10 s": 0.5, "none": 0.0}
ORDER = list(SIZES)
CELLS = 100.0
MBPS_OF_BYTES = 8 / 60 / 1e6


def with_rules(rows: list[tuple[str, ...]], **given: Any) -> dict[str, pd.DataFrame]:
    """Return tables of sites s0 in region a, s1 in region b and s2 in none, and some rules."""
    made = tables(sites=3, **given)
    made["sites"]["region"] = ["a", "b", ""]
    made["laws"] = pd.DataFrame(rows, columns=RULES)
    return made


@st.composite
def ruled(draw: st.DrawFn) -> dict[str, pd.DataFrame]:
    """Draw tables of one interval with rules of two regions; points of presence have regions too."""
    queries = 2
    made = with_rules(
        [], combine=tuple(draw(st.sampled_from(["coarsest", "sum", "worst"])) for _ in range(queries))
    )
    if draw(st.booleans()):
        made["levels"] = made["levels"][made["levels"]["level"] != "none"].reset_index(drop=True)
    region = st.sampled_from(["", "a", "b", "c"])
    made["pops"] = pd.DataFrame(
        {"pop": ["p", "r"], "uplink_mbps": 1.0, "merges": "yes", "region": [draw(region), draw(region)]}
    )
    made["sites"]["pop"] = ["p", "r", "p"]
    made["central"] = pd.DataFrame({"region": [draw(region)]})
    known = {"a", "b", *made["pops"]["region"], *made["central"]["region"]}
    rows: list[tuple[str, ...]] = []
    nothing = draw(st.booleans())
    for name in ("a", "b"):
        for query in draw(st.sets(st.sampled_from(["", "q0", "q1"]), max_size=2)):
            to = draw(st.sampled_from(sorted(known - {name})))
            cube = draw(st.sampled_from(["", "c"]))
            rows.append((name, cube, query, to, "" if nothing else draw(st.sampled_from(ORDER[:3]))))
    made["laws"] = pd.DataFrame(rows, columns=RULES)
    load = 16.0 * CELLS * queries
    made["sites"]["uplink_mbps"] = [
        (draw(st.integers(1, 10)) / 8 * load + 0.5) * MBPS_OF_BYTES for _ in range(3)
    ]
    made["queries"]["value_usd"] = [draw(st.integers(1, 9)) * 1.0 for _ in range(queries)]
    return made


def read_allowed(made: dict[str, pd.DataFrame], site: int, query: str) -> list[str]:
    """Return the levels that a site may send by a plain reading of the rules; "none" always is one."""
    entry = made["sites"].iloc[site]
    pop = made["pops"].set_index("pop")["region"][entry["pop"]]
    way = {pop if pop else entry["region"], made["central"]["region"].iloc[0]} - {entry["region"]}
    names = [name for name in ORDER if name in set(made["levels"]["level"])]
    first = 0
    for rule in made["laws"].itertuples():
        is_about = entry["region"] == rule.region and rule.query in ("", query)
        crosses = bool(way) if rule.to == "" else rule.to in way
        if is_about and crosses:
            first = max(first, ORDER.index(rule.finest) if rule.finest else 3)
    return [name for name in names if ORDER.index(name) >= first]


def enumerate_levels(made: dict[str, pd.DataFrame]) -> float:
    """Return the most value of all choices of levels by sites, by trying each; "silent" is no data."""
    capacity = made["sites"]["uplink_mbps"].to_numpy() / MBPS_OF_BYTES
    options: list[list[tuple[float, np.ndarray]]] = []
    for query in made["queries"].itertuples():
        allowed = [read_allowed(made, site, query.query) for site in range(3)]
        has_none = "none" in set(made["levels"]["level"])
        denied = [not [name for name in names if name != "none"] for names in allowed]
        choices = [
            [name for name in names if not is_denied or name == "none"] or ["silent"]
            for names, is_denied in zip(allowed, denied, strict=True)
        ]
        if query.combine != "sum" and any(denied):
            choices = [["none"] if has_none else ["silent"]] * 3
        rows = []
        for combination in itertools.product(*choices):
            sent = [name if name != "silent" else "none" for name in combination]
            shares = [SHARES[name] for name in sent]
            share = sum(shares) / 3 if query.combine == "sum" else min(shares)
            rows.append((query.value_usd * share, np.array([SIZES[name] * CELLS for name in sent])))
        options.append(rows)
    best = -np.inf
    for picked in itertools.product(*options):
        if (sum(load for _, load in picked) <= capacity * (1 + 1e-9) + 1e-6).all():
            best = max(best, sum(value for value, _ in picked))
    return best


@settings(max_examples=10, deadline=None)
@given(ruled())
def test_the_optimum_under_rules_is_that_of_all_choices(made: dict[str, pd.DataFrame]) -> None:
    best = enumerate_levels(made)
    problem = Analytics.from_tables(made)
    for site, query in itertools.product(range(3), range(2)):
        names = problem.level_names[query]
        sent = [names[level] for level in np.flatnonzero(problem.may_send[site, query])]
        assert sent == read_allowed(made, site, problem.query_names[query])
    decision = SYSTEM.design("optimum").run(problem)
    if best == -np.inf:  # some answers are required and do not fit
        assert decision.proof.bound_scope is not None
        return
    assert decision.proof.objective == pytest.approx(best, abs=1e-9)
    assert decision.proof.bound == pytest.approx(best, rel=1e-6, abs=1e-9)
    reference = formulation(problem)
    if not len(reference.X):  # all queries are denied, and nothing is left to choose
        assert best == 0
        return
    solution = pyomo.solve_model(reference, Options(backend="pyomo:highs", gap=1e-9))
    assert solution.objective == pytest.approx(best, abs=1e-6)


@settings(max_examples=5, deadline=None)
@given(ruled())
def test_no_design_sends_what_may_not_leave_or_beats_the_optimum(made: dict[str, pd.DataFrame]) -> None:
    problem = Analytics.from_tables(made)
    best = enumerate_levels(made)
    for design in SYSTEM.designs:
        run = planner.solve(problem, design=design.name)
        assert run.error is None
        assert not set(run.violations.frame["limit"]) & {"rules", "retention"}
        for row in run.plan.levels[run.plan.levels["level"] != "none"].itertuples():
            sites = range(3) if row.site == "" else [problem.site_names.index(row.site)]
            assert all(row.level in read_allowed(made, site, row.query) for site in sites), design.name
        if not len(run.violations) and best > -np.inf:
            assert run.metrics["value"] <= best * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("design", [design.name for design in SYSTEM.designs])
@pytest.mark.parametrize("none", [True, False])
def test_denied_answers_are_a_loss_of_their_own_with_a_reason(design: str, none: bool) -> None:
    made = with_rules([("a", "", "", "", "")], combine=("coarsest", "sum"), none=none)
    run = planner.solve(Analytics.from_tables(made), design=design)
    assert run.metrics["denied_loss"] == pytest.approx(1.0 + 1 / 3)
    assert run.metrics["no_data_loss"] == 0
    assert not len(run.violations)
    assert run.proof.bound_scope is None
    assert [text.split(":")[0] for text in run.proof.reasons] == [
        "query 'q0' is denied", "query 'q1' is denied"
    ]  # fmt: skip
    assert "laws row 1 lets nothing leave region 'a'" in run.proof.reasons[0]
    strict = planner.solve(Analytics.from_tables(made), design=design, service="all")
    assert strict.plan is not None


def test_a_query_that_uses_denied_data_is_denied_too() -> None:
    made = with_rules([("a", "", "q0", "", "")], combine=("coarsest", "coarsest", "coarsest"), none=False)
    made["shares"] = pd.DataFrame({"query": ["q1"], "uses": ["q0"]})
    run = planner.solve(Analytics.from_tables(made), design="optimum")
    assert run.metrics["denied_loss"] == pytest.approx(2.0)
    assert run.metrics["value"] == pytest.approx(1.0)
    assert run.proof.reasons[1].endswith("it uses the data of query 'q0'")


def test_the_check_finds_levels_that_may_not_leave() -> None:
    made = with_rules([("a", "", "q0", "", "5 s")])
    problem = Analytics.from_tables(made)
    sent = make_plan(problem, np.zeros((1, 3, 1), dtype=np.int64))
    assert check(problem, sent).frame[["limit", "where"]].to_numpy().tolist() == [
        ["rules", "s0, q0, interval 1"]
    ]
    made["central"] = pd.DataFrame({"region": ["a"]})
    assert not len(check(Analytics.from_tables(made), sent))


def kept(hours: float, **columns: Any) -> Analytics:
    """Return a site that sends 10 s of data in the first minute, and may send the rest in the second one."""
    made = tables(sites=1, intervals=3)
    made["sites"]["region"] = "a"
    made["sites"] = made["sites"].assign(**columns)
    made["bandwidth"] = pd.DataFrame(
        {
            "link": ["s0"] * 3,
            "interval": [1.0, 2.0, 3.0],
            "mbps": [500 * MBPS_OF_BYTES, 1_700 * MBPS_OF_BYTES, 4_000 * MBPS_OF_BYTES],
        }
    )
    made["backfill"] = pd.DataFrame({"query": ["q0"], "window_s": [600.0], "half_life_s": [120.0]})
    made["retention"] = pd.DataFrame({"region": ["a"], "cube": ["c"], "at_most_h": [hours]})
    return Analytics.from_tables(made)


def late_of(problem: Analytics, order: str) -> Levels:
    plan = send_later(problem, order=order).plan  # type: ignore[arg-type]
    assert plan is not None
    return plan


@pytest.mark.parametrize("order", ["after", "together", "foreseen"])
def test_later_data_is_sent_while_it_is_kept(order: str) -> None:
    """Only the third minute has the bytes for all of it: two minutes after the end of the first one."""
    for minutes in (2.0, 1.9, 0.0):
        plan = late_of(kept(minutes / 60), order)
        age = plan.backfill["sent"] - plan.backfill["interval"]
        assert (age <= minutes).all(), minutes
        assert (len(age) > 0) == (minutes > 0 and (order != "after" or minutes == 2.0)), minutes
        assert not len(check(kept(minutes / 60), plan))
    plan = late_of(kept(2.0 / 60), "after")
    frame = check(kept(1.0 / 60), plan).frame
    assert frame[["limit", "where"]].to_numpy().tolist() == [["retention", "s0, q0, interval 1"]]
    assert frame["amount"].tolist() == pytest.approx([2 / 60])


@pytest.mark.parametrize("minutes", [1.0, 0.9])
def test_the_bound_with_later_data_is_that_of_plans_within_the_limit(minutes: float) -> None:
    """Two minutes, of which the first has too few bytes for its finest level; all plans are tried."""
    problem = take_intervals(kept(minutes / 60), np.arange(2)).with_capacity(
        np.array([[500, 1e9], [2_600, 1e9]]) * MBPS_OF_BYTES
    )
    best = 0.0
    for first, second, later in itertools.product(ORDER, ORDER, ORDER):
        levels = pd.DataFrame(
            [(1.0, "q0", first, ""), (2.0, "q0", second, "")], columns=["interval", "query", "level", "site"]
        )
        rows = {"interval": [1.0], "sent": [2.0], "query": ["q0"], "level": [later], "site": ["s0"]}
        made = {"levels": levels} | ({} if later == "none" else {"backfill": pd.DataFrame(rows)})
        plan = from_tables(problem, made)
        if not len(check(problem, plan)):
            best = max(best, measure(problem, plan, None)["total_value"] or 0.0)
    assert best == pytest.approx(0.5 + 1.0 + (0.3 * 0.5**0.5 if minutes == 1.0 else 0.0))
    decision = send_later(problem, order="foreseen")
    assert decision.proof.bound is not None
    assert decision.proof.bound >= best * (1 - 1e-9)
    assert decision.proof.objective == pytest.approx(best)


def test_stored_data_that_is_erased_denies_the_query_that_reads_it() -> None:
    made = tables(sites=2, intervals=3, combine=("coarsest", "sum"))
    made["sites"]["region"] = ["a", "b"]
    made["ad_hoc"] = pd.DataFrame({"query": ["q0", "q1"], "interval": 3.0, "since": [1.0, 1.0]})
    for hours, value in ((2 / 60, 2.0), (1.5 / 60, 0.5)):
        made["retention"] = pd.DataFrame({"region": ["a"], "cube": [""], "at_most_h": [hours]})
        problem = Analytics.from_tables(made)
        for design in SYSTEM.designs:
            run = planner.solve(problem, design=design.name)
            assert run.metrics["denied_loss"] == pytest.approx(2.0 - value), design.name
            assert not len(run.violations), design.name
        sends = make_plan(problem, np.zeros((3, 2, 2), dtype=np.int64))
        assert len(check(problem, sends)) == (0 if value == 2 else 2)
    optimum = planner.solve(problem, design="optimum")
    assert optimum.metrics["value"] == pytest.approx(0.5)
    assert "lets site 's0' keep cube 'c' for 0.025 hours" in optimum.proof.reasons[0]


def test_data_that_must_be_stored_leaves_less_storage_for_later_data() -> None:
    """Two minutes of 100 cells of 8 bytes take 1,600 of the site's bytes; later data needs 1,600."""
    for storage_gb, sent in ((3.3e-6, True), (3.1e-6, False)):
        problem = kept(1.0, storage_gb=storage_gb)
        made = {name: frame for name, frame in problem.to_tables().items() if frame is not None}
        made["cubes"] = made["cubes"].assign(stored_bytes_per_cell=8.0)
        made["retention"] = pd.DataFrame({"region": ["a"], "cube": [""], "at_least_h": [2 / 60]})
        plan = late_of(Analytics.from_tables(made), "after")
        assert (len(plan.backfill) > 0) == sent
        if sent:
            made["sites"] = made["sites"].assign(storage_gb=3.1e-6)
            assert set(check(Analytics.from_tables(made), plan).frame["limit"]) == {"storage"}
