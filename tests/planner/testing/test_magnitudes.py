"""Amounts of other magnitudes: what the tests change, that they catch errors, and our systems on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner.scenarios.catalogue import find_system, system_names
from planner.testing import check_magnitudes
from planner.testing.cases import run_cases
from planner.testing.magnitudes import (
    FACTORS,
    SEEDS,
    magnitude_cases,
    other_magnitudes,
    scale_amounts,
    spread_amounts,
)
from planner_models.contracts.plan.plan import Loads
from planner_models.contracts.problem.problem import Month
from tests.fuzzing.bases import bases
from tests.planner.testing.quick_parameters import QUICK_PARAMETERS

COLUMNS: Mapping[str, Sequence[str]] = {
    "analytics": ("volume.records", "volume.cells", "queries.value_usd"),
    "brokering": ("clusters.bandwidth_cost", "clusters.colocation_cost", "contracts.price"),
    "capacity": ("modules.cost", "modules.cost_per_km", "links.setup_cost"),
    "contracts": ("contracts.price_per_mbps", "tiers.price_per_mbps"),
    "flowtables": ("flows.packets",),
    "livevideo": ("links.cost",),
    "queries": ("queries.weight",),
}
"""Amounts in columns without a unit of their own."""
MUST_FIT = ("consolidation",)
"""Systems that refuse a machine that fits on no host, as sizes of many decades make."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_last", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["first seed", "last seed"]
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.exhaustive] if name == "coflows" else [])  # takes a minute
        for name in system_names()
    ],
)
def test_plans_keep_limits_and_bounds_at_all_magnitudes(name: str, is_last: bool) -> None:
    """The problem of the last seed, which is one more of 15 decades, is for the exhaustive tests."""
    base = next(base for base in bases() if base.system.name == name)
    options = Options(threads=1, seed=1, time_limit_s=5.0)
    cases = magnitude_cases(
        base.system,
        problems=[base.problem],
        columns=COLUMNS.get(name, ()),
        parameters=QUICK_PARAMETERS.get(name),
        options=options,
    )
    selected = [case for case in cases if (f"seed {SEEDS[-1]}: " in case.name) == is_last]
    assert selected
    run_cases(f"system '{name}'", selected)


@pytest.mark.parametrize("name", system_names())
def test_every_problem_has_amounts_of_many_decades(name: str) -> None:
    """Whole numbers, such as of packets, have no decades below 1."""
    system = find_system(name)
    base = next(base for base in bases() if base.system.name == name)
    titles = []
    for title, tables in other_magnitudes(system, base.tables, columns=COLUMNS.get(name, ())):
        titles.append(title)
        try:
            system.problem.from_tables(tables)
        except InputError:
            assert name in MUST_FIT, title
            assert "decades" in title
            continue
        changed = np.concatenate(
            [
                (new := frame[column].to_numpy(float))[new != base.tables[table][column].to_numpy(float)]
                for table, frame in tables.items()
                for column in frame.select_dtypes("number")
            ]
        )
        amounts = changed[changed > 0]
        assert len(amounts), title
        if "decades" in title:
            assert amounts.max() / amounts.min() >= 1e6, title
    assert len(titles) == len(FACTORS) + len(SEEDS)


def test_amounts_are_scaled_and_nothing_else() -> None:
    system = find_system("traffic")
    tables = next(base for base in bases() if base.system.name == "traffic").tables
    made = scale_amounts(system, tables, 1e6)
    assert made["links"]["capacity_mbps"].tolist() == (tables["links"]["capacity_mbps"] * 1e6).tolist()
    assert made["links"]["weight"].tolist() == tables["links"]["weight"].tolist()
    spread = spread_amounts(system, tables, 1)["links"]["capacity_mbps"].to_numpy()
    assert spread.min() <= 1e-6
    assert spread.max() >= 1e8


@pytest.mark.slow
def test_an_error_that_is_small_beside_the_sample_alone_is_found() -> None:
    """A design that sends 1e-7 Mbit/s too much in each window passes at the size of the sample."""
    base = next(base for base in bases() if base.system.name == "contracts")
    ours = base.system.default_design

    def careless(problem: Month, *, options: Options = Options()) -> Decision[Any]:
        """Send a little too much, whatever the amounts are."""
        plan = ours.run(problem, options=options).plan
        loads = plan.loads.assign(load_mbps=plan.loads["load_mbps"] + 1e-7)
        return Decision(plan=Loads(loads=loads), proof=Proof(status=Status.FEASIBLE))

    false = dataclasses.replace(ours, name="careless", decide=careless, model=None)
    wrong = dataclasses.replace(base.system, designs=(false,))
    with pytest.raises(AssertionError) as result:
        check_magnitudes(wrong, problems=[base.problem])
    lines = str(result.value).splitlines()[1:]
    assert {line.split(", ")[1].split(":")[0] for line in lines} >= {"amounts times 1e-06"}
    assert not any("amounts times 1e+06" in line for line in lines)
