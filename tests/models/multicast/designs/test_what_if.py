"""Capacity reports: changes are solved again, and rules are compared to the baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from planner.contract.studies import Decided
from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.designs import what_if
from planner_models.multicast.designs.partitioned_aggregated import partition_and_share
from planner_models.multicast.problem import generators
from tests.commands import planner
from tests.models.multicast.fabrics import datacenter


def explain(problem: Multicast, baseline: object = None, **parameters: object) -> dict[str, pd.DataFrame]:
    """Return the tables of the report on the default plan, by title."""
    decision = partition_and_share(problem)
    decided = Decided(
        design=SYSTEM.design("partitioned_aggregated"),
        parameters={},
        decision=decision,
        metrics=SYSTEM.plan.measure(problem, decision.plan, None),
        baseline=baseline,
    )
    prices = what_if.explain(problem, decided, **parameters)  # type: ignore[arg-type]
    assert all(sentence.endswith(".") for sentence in prices.sentences)
    return {section.title: section.frame for section in prices.sections}


def test_changes_are_solved_by_the_design() -> None:
    problem = datacenter()
    table = explain(problem)["changes of tables and copies"].set_index("change")
    larger = datacenter(table_size=37)  # 1.5 times 25, rounded down
    traffic = partition_and_share(larger).proof.objective
    assert table.loc["all tables x 1.5", "host_traffic_mbps"] == pytest.approx(traffic)
    fewer = datacenter(aggregation_copies=1)
    traffic = partition_and_share(fewer).proof.objective
    assert table.loc["ra = 1, rc = 1, n = 16", "host_traffic_mbps"] == pytest.approx(traffic)
    now = partition_and_share(problem).proof.objective
    assert table["gain"].tolist() == pytest.approx((now - table["host_traffic_mbps"]).tolist())
    assert (table["gain"].diff().dropna() <= 0).all()


def test_rules_since_the_same_plan_are_none() -> None:
    problem = datacenter()
    plan = partition_and_share(problem).plan
    assert not len(explain(problem, plan, candidates=0)["rules to add and remove since the previous plan"])


def test_own_tables_of_1000_groups_give_a_capacity_report_and_the_plan(tmp_path: Path) -> None:
    problem = generators.datacenter(k=8, aggregation_copies=2, groups=1000, table_size=60, tenants=12, seed=3)
    folder = tmp_path / "mine"
    folder.mkdir()
    tables = problem.to_tables()
    tables["fabric"] = tables["fabric"].assign(core_entries=400, aggregation_entries=400)
    for name in ("fabric", "groups", "members"):
        tables[name].to_csv(folder / f"{name}.csv", index=False)
    (tmp_path / "mine.toml").write_text('system = "multicast"\n[problem]\nsource = "tables"\npath = "mine"\n')
    result = planner("explain", tmp_path / "mine.toml", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)["explanation"]
    assert any("groups have table entries" in sentence for sentence in report["sentences"])
    titles = {section["title"] for section in report["sections"]}
    assert {"entries by layer", "switches that fill first", "groups that fit, by table size"} <= titles
    result = planner("solve", tmp_path / "mine.toml", "--out", tmp_path / "out", "--table-format", "csv")
    assert result.code == 0, result.err
    (plan,) = (tmp_path / "out").glob("*/plan")
    partitions = pd.read_csv(plan / "partitions.csv")
    assert set(partitions["group"]) <= set(problem.groups["group"])
    shared = pd.read_csv(plan / "meta_groups.csv")
    assert set(shared.columns) == {"switch", "meta_group", "group"}
    assert len(shared)
    entries = pd.read_csv(plan / "entries.csv").groupby("layer")["entries"].max()
    assert entries["edge"] <= 60 < entries["aggregation"]
