"""Costs of geostore's designs equal those of the peers' programs where the models agree."""

from __future__ import annotations

import pytest

from benchmarks.geostore_peers import EQUAL, compare, make


@pytest.mark.parametrize("one_price", [True, False])
@pytest.mark.parametrize("name", ["spanstore", "skypie"])
def test_costs_equal_the_peers_programs(name: str, one_price: bool) -> None:
    for seed in (3, 4):
        ours, program, _, _ = compare(make(6, 2, one_price=one_price, seed=seed), name)
        assert program <= ours * (1 + EQUAL)
        if one_price or name == "skypie":
            assert ours == pytest.approx(program, rel=EQUAL)
