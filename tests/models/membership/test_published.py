"""Values of the three papers that membership rests on: what follows from runs, and printed errors."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.membership import published
from planner_models.membership.simulation import reactions


class Quick:
    """Services of the engine, none of which these targets need."""

    quick = True

    def compare(self, *_: object, **__: object) -> None:
        """Refuse."""
        raise AssertionError


def test_statements_on_agreement_are_true_but_for_printed_errors() -> None:
    values = published.find_agreement(Quick()).values  # type: ignore[arg-type]
    wrong = {name for name, value in values.items() if value is False}
    assert wrong == {"agr_monitor_phi_alg", "agr_growth_x", "agr_growth_y"}
    assert values["agr_waste_limit"] == 6


def test_statements_on_discovery_are_true_but_for_printed_errors() -> None:
    values = published.find_discovery(Quick()).values  # type: ignore[arg-type]
    wrong = {name for name, value in values.items() if value is False}
    assert wrong == {"disc_star", "disc_joiner", "disc_s_proof"}


def test_reactions_are_those_of_figure_10_but_for_the_host_module() -> None:
    values = published.find_reactions(Quick()).values  # type: ignore[arg-type]
    assert {name for name, value in values.items() if value is False} == {"memb_f10_module"}


def test_flooding_beyond_the_backstop_is_taken_for_a_failure() -> None:
    random = np.random.default_rng(0)
    bed = reactions.inject("flood")
    bed.spike_s = reactions.BACKSTOP_S + 1
    assert reactions.react(bed, reactions.CLIENT, reactions.TARGET, random).monitor == "backstop"


def test_a_link_beside_the_path_changes_nothing() -> None:
    bed = reactions.Testbed()
    bed.link_up[12] = False
    random = np.random.default_rng(0)
    assert reactions.react(bed, reactions.CLIENT, reactions.TARGET, random).monitor is None
    assert reactions.hears(bed, reactions.CLIENT, reactions.TARGET)


@pytest.mark.parametrize(("first", "last", "links"), [(4, 7, {1, 2, 4, 7}), (4, 5, {4, 5}), (0, 12, {3, 12})])
def test_paths_of_the_tree_go_up_and_down(first: int, last: int, links: set[int]) -> None:
    assert set(reactions.path(first, last)[1]) == links


def test_more_members_tolerate_more_failures_with_definitive_reports() -> None:
    for members in range(3, 8):
        assert published.tolerates("fence", members) > published.tolerates("majority", members)
