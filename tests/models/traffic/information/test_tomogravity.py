"""Tomogravity: the estimate makes the loads, is nearest to gravity, and is better than gravity alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.information import observe_reports, tomogravity
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems

LINE = network(
    both_ways([("a", "b", 10.0), ("b", "c", 10.0)]),
    [("a", "b", 1.0), ("a", "c", 2.0), ("b", "c", 3.0), ("c", "a", 4.0)],
)


@settings(max_examples=12)
@given(problems(max_nodes=5, max_demands=5), st.integers(0, 2**32 - 1))
def test_the_estimate_makes_the_loads_with_the_least_entropy(problem: Traffic, seed: int) -> None:
    share = tomogravity.ecmp_shares(problem)
    load = np.asarray(share.T @ problem.rate_mbps)
    result = tomogravity.estimate(problem, share, load)
    assert (result >= 0).all()
    assert np.asarray(share.T @ result) == pytest.approx(load, rel=1e-6, abs=1e-6)
    nodes = len(problem.nodes)
    prior = np.bincount(problem.tail, load, nodes)[problem.source]
    prior = prior * np.bincount(problem.head, load, nodes)[problem.target]

    def entropy(rate: np.ndarray) -> float:
        return float((rate * np.log(np.maximum(rate, 1e-300) / prior)).sum() - rate.sum())

    # of all demands that make the loads, none has less relative entropy (the scale of the prior matters not
    # where the loads fix the total; so the prior is scaled as the estimate scales it)
    prior = prior * float(load @ load) / float(share.T @ prior @ load)
    random = np.random.default_rng(seed)
    kernel = np.eye(len(result)) - np.linalg.pinv(share.T.toarray()) @ share.T.toarray()
    for _ in range(10):
        step = kernel @ random.normal(size=len(result))
        other = result + 1e-3 * step
        if (other >= 0).all():
            assert entropy(other) >= entropy(result) - 1e-6 * abs(entropy(result))


def test_demands_that_the_loads_fix_are_exact() -> None:
    share = tomogravity.ecmp_shares(LINE)
    load = np.asarray(share.T @ LINE.rate_mbps)
    totals = (np.array([3.0, 3.0, 4.0]), np.array([4.0, 1.0, 5.0]))
    result = tomogravity.estimate(LINE, share, load, totals)
    assert result == pytest.approx(LINE.rate_mbps, rel=1e-6)
    assert tomogravity.measure_error(LINE.rate_mbps, result) < 1e-6


def test_a_link_without_traffic_has_no_demand() -> None:
    share = tomogravity.ecmp_shares(LINE)
    quiet = np.where(np.array(LINE.link_labels) == "b->c", 0.0, np.asarray(share.T @ LINE.rate_mbps))
    result = tomogravity.estimate(LINE, share, quiet)
    assert result[1] == 0
    assert result[2] == 0


def test_a_controller_that_sees_loads_is_better_than_gravity() -> None:
    problem = generators.sample()
    seen = observe_reports(problem, link_loads=True)
    gravity = observe_reports(problem, granularity=len(problem.nodes))
    error, plain = (tomogravity.measure_error(problem.rate_mbps, item.rate_mbps) for item in (seen, gravity))
    assert error <= plain + 1e-9
    with pytest.raises(InputError, match=r"^link_loads and granularity"):
        observe_reports(problem, link_loads=True, granularity=2)


def save(folder: Path, **tables: pd.DataFrame) -> Path:
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def loads_of(problem: Traffic) -> pd.DataFrame:
    load = tomogravity.ecmp_shares(problem).T @ problem.rate_mbps
    return problem.links[["tail", "head"]].assign(load_mbps=load)


def test_source_reads_tables(tmp_path: Path) -> None:
    links = LINE.links[["tail", "head", "capacity_mbps"]]
    totals = pd.DataFrame(
        {"node": ["a", "b", "c"], "egress_mbps": [3.0, 3.0, 4.0], "ingress_mbps": [4.0, 1.0, 5.0]}
    )
    folder = save(tmp_path, links=links, loads=loads_of(LINE), totals=totals)
    result = SYSTEM.problem.sources["link_loads"](path=folder)
    assert loads_of(result)["load_mbps"].to_numpy() == pytest.approx(loads_of(LINE)["load_mbps"].to_numpy())
    sent = result.demands.groupby("source")["rate_mbps"].sum()
    assert sent.to_dict() == pytest.approx({"a": 3.0, "b": 3.0, "c": 4.0})
    save(tmp_path, loads=loads_of(LINE).head(1).assign(head="z"))
    with pytest.raises(InputError, match=r"^loads.csv row 2: a->z is no link of the network"):
        tomogravity.read(tmp_path)
    save(tmp_path, loads=loads_of(LINE).assign(load_mbps=0.0))
    with pytest.raises(InputError, match="no link carries anything"):
        tomogravity.read(tmp_path)
