"""Plans that nodes install one after another: tables of both plans, loops, and the plan at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner_models.traffic.designs import ecmp
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.planned_routes import routes_of_plan
from planner_models.traffic.simulation.staged_update import STEPS, InstalledTables, share_by_demand
from tests.models.traffic.simulation.test_packet_level_simulation import diamond, ring, run


def install_all(problem: Traffic, seed: int = 1) -> InstalledTables:
    """Return the tables of a network whose nodes have all installed ECMP."""
    plan = ecmp.route(problem).plan
    assert plan is not None
    tables, routes = InstalledTables(problem, seed), routes_of_plan(problem, plan)
    for nodes in tables.draw_groups():
        tables.install(routes, nodes)
    assert abs(tables.share - share_by_demand(routes)).max() == 0
    return tables


def test_all_nodes_have_the_plan_at_the_end_and_none_twice() -> None:
    problem = ring()
    install_all(problem)
    groups = InstalledTables(problem, 2).draw_groups()
    assert len(groups) <= STEPS
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(problem.nodes)))


def test_nodes_without_the_plan_keep_their_tables() -> None:
    problem = diamond()
    plan = ecmp.route(problem).plan
    assert plan is not None
    routes = routes_of_plan(problem, plan)
    tables = InstalledTables(problem, 1)
    nodes = problem.find_nodes(pd.Series(["a"]))
    tables.install(routes, nodes)
    entries = tables.share.tocoo()
    assert set(problem.tail[entries.col].tolist()) == set(nodes.tolist())
    tables.drop_links(np.ones(len(problem.links), bool))
    assert tables.share.nnz == 0


def share_of_wide_way(**parameters: Any) -> float:
    """Return the share of packets on the wider of two ways, where the optimum sends three quarters."""
    settings: dict[str, Any] = {"decides": "once", "forwarding": "split", "until_s": 0.1, "sigma": 0.0}
    settings |= {"median_bytes": 1e6, "duplicate_acks": 30}
    result = run("optimum", diamond(40.0), **settings, **parameters)
    links = result.tables["links"].set_index(["tail", "head"])[["sent", "dropped"]].sum(axis=1)
    return float(links["a", "b"] / (links["a", "b"] + links["a", "c"]))


@pytest.mark.parametrize("seed", range(3))
def test_a_node_splits_by_the_plan_once_it_has_it(seed: int) -> None:
    """Of six nodes one has the plan until 0.1 s of an update of 0.6 s; without it flows are hashed."""
    problem = diamond()
    first = problem.nodes["node"].to_numpy()[InstalledTables(problem, seed).draw_groups()[0]]
    share = share_of_wide_way(update_s=0.6, seed=seed)
    assert share == pytest.approx(0.75, abs=0.02) if first.tolist() == ["a"] else share in (0.0, 1.0)
    assert share_of_wide_way(update_s=1e-9, seed=seed) == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("name", ["optimum", "ecmp", "localflow", "valiant"])
def test_an_update_during_a_failure_ends_with_traffic(name: str) -> None:
    settings: dict[str, Any] = {"until_s": 0.3, "interval_s": 0.05, "update_s": 0.03, "sigma": 0.0}
    result = run(name, ring(), fails=["a<->b"], fails_at_s=0.1, repair_s=0.05, median_bytes=5e3, **settings)
    progress, links = result.tables["progress"], result.tables["links"]
    before, after = np.interp([0.25, 0.3], progress["at_s"], progress["sent_mbit"])
    assert after - before > 0.3
    assert (links["sent"] >= links["received"] + links["cut"]).all()
