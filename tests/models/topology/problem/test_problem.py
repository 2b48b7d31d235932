"""Problems of system `topology`: bad tables, adjustments, and presets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.topology import Fabric
from planner_models.topology.problem import generators
from planner_models.topology.problem.adjustments import adjust
from tests.models.topology.fabrics import fabric

TABLES = generators.small().to_tables()

BAD: dict[str, tuple[str, Any, str]] = {
    "half a port": ("blocks", {"ports": 2.5}, "blocks row 1: ports is 2.5, must be a whole number"),
    "no rate": ("blocks", {"port_mbps": 0.0}, "blocks row 1: port_mbps is 0.0, must be greater than 0"),
    "an unknown target": (
        "demands",
        {"target": [*TABLES["demands"]["target"][:-1], "b9"]},
        "demands row 12: target 'b9' is no block of the fabric",
    ),
    "a block with itself": (
        "links",
        {"other_block": "b1"},
        "block and other_block are both 'b1', must differ",
    ),
    "too many links": (
        "links",
        {"links": 9.0},
        "links: block 'b1' has 27 links, must have at most its 6 ports",
    ),
    "no step": ("fabric", {"step_limit": 0.0}, "fabric row 1: step_limit is 0.0, must be at least 1"),
    "no demand": ("demands", {"rate_mbps": 0.0}, "demands: every rate_mbps is 0, one must be greater"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_by_row(case: str) -> None:
    table, columns, words = BAD[case]
    tables = {**TABLES, table: TABLES[table].assign(**columns)}
    with pytest.raises(InputError) as result:
        Fabric.from_tables(tables)
    assert any(words in fault for fault in result.value.faults), result.value.faults


def test_two_rows_of_the_same_blocks_are_refused() -> None:
    with pytest.raises(InputError, match="blocks 'b' and 'a' have a row already, must have one"):
        fabric([[0, 1], [0, 0]], links=[(0, 1, 1), (1, 0, 1)])


def test_tables_make_the_problem_again() -> None:
    problem = generators.small()
    again = Fabric.from_tables(problem.to_tables())
    assert (again.demand_mbps == problem.demand_mbps).all()
    assert (again.present == problem.present).all()
    assert again.move_limit == 4
    assert again.step_limit == 2


def test_a_lost_block_takes_its_links_and_its_demand_is_unserved() -> None:
    problem = adjust(generators.small(), fail_blocks=("b2",))
    assert problem.ports.tolist() == [6, 0, 6, 6]
    assert problem.present is not None
    assert problem.present.sum(axis=1).tolist() == [4, 0, 4, 4]
    assert problem.demand_mbps.sum() == generators.small().demand_mbps.sum()
    assert not problem.servable_mbps[1].any()
    assert not problem.servable_mbps[:, 1].any()


def test_other_adjustments() -> None:
    problem = generators.small()
    assert adjust(problem, scale=2.0).demand_mbps.sum() == pytest.approx(2 * problem.demand_mbps.sum())
    assert adjust(problem, port_factors={"b1": 2.0}).ports.tolist() == [12, 6, 6, 6]
    free = adjust(problem, free_links=True)
    assert free.present is None
    assert free.move_limit is None
    assert adjust(problem, move_limit=1).move_limit == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fail_blocks": ("b22",)}, "fail_blocks: 'b22' is no block; did you mean 'b2'?"),
        ({"port_factors": {"x": 2.0}}, "port_factors: 'x' is no block"),
        ({"free_links": True, "move_limit": 2}, "move_limit: the problem has no links of today"),
    ],
)
def test_bad_adjustments_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as result:
        adjust(generators.small(), **changes)
    assert words in str(result.value)


@pytest.mark.parametrize("ports", [[4, 4, 4, 4], [1, 2, 3, 9], [0, 5, 5, 5], [7, 7, 7, 7, 7]])
def test_a_mesh_is_even_and_within_ports(ports: list[int]) -> None:
    links = generators.mesh(np.array(ports))
    assert (links == links.T).all()
    assert (links.sum(axis=1) <= ports).all()
    if len(set(ports)) == 1:
        pairs = links[~np.eye(len(ports), dtype=bool)]
        assert pairs.max() - pairs.min() <= 1


def test_balanced_demand_uses_every_block_alike() -> None:
    problem = generators.balanced(blocks=6, load=0.5)
    sent = problem.demand_mbps.sum(axis=1)
    assert sent == pytest.approx(np.full(6, 0.5 * 64 * 100_000), rel=1e-4)


def test_links_without_a_table_are_unknown() -> None:
    problem = Fabric.from_tables({name: TABLES[name] for name in ("blocks", "demands")})
    assert problem.present is None
    assert isinstance(problem.to_tables()["blocks"], pd.DataFrame)
