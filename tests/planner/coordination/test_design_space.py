"""The recipes: every cell of the design space, and every system of Table 1.1 by its constraints alone."""

from __future__ import annotations

import functools
import itertools
import json
import shlex

import pytest

from planner.contract.design import Mechanism
from planner.coordination.design_space import (
    Flow,
    Information,
    PriorSystem,
    Resources,
    Separation,
    recommend,
    review,
    table_1_1,
)
from planner.errors import InputError
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import load
from tests.commands import planner

CELLS = {
    ("none", "disjoint"): ["reaction"],
    ("none", "partial"): ["reaction"],
    ("none", "full"): ["reaction"],
    ("incomplete", "disjoint"): ["priority ranking"],
    ("incomplete", "partial"): ["hierarchical partitioning", "priority ranking"],
    ("incomplete", "full"): ["hierarchical partitioning"],
    ("complete", "disjoint"): ["transparency"],
    ("complete", "partial"): ["transparency"],
    ("complete", "full"): ["transparency"],
}
reviewed = functools.cache(review)
WITHOUT_PRIOR_WORK = {("none", "partial"), ("incomplete", "partial"), ("complete", "full")}
DIFFER = {"cdn_selection_isp_te", "ospf_areas", "competing_cc", "cc_aqm", "dash"}


@pytest.mark.parametrize(("information", "resources"), CELLS)
def test_every_cell_has_its_mechanism(information: str, resources: str) -> None:
    advice = recommend(information=information, resources=resources)
    assert [str(mechanism) for mechanism in advice.mechanisms] == CELLS[information, resources]
    told = any("no prior work" in sentence for sentence in advice.why)
    assert told == ((information, resources) in WITHOUT_PRIOR_WORK)


def test_the_table_has_its_nineteen_systems() -> None:
    systems = table_1_1()
    assert len(systems) == 19
    cells = {(system.information, where) for system in systems for where in system.resources}
    empty = {
        (str(information), str(where))
        for information, where in itertools.product(Information, Resources)
        if (information, where) not in cells
    }
    assert empty == WITHOUT_PRIOR_WORK


def test_constraints_decide_and_not_what_a_system_does_today() -> None:
    result = {item.system.id: item for item in review()}
    assert {name for name, item in result.items() if not item.same} == DIFFER
    assert result["dash"].recommended == (Mechanism.TRANSPARENCY,)
    assert result["cdn_selection_isp_te"].recommended == (Mechanism.PRIORITY_RANKING,)
    assert result["ospf_areas"].recommended == (Mechanism.TRANSPARENCY,)
    assert Mechanism.TRANSPARENCY in result["competing_cc"].recommended
    assert result["cc_aqm"].recommended == ()
    assert "ECN" in result["cc_aqm"].why


@pytest.mark.parametrize("system", table_1_1(), ids=lambda system: system.id)
def test_each_system_of_the_table_runs_or_says_why_not(system: PriorSystem) -> None:
    assert bool(system.command) != bool(system.reason)
    if system.command:
        verb, name, flag, labels = shlex.split(system.command)[1:]
        assert verb in ("compare", "simulate")
        assert flag == "--designs"
        assert set(labels.split(",")) <= {entry.label for entry in load(name).designs}


def test_information_flows_none_one_or_two_ways() -> None:
    flows = {system.id: system.flows for system in table_1_1()}
    assert flows["ospf_areas"] == (Flow.NONE,)
    assert flows["p4p"] == (Flow.ONE_WAY,)
    assert flows["vdx"] == (Flow.TWO_WAY,)
    assert flows["route_redistribution"] == (Flow.ONE_WAY, Flow.TWO_WAY)


def test_the_flow_of_information_selects_among_systems_and_none_leaves_reaction() -> None:
    both = recommend(resources="disjoint", separation="companies", flow="two-way")
    assert both.mechanisms == (Mechanism.PRIORITY_RANKING,)
    assert {system.id for system in both.known} == {"bgp_across_isps", "wiser", "vdx"}
    one = recommend(resources="disjoint", separation="companies", flow="one-way")
    assert {system.id for system in one.known} == {"p4p"}
    none = recommend(resources="disjoint", separation="companies", flow="none")
    assert none.mechanisms == (Mechanism.REACTION,)
    with pytest.raises(InputError, match="flow is 'both', must be one of none, one-way, two-way"):
        recommend(resources="disjoint", separation="companies", flow="both")


def test_advice_has_the_measured_example_of_the_age() -> None:
    advice = recommend(resources="disjoint", separation="companies", age_s=900.0)
    assert advice.example is not None
    assert advice.example.mechanism == "priority ranking"
    assert advice.example.kind == "age"
    assert any("run it: planner compare " in line for line in advice.summary())
    with pytest.raises(InputError, match="age_s is -1"):
        recommend(resources="disjoint", separation="companies", age_s=-1.0)


@pytest.mark.parametrize(
    "system", [field for field in table_1_1() if field.mechanism is not Mechanism.REACTION]
)
def test_systems_that_coordinate_do_what_their_constraints_allow(system: object) -> None:
    item = next(entry for entry in reviewed() if entry.system is system)
    assert item.same, item.why


@pytest.mark.parametrize(
    ("separation", "resources", "expected"),
    [
        ("layering", "disjoint", "transparency"),
        ("departments", "full", "transparency"),
        ("companies", "disjoint", "priority ranking"),
        ("timescale", "full", "hierarchical partitioning"),
        ("granularity", "full", "hierarchical partitioning"),
    ],
)
def test_a_scenario_leads_to_its_recipe(separation: str, resources: str, expected: str) -> None:
    advice = recommend(separation=separation, resources=resources)
    assert [str(mechanism) for mechanism in advice.mechanisms] == [expected]


def test_a_decision_that_comes_too_late_cannot_be_shared_whole() -> None:
    slow = recommend(resources="full", separation="layering", decide_s=60.0, react_s=0.5)
    assert slow.mechanisms == (Mechanism.HIERARCHICAL_PARTITIONING,)
    quick = recommend(resources="full", separation="layering", decide_s=0.1, react_s=0.5)
    assert quick.mechanisms == (Mechanism.TRANSPARENCY,)


def test_line_rate_is_outside_the_recipes() -> None:
    advice = recommend(resources="disjoint", separation="line-rate")
    assert advice.mechanisms == ()
    assert "5.2" in advice.why[0]


def test_more_than_usual_is_taken_at_its_word_and_remarked() -> None:
    advice = recommend(resources="disjoint", information="complete", separation="companies")
    assert advice.mechanisms == (Mechanism.TRANSPARENCY,)
    assert any("more than usual" in sentence for sentence in advice.why)


def test_designs_are_those_of_this_toolkit() -> None:
    advice = recommend(resources="disjoint", information="incomplete")
    assert ("brokering", "marketplace") in advice.designs
    for system, design in advice.designs:
        assert find_system(system).design(design).mechanism is Mechanism.PRIORITY_RANKING


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"resources": "ful", "information": "none"}, "did you mean 'full'"),
        (
            {"resources": "full", "information": "some"},
            "information is 'some', must be one of none, incomplete, complete",
        ),
        ({"resources": "full", "separation": "layers"}, "did you mean 'layering'"),
        ({"resources": "full"}, "how much can be shared is unknown"),
        ({"resources": "full", "decide_s": 3.0}, "give both"),
        ({"resources": "full", "decide_s": -3.0, "react_s": 1.0}, "must be at least 0"),
    ],
)
def test_unknown_words_are_input_errors(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommend(**given)  # type: ignore[arg-type]


def test_every_separation_is_known() -> None:
    for separation in Separation:
        assert recommend(resources="full", separation=separation).why


def test_the_command_shows_the_space_and_recommends() -> None:
    result = planner("recipes")
    assert result.code == 0, result.err
    for words in (
        "partitioning",
        "no prior work",
        "DASH: reaction today, transparency",
        "outside the recipes",
        "two-way: BGP",
        "text only:",
        "planner compare",
    ):
        assert words in result.out
    advice = planner("recipes", "--resources", "disjoint", "--separation", "companies")
    assert advice.out.startswith("priority ranking\n")
    assert "VDX" in advice.out
    assert "marketplace" in advice.out
    plain = json.loads(planner("recipes", "--resources", "full", "--information", "none", "--json").out)
    assert plain["mechanisms"] == ["reaction"]
    assert len(json.loads(planner("recipes", "--json").out)) == 19
    late = planner("recipes", "--resources", "disjoint", "--separation", "companies", "--age-s", "900")
    for words in ("age 15 min", "Blind reaction", "without coordination", "run it: planner compare"):
        assert words in late.out
    wrong = planner("recipes", "--information", "none")
    assert wrong.code == 1
    assert wrong.err == "--resources: is missing; one of disjoint, partial, full\n"
