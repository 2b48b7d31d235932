"""Updates between plans of system `traffic`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import planner
from planner.errors import InputError
from planner_models.updates import SYSTEM, check
from planner_models.updates.problem import traffic_plans


def save(folder: Path, design: str, **changes: object) -> Path:
    """Save the plan of a design for Abilene, and return its folder."""
    given = {f"problem.{key}": value for key, value in changes.items()}
    run = planner.solve(planner.load("traffic/abilene", changes=given), design=design)
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
        pd.read_csv(one / "links.csv").set_index(["tail", "head"])["load_mbps"] for one in (before, after)
    ]
    for made, given in zip(problem.link_loads, loads, strict=True):
        ours = pd.Series(made, index=pd.MultiIndex.from_frame(problem.links[["from", "to"]]))
        assert ours.reindex(given.index).to_numpy() == pytest.approx(given.to_numpy(), rel=1e-6, abs=1e-6)
    for name in ("ordered", "two_phase_changed", "batches"):
        decision = SYSTEM.design(name).run(problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan).of_limits(decision.guarantees)), name


def test_a_folder_without_a_plan_names_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "ecmp" / "plan").mkdir(parents=True)
    with pytest.raises(InputError, match="it has those of designs ecmp: choose one"):
        traffic_plans.read(before=tmp_path, after=tmp_path)
