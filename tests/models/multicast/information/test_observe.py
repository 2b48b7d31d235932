"""Observations of members and rates: age, noise and granularity change what they should, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from planner.contract.parameters import parameters_of
from planner.errors import InputError
from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.information.observe import observe_groups
from tests.models.multicast.fabrics import fat, tree

DEGRADATIONS = ("age_s", "noise", "granularity_groups")


def members(problem: Multicast) -> set[tuple[str, str]]:
    return set(problem.members.astype(str).itertuples(index=False, name=None))


def test_the_truth_is_the_problem_itself() -> None:
    problem = fat()
    assert observe_groups(problem, seed=3, turnover_per_s=9.0) is problem
    assert observe_groups(problem, granularity_groups=1) is problem


def test_controllers_have_degradations_and_switches_alone_have_none() -> None:
    for design in SYSTEM.designs:
        names = parameters_of(design.observe)
        if design.name == "per_switch":
            assert not names
        else:
            assert {*DEGRADATIONS, "seed"} <= set(names)
            assert all(names[degradation].default == 0 for degradation in DEGRADATIONS)


def test_age_changes_members_and_nothing_else() -> None:
    problem = fat()
    old = observe_groups(problem, age_s=60, seed=1)
    assert members(old) != members(problem)
    assert members(observe_groups(problem, age_s=60, seed=1)) == members(old)
    assert members(observe_groups(problem, age_s=60, seed=2)) != members(old)
    assert old.groups is problem.groups
    assert old.fabric is problem.fabric
    np.testing.assert_array_equal(old.member_counts, problem.member_counts)
    assert observe_groups(problem, age_s=60, turnover_per_s=0) is problem


def test_members_are_hosts_of_the_tenant_each_once() -> None:
    problem = fat(groups=200, seed=4)
    old = observe_groups(problem, age_s=1e6, seed=4)  # nobody has stayed
    rows = old.members.astype(str)
    assert not rows.duplicated().any()
    tenant_of = dict(zip(problem.groups["group"], problem.groups["tenant"], strict=True))
    assert problem.tenants is not None
    hosts = set(problem.tenants.astype(str).itertuples(index=False, name=None))
    assert {(tenant_of[group], host) for group, host in rows.itertuples(index=False, name=None)} <= hosts


def test_as_many_stay_as_the_turnover_says() -> None:
    problem = fat(k=8, groups=400, tenants=4, largest_tenant=120)
    old = observe_groups(problem, age_s=100, turnover_per_s=0.01, seed=5)
    stayed = len(members(old) & members(problem)) / len(problem.members)
    size = problem.member_counts
    full = problem.groups["tenant"].map(problem.tenants["tenant"].value_counts()).to_numpy(float)
    keep = np.exp(-0.5)
    # who leaves may come back: of those drawn in his place, as large a part as of all who do not stay
    again = (1 - keep) * size / (full - keep * size)
    expected = float((size * (keep + (1 - keep) * again)).sum() / size.sum())
    assert stayed == pytest.approx(expected, rel=0.03)


def test_age_needs_tenants() -> None:
    with pytest.raises(InputError, match="tenants: dynamics need this table"):
        observe_groups(Multicast.from_tables(tree()), age_s=60)


def test_noise_changes_rates_and_nothing_else() -> None:
    problem = fat(groups=2000, tenants=20)
    noisy = observe_groups(problem, noise=0.5, seed=1)
    change = np.log(noisy.rate_mbps / problem.rate_mbps)
    assert change.std() == pytest.approx(0.5, rel=0.1)
    assert change.mean() == pytest.approx(0, abs=0.05)
    assert noisy.members is problem.members
    assert noisy.groups["tenant"] is problem.groups["tenant"] or noisy.groups["tenant"].equals(
        problem.groups["tenant"]
    )
    assert problem.rate_mbps is not noisy.rate_mbps


def test_granularity_averages_blocks_of_a_tenant_and_keeps_the_sum() -> None:
    problem = fat()
    coarse = observe_groups(problem, granularity_groups=3)
    rates = problem.groups.assign(told=coarse.rate_mbps)
    for _, own_values in rates.groupby("tenant"):
        for first in range(0, len(own_values), 3):
            block = own_values.iloc[first : first + 3]
            np.testing.assert_allclose(block["told"], block["rate_mbps"].mean())
    full = problem.groups.assign(told=observe_groups(problem, granularity_groups=1000).rate_mbps).groupby(
        "tenant"
    )
    assert (full["told"].nunique() == 1).all()
    assert coarse.rate_mbps.sum() == pytest.approx(problem.rate_mbps.sum())


def test_without_tenants_all_groups_are_one() -> None:
    problem = Multicast.from_tables(tree())
    assert np.unique(observe_groups(problem, granularity_groups=1000).rate_mbps.round(9)).tolist() == [
        pytest.approx(problem.rate_mbps.mean(), abs=1e-8)
    ]
