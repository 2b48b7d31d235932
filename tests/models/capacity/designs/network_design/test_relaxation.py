"""Rows with flow keep every plan, and raise the bound of the linear relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner.contract.proof import Status
from planner_models.capacity.designs.network_design.design import reduce_instance
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Network
from planner_models.capacity.designs.network_design.relaxation import FlowRowSeparator
from tests.models.capacity.designs.network_design.instances import instances, solve_extended
from tests.models.capacity.designs.network_design.test_design import ring


def tightened(instance: Instance) -> tuple[float, float] | None:
    """Value of the relaxation with flow, without and with rows of single links; None where infeasible."""
    network = Network(instance, split=True)
    master = Master(instance, network, None, with_flow=True)
    rows = FlowRowSeparator(instance, network, master)
    solved = master.solve_relaxation(60.0)
    if solved is None:
        return None
    first = solved[1]
    for _ in range(20):
        assert solved is not None
        if not rows.separate(solved[0]):
            break
        solved = master.solve_relaxation(60.0)
    assert solved is not None
    return first, solved[1]


@settings(max_examples=40, deadline=None)
@given(instances(failures=False))
def test_no_plan_is_cut_off(instance: Instance) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    if not len(reduced.rate):
        return
    values, plain = tightened(reduced), solve_extended(reduced)
    if plain.status is Status.INFEASIBLE or values is None:
        return
    assert plain.objective is not None
    assert values[0] - 1e-6 <= values[1] <= plain.objective + 1e-5 * max(1.0, abs(plain.objective))


def test_one_small_demand_needs_whole_modules_on_its_path() -> None:
    """A demand of 1 with modules of 10 at 7 costs 7, and 0.7 without the rows."""
    first, selected = tightened(ring({(0, 2): 1.0})) or (np.nan, np.nan)
    assert first == pytest.approx(0.7)
    assert selected == pytest.approx(7.0)
