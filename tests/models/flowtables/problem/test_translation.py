"""Registers, changed headers and several lookups: random flow tables against a plain interpreter."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.flowtables import SYSTEM, FlowTables, check
from planner_models.flowtables.plan.check import find_missing, find_wrong
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.plan.plan import read_plan
from tests.models.flowtables.pipelines import FIELDS, draw_pipeline, interpret_all
from tests.models.flowtables.switches import every_word

DESIGNS = (
    "microflows",
    "tuple_search",
    "priority",
    "staged",
    "prefix",
    "all",
    "least_specific",
    "pool",
    "merged",
)


def ports(log: object) -> list[str]:
    return [f"out:{item[0]}" for item in log]  # type: ignore[index,attr-defined]


SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_headers_of_one_action_that_agree_on_what_it_needs_are_forwarded_alike(seed: int) -> None:
    """All 256 headers against the interpreter: the ports, and the values that are written."""
    problem = draw_pipeline(np.random.default_rng(seed))
    words = every_word(problem)
    logs = interpret_all(problem)
    actions = classify(words, problem.entries).tolist()
    layout = problem.layout
    needs = layout.to_numbers(problem.entries.needs)
    seen: dict[tuple[int, int], object] = {}
    for number, action, log in zip(layout.to_numbers(words), actions, logs, strict=True):
        assert seen.setdefault((action, number & needs[action]), log) == log
        outputs = re.findall(r"out:\S+", problem.actions[action])
        assert len(outputs) == len(log)
        for shown, real in zip(outputs, ports(log), strict=True):
            assert shown == real or "[" in shown


@pytest.mark.parametrize("seed", SEEDS)
def test_no_entry_of_a_design_gives_a_packet_a_wrong_action(seed: int) -> None:
    problem = draw_pipeline(np.random.default_rng(1_000 + seed))
    words = every_word(problem)
    logs = np.empty(256, dtype=object)
    logs[:] = interpret_all(problem)
    always = problem.layout.to_words([problem.layout.full_mask(["a"])])[0]
    for name in DESIGNS:
        parameters = {"trials": 20} if name == "merged" else {}
        plan = SYSTEM.design(name).run(problem, parameters=parameters).plan
        assert plan is not None
        assert not len(check(problem, plan)), name
        content, service = read_plan(problem, plan)
        assert (service.entry >= 0).all()
        for value, mask_of in zip(content.value, content.mask_of, strict=True):
            mask = content.masks[mask_of]
            inside = ((words ^ value) & mask == 0).all(axis=1)
            assert len(set(logs[inside])) == 1, name
            assert (mask & always == always).all(), name


@pytest.mark.parametrize("seed", SEEDS)
def test_the_check_accepts_the_right_entries_and_no_others(seed: int) -> None:
    """Random cubes with the action of one of their headers, against all headers inside."""
    random = np.random.default_rng(2_000 + seed)
    problem = draw_pipeline(random)
    layout, words = problem.layout, every_word(problem)
    actions = classify(words, problem.entries)
    needs = layout.to_numbers(problem.entries.needs)
    for _ in range(40):
        row, bits = random.integers(0, 256, size=2).tolist()
        mask = words[bits] | words[int(random.integers(0, 256))]
        value = words[row] & mask
        inside = ((words ^ value) & mask == 0).all(axis=1)
        action = int(actions[inside][0])
        wrong = find_wrong(problem, value, mask, problem.actions[action])
        assert (wrong is None) == bool((actions[inside] == action).all())
        number, full = layout.to_numbers(np.array([value, mask]))
        expected = (needs[action] | layout.full_mask(["a"])) & ~full
        assert find_missing(problem, (number, full), problem.actions[action]) == expected


def make(rules: list[tuple[float, str, str, float]], header: str = "a=0") -> FlowTables:
    return FlowTables(
        rules=pd.DataFrame(rules, columns=["priority", "match", "action", "table"]),
        fields=FIELDS,
        flows=pd.DataFrame({"header": [header]}),
    )


def test_steps_after_a_lookup_follow_it() -> None:
    problem = make([(1, "", "set:r=2 goto:1 out:r[0..3]", 0), (1, "r=2", "set:r=5 out:1", 1)])
    assert [problem.actions[number] for number in classify(problem.headers, problem.entries)] == [
        "out:1 out:5"
    ]


def test_packets_that_loop_are_refused() -> None:
    with pytest.raises(InputError, match="packets loop through table 0"):
        _ = make([(1, "", "goto:1", 0), (1, "", "goto:0", 1)]).entries
    with pytest.raises(InputError, match="looked up more than 64 times"):
        _ = make([(1, "", "goto:1 out:1", 0), (1, "", "goto:0 out:2", 1)]).entries


def test_the_time_to_live_is_lowered_or_runs_out() -> None:
    fields = pd.DataFrame(
        [("nw_ttl", 8, "l3", 0), ("a", 2, "l2", 0)], columns=["field", "bits", "stage", "prefix"]
    )
    rules = [
        (1, "a=0", "set:dec_ttl goto:1", 0),
        (1, "a=1", "set:dec_ttl set:dec_ttl out:7", 0),
        (2, "nw_ttl=63", "out:1", 1),
        (1, "", "set:dec_ttl out:2", 1),
    ]
    problem = FlowTables(
        rules=pd.DataFrame(rules, columns=["priority", "match", "action", "table"]),
        fields=fields,
        flows=pd.DataFrame({"header": [f"nw_ttl={ttl} a={a}" for a in (0, 1) for ttl in range(256)]}),
    )
    result = [problem.actions[number] for number in classify(problem.headers, problem.entries)]

    def expected(ttl: int, a: int) -> str:
        if a == 1:
            return "controller" if ttl <= 2 else "set:dec_ttl set:dec_ttl out:7"
        if ttl == 64:
            return "set:dec_ttl out:1"
        return "controller" if ttl <= 2 else "set:dec_ttl set:dec_ttl out:2"

    wrong = [
        (a, ttl, result[256 * a + ttl])
        for a in (0, 1)
        for ttl in range(256)
        if expected(ttl, a) not in (result[256 * a + ttl], result[256 * a + ttl].removeprefix("set:dec_ttl "))
    ]
    assert not wrong
    plan = SYSTEM.design("all").run(problem).plan
    assert len(plan.megaflows) == 512  # each time to live, and both values of a
