"""Ad hoc queries over stored data, and queries that use the data of another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, check, formulation, measure
from planner_models.analytics.designs import optimum
from planner_models.analytics.plan.reading import from_tables
from planner_models.analytics.problem.generators import diurnal
from planner_models.analytics.problem.tables import read_volume
from planner_models.analytics.problem.windows import take_intervals
from tests.models.analytics.problems import problems, tables


def share(**given_tables: Any) -> Analytics:
    """Return three sites and three intervals: q2 uses the data of q0, q3 is asked once over two intervals."""
    made = tables(sites=3, intervals=3, combine=("coarsest", "sum", "coarsest", "worst"), uplink_mbps=3e-4)
    made["volume"]["cells"] = np.arange(10.0, 10.0 + len(made["volume"]))
    made["shares"] = pd.DataFrame({"query": ["q2"], "uses": ["q0"]})
    made["ad_hoc"] = pd.DataFrame({"query": ["q3"], "interval": [3.0], "since": [2.0]})
    return Analytics.from_tables({**made, **given_tables})


def _read_cells(problem: Analytics, query: int) -> np.ndarray:
    """Return the cells that a query reads in each interval and at each site, (K, S)."""
    shape = (len(problem.interval_numbers), len(problem.site_names))
    cells = [read_volume(problem.query_volume, k, site, query)[1] for k, site in np.ndindex(shape)]
    return np.array(cells).reshape(shape)


def test_an_ad_hoc_query_reads_stored_data_once() -> None:
    problem = share()
    cells = _read_cells(problem, 3)
    assert not cells[:2].any()
    assert cells[2].tolist() == (problem.cells[1, :, 0] + problem.cells[2, :, 0]).tolist()
    assert problem.total_usd == 3 * 3 + 1
    plan = optimum.plan(problem).plan
    assert plan is not None
    assert plan.answers.loc[plan.answers["query"] == "q3", "interval"].tolist() == [3.0]
    window = take_intervals(problem, np.array([2]))
    assert window.find_volume(0)[1][:, 3].tolist() == cells[2].tolist()
    assert not take_intervals(problem, np.array([0])).is_asked[0, 3]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(problems(sites=3, queries=3))
def test_a_query_that_uses_data_adds_its_value_and_sends_nothing(problem: Analytics) -> None:
    """The same optimum as one query with the value of both."""
    combine = problem.queries["combine"].tolist()
    tables_ = problem.to_tables()
    twin = problem.queries.iloc[[0]].assign(query="twin", value_usd=2.5)
    levels = problem.levels[problem.levels["query"] == "q0"].assign(query="twin")
    both = Analytics.from_tables(
        {
            **tables_,
            "queries": pd.concat([problem.queries, twin], ignore_index=True),
            "levels": pd.concat([problem.levels, levels], ignore_index=True),
            "shares": pd.DataFrame({"query": ["twin"], "uses": ["q0"]}),
        }
    )
    value = problem.queries["value_usd"].to_numpy(float) + np.where(np.arange(len(combine)) == 0, 2.5, 0.0)
    item = replace(problem, queries=problem.queries.assign(value_usd=value))
    decision = optimum.plan(both)
    assert decision.plan is not None
    assert decision.proof.objective == pytest.approx(optimum.plan(item).proof.objective, rel=1e-6)
    assert not len(check(both, decision.plan))
    sent = measure(both, decision.plan, None)["sent_gb"]
    levels_sent = decision.plan.levels[decision.plan.levels["query"] != "twin"]
    alone = from_tables(item, {"levels": levels_sent})
    assert sent == pytest.approx(measure(item, alone, None)["sent_gb"])


def test_designs_keep_what_they_claim_and_the_bound_with_reuse() -> None:
    problem = diurnal(
        sites=6, pops=2, queries=8, hours=0.25, ad_hoc_part=0.3, shared_part=0.3, bandwidth=0.4, seed=2
    )
    assert problem.ad_hoc is not None
    assert problem.shares is not None
    bound = optimum.plan(problem).proof.bound
    assert bound is not None
    for design in SYSTEM.designs:
        plan = design.run(problem).plan
        assert plan is not None
        violations = check(problem, plan)
        assert set(violations.frame["limit"]) <= {"capacity"}, design.name
        if not len(violations):
            assert (measure(problem, plan, None)["value"] or 0.0) <= bound * (1 + 1e-9)


def test_the_formal_model_has_the_same_optimum_with_reuse() -> None:
    problem = share()
    solved = pyomo.solve_model(formulation(problem), Options(backend="pyomo:highs", gap=1e-7))
    assert solved.objective == pytest.approx(optimum.plan(problem).proof.objective, rel=1e-6)


def test_data_that_is_used_cannot_become_finer() -> None:
    problem = share()
    plan = optimum.plan(problem).plan
    assert plan is not None
    frame = plan.levels.copy()
    frame.loc[(frame["query"] == "q0") & (frame["interval"] == 2), "level"] = "10 s"
    frame.loc[(frame["query"] == "q2") & (frame["interval"] == 2), "level"] = "1 s"
    violations = check(problem, from_tables(problem, {"levels": frame}))
    assert "rules" in set(violations.frame["limit"])
    frame.loc[(frame["query"] == "q2") & (frame["interval"] == 2), "level"] = "10 s"
    assert not len(check(problem, from_tables(problem, {"levels": frame})))


def frame_of(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({name: [value] for name, value in columns.items()})


@pytest.mark.parametrize(
    ("table", "frame", "words"),
    [
        (
            "ad_hoc",
            frame_of(query="q3", interval=2.0, since=3.0),
            "ad_hoc row 1: since is 3, must be up to 2",
        ),
        ("ad_hoc", frame_of(query="q3", interval=9.0), "ad_hoc row 1: interval 9 is not in table intervals"),
        ("ad_hoc", frame_of(query="q4", interval=1.0), "'q4'"),
        ("shares", frame_of(query="q2", uses="q9"), "shares row 1: uses: there is no query 'q9'"),
        ("shares", frame_of(query="q2", uses="q2"), "must be a query with data of its own"),
        ("shares", frame_of(query="q2", uses="q1"), "combine of 'q2' is coarsest, must be sum"),
        ("shares", frame_of(query="q3", uses="q0"), "'q3' is in table ad_hoc, must not be"),
    ],
)
def test_bad_tables(table: str, frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(InputError) as refused:
        share(**{table: frame})
    assert words in "\n".join(refused.value.faults)
