"""Traffic classes of demands: their tables, faults, and what they share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.networks.classes import share_by_class
from planner_models.traffic import Traffic
from planner_models.traffic.problem import series
from planner_models.traffic.problem.adjustments import adjust
from tests.models.traffic.networks import class_problems, problems

LINKS = pd.DataFrame([("a", "b", 10.0), ("b", "c", 5.0)], columns=["tail", "head", "capacity_mbps"])
DEMANDS = pd.DataFrame(
    [("a", "c", 4.0, "gold"), ("a", "c", 6.0, "bulk"), ("b", "c", 1.0, "bulk")],
    columns=["source", "target", "rate_mbps", "class"],
)
CLASSES = pd.DataFrame([("bulk", 2), ("gold", 1)], columns=["class", "priority"])


def example() -> Traffic:
    return Traffic.from_tables({"links": LINKS, "demands": DEMANDS, "classes": CLASSES})


def test_a_pair_has_a_demand_in_each_class() -> None:
    problem = example()
    assert problem.demand_labels == ["a->c (gold)", "a->c (bulk)", "b->c (bulk)"]
    assert problem.class_table["class"].tolist() == ["gold", "bulk"]
    assert problem.class_of.tolist() == [0, 1, 1]
    assert problem.find_demands(DEMANDS.iloc[::-1]).tolist() == [2, 1, 0]
    assert problem.size() == {"nodes": 3, "links": 2, "demands": 3, "classes": 2}
    assert problem.to_networkx().graph["demands"][("a", "c", "bulk")] == 6.0
    again = Traffic.from_tables(problem.to_tables())
    assert again.to_tables().keys() == {"nodes", "links", "demands", "classes"}
    assert again.demand_labels == problem.demand_labels


def test_classes_without_a_table_have_one_priority() -> None:
    problem = Traffic.from_tables({"links": LINKS, "demands": DEMANDS})
    assert problem.class_table["priority"].tolist() == [1, 1]
    assert problem.class_table["weight"].tolist() == [1.0, 1.0]


def test_demands_are_found_among_many_pairs_and_among_few(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner_models.traffic.problem import tables as module

    monkeypatch.setattr(module, "PAIRS_PER_DEMAND", 0)
    assert example().find_demands(DEMANDS).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"demands": DEMANDS.assign(**{"class": ["gold", "bulk", "bulky"]})},
            "demands row 3: class 'bulky' is no class of classes; did you mean 'bulk'?",
        ),
        (
            {"demands": DEMANDS.assign(**{"class": "bulk"})},
            "demands row 2: source 'a', target 'c', class 'bulk' is there already in row 1",
        ),
        (
            {"demands": DEMANDS.drop(columns="class").iloc[1:]},
            "demands: column 'class' is missing; the table classes needs it",
        ),
        ({"classes": CLASSES.assign(priority=0)}, "classes row 1: priority is 0.0, must be at least 1"),
        ({"classes": CLASSES.assign(priority=1.5)}, "classes row 1: priority is 1.5, must be a whole number"),
        ({"classes": CLASSES.assign(weight=0)}, "classes row 1: weight is 0.0, must be at least 1e-06"),
        (
            {"classes": pd.concat([CLASSES, CLASSES.iloc[:1]], ignore_index=True)},
            "classes row 3: class 'bulk' is there already in row 1",
        ),
    ],
)
def test_every_fault_is_one_line(tables: dict[str, pd.DataFrame], message: str) -> None:
    with pytest.raises(InputError) as error:
        Traffic.from_tables({"links": LINKS, "demands": DEMANDS, "classes": CLASSES, **tables})
    assert error.value.faults[0] == message


def test_a_table_of_demands_without_classes_is_a_fault() -> None:
    with pytest.raises(InputError, match="column 'class' is missing; demands have classes"):
        example().find_demands(DEMANDS.drop(columns="class"))


@given(problems(), st.floats(0.1, 10))
def test_a_problem_without_classes_is_its_own_merged_problem(problem: Traffic, factor: float) -> None:
    assert not problem.has_classes
    assert problem.merged is problem
    assert problem.commodity is problem.target
    assert "classes" not in problem.to_tables()
    assert "classes" not in problem.size()


@pytest.mark.slow
@given(class_problems(), st.integers(1, 9))
def test_classes_stay_with_other_rates(problem: Traffic, factor: int) -> None:
    other = problem.with_rates(problem.rate_mbps * factor)
    assert other.class_table.equals(problem.class_table)
    assert other.demand_labels == problem.demand_labels
    pairs = problem.demands.groupby(["source", "target"], sort=False)["rate_mbps"].sum()
    assert np.allclose(other.merged.rate_mbps, factor * pairs.to_numpy())
    assert list(zip(other.merged.demands["source"], other.merged.demands["target"], strict=True)) == list(
        pairs.index
    )
    ends = problem.merged.demands[["source", "target"]].iloc[problem.merged_row].to_numpy()
    assert (ends == problem.demands[["source", "target"]].to_numpy()).all()


def test_failures_and_overload_keep_classes() -> None:
    problem = adjust(example(), scale=2.0, fail_links=("b->c",), overload="priority", lost_demands="shed")
    assert problem.class_table["class"].tolist() == ["gold", "bulk"]
    assert problem.overload == "priority"
    assert problem.unreachable.all()


def test_a_series_has_classes(tmp_path: Path) -> None:
    steps = pd.concat([DEMANDS.assign(step="1"), DEMANDS.iloc[:2].assign(step="2")])
    steps.to_csv(tmp_path / "steps.csv", index=False)
    network = {"links": LINKS, "classes": CLASSES}
    result = [problem for _, problem in series.read(tmp_path / "steps.csv", network=network)]
    assert [problem.rate_mbps.tolist() for problem in result] == [[4.0, 6.0, 1.0], [4.0, 6.0, 0.0]]
    assert result[1].demand_labels == example().demand_labels
    for name, table in network.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    found_again = series.read_matrices(path=tmp_path / "steps.csv", network=tmp_path)
    assert found_again.busiest.class_table.equals(example().class_table)
    steps.drop(columns="class").iloc[[0, 2]].to_csv(tmp_path / "plain.csv", index=False)
    with pytest.raises(InputError, match="column 'class' is missing"):
        series.read(tmp_path / "plain.csv", network=network)


def share_one(available: float, requested: list[float], weight: list[float]) -> list[float]:
    """Return weighted max-min shares by progressive filling: an independent way to compute them."""
    inputs, active = [0.0] * len(requested), set(range(len(requested)))
    while active and available > 1e-12:
        level = available / sum(weight[i] for i in active)
        full = {i for i in active if requested[i] <= level * weight[i] * (1 + 1e-12)}
        for i in full or active:
            inputs[i] = requested[i] if full else level * weight[i]
            available -= inputs[i]
        active -= full or active
    return inputs


@given(st.data())
def test_shares_are_max_min_fair_within_a_priority(data: st.DataObject) -> None:
    count, groups = data.draw(st.integers(0, 8)), data.draw(st.integers(1, 3))

    def draw(low: int, high: int, size: int = count) -> np.ndarray:
        return np.array(data.draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=int)

    requested, group, priority, weight = draw(0, 9), draw(0, groups - 1), draw(1, 3), draw(1, 4)
    available = draw(0, 20, groups).astype(float)
    given_out = share_by_class(available, requested.astype(float), group, priority, weight.astype(float))
    for index in range(groups):
        remainder = available[index]
        for level in (1, 2, 3):
            here = np.flatnonzero((group == index) & (priority == level))
            expected = share_one(remainder, requested[here].astype(float).tolist(), weight[here].tolist())
            assert given_out[here] == pytest.approx(expected, abs=1e-9)
            remainder = max(remainder - sum(expected), 0.0)


def test_overload_by_priority_needs_no_classes() -> None:
    problem = replace(Traffic.from_tables({"links": LINKS, "demands": DEMANDS.iloc[1:]}), overload="priority")
    assert problem.overload == "priority"


def test_demands_are_split_into_classes_by_shares() -> None:
    plain = Traffic.from_tables({"links": LINKS, "demands": DEMANDS.drop(columns="class").iloc[1:]})
    problem = adjust(plain, class_shares={"gold": 0.25, "bulk": 0.75}, scale=2.0)
    assert problem.demand_labels == ["a->c (gold)", "a->c (bulk)", "b->c (gold)", "b->c (bulk)"]
    assert problem.rate_mbps.tolist() == [3.0, 9.0, 0.5, 1.5]
    assert problem.class_table["priority"].tolist() == [1, 2]
    assert problem.merged.rate_mbps.tolist() == [12.0, 2.0]
    with pytest.raises(InputError, match=r"shares add up to 0\.75, must be 1"):
        adjust(plain, class_shares={"bulk": 0.75})
    with pytest.raises(InputError, match="demands have classes already"):
        adjust(example(), class_shares={"bulk": 1.0})
