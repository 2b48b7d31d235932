"""Updates between plans of system `traffic`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import planner
from planner.errors import InputError
from planner_models import traffic
from planner_models.updates import SYSTEM, Update, check
from planner_models.updates.problem import generators, traffic_plans


def save(folder: Path, design: str, **changes: object) -> Path:
    """Save the plan of a design for Abilene, and return its folder."""
    inputs = {f"problem.{key}": value for key, value in changes.items()}
    run = planner.solve(planner.load("traffic/abilene", changes=inputs), design=design)
    assert run.plan is not None
    folder.mkdir()
    for name, frame in run.plan.to_tables().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_a_link_is_taken_out_of_service(tmp_path: Path) -> None:
    before = save(tmp_path / "before", "ecmp")
    after = save(tmp_path / "after", "ecmp", fail_links=["CHINng->IPLSng", "IPLSng->CHINng"])
    problem = traffic_plans.read(before=before, after=after, headroom=0.1)
    assert problem.slots.changes.any()
    assert problem.enters_now.all()
    loads = [
        pd.read_csv(item / "links.csv").set_index(["tail", "head"])["load_mbps"] for item in (before, after)
    ]
    for made, inputs in zip(problem.link_loads, loads, strict=True):
        ours = pd.Series(made, index=pd.MultiIndex.from_frame(problem.links[["from", "to"]]))
        assert ours.reindex(inputs.index).to_numpy() == pytest.approx(inputs.to_numpy(), rel=1e-6, abs=1e-6)
    for name in ("ordered", "two_phase_changed", "batches"):
        decision = SYSTEM.design(name).run(problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan).of_limits(decision.guarantees)), name


def test_the_rules_after_an_update_are_the_routing_that_it_was_made_for(tmp_path: Path) -> None:
    changes = {"fail_links": ["CHINng->IPLSng", "IPLSng->CHINng"]}
    folders = [save(tmp_path / "before", "ecmp"), save(tmp_path / "after", "ecmp", **changes)]
    made = traffic_plans.read(before=folders[0], after=folders[1])
    problem = Update.from_tables(made.to_tables())
    for after, folder in enumerate(folders):
        inputs = {f"problem.{key}": value for key, value in changes.items()} if after else {}
        network = planner.load("traffic/abilene", changes=inputs).make_problem()
        flows = traffic_plans.to_flows(problem, after=bool(after))
        ours = traffic.SYSTEM.plan.from_tables(network, {"flows": flows})
        theirs = traffic.SYSTEM.plan.from_tables(network, {"flows": pd.read_csv(folder / "flows.csv")})
        loads = [plan.links.set_index(["tail", "head"])["load_mbps"] for plan in (ours, theirs)]
        assert loads[0].to_numpy() == pytest.approx(loads[1].to_numpy(), rel=1e-6, abs=1e-6)
        result = [traffic.SYSTEM.plan.check(network, plan) for plan in (ours, theirs)]
        assert set(result[0].frame["limit"]) == set(result[1].frame["limit"]) == {"capacity"}


def test_flows_need_the_source_of_all_traffic() -> None:
    with pytest.raises(InputError, match="classes row 1: class 'tree' has no ingress; flows need the source"):
        traffic_plans.to_flows(generators.small())


def test_a_folder_without_a_plan_names_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "ecmp" / "plan").mkdir(parents=True)
    with pytest.raises(InputError, match="it has those of designs ecmp: choose one"):
        traffic_plans.read(before=tmp_path, after=tmp_path)


def test_a_link_without_limit_has_none_in_the_steps_of_a_change() -> None:
    links = [("a", "b", 10_000.0), ("b", "c", 1e12), ("a", "c", 5_000.0), ("b", "c", 3_000.0)]
    network = traffic.Traffic.from_tables(
        {
            "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]).assign(
                parallel=[1, 1, 1, 2]
            ),
            "demands": pd.DataFrame({"source": ["a"], "target": ["c"], "rate_mbps": [8_000.0]}),
        }
    )
    change = planner.diff(network, "shortest_path", "optimum")
    assert change.update is not None
    assert change.update.problem is not None
    steps = change.update.problem.links.set_index(["from", "to"])["capacity_mbps"]
    assert pd.isna(steps["b", "c"])
    assert steps["a", "c"] == 5_000
    assert steps["a", "b"] == 10_000
    same = planner.diff(network, "optimum", "optimum")
    assert same.sentences == ["The plans are the same."]
