"""The bound that couples masks with misses, against all caches of up to three masks over four bits."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.flowtables import FlowTables
from planner_models.flowtables.designs.bound import find_incompatible
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.mask_bound import bound_time, find_groups
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.problem import generators
from tests.models.flowtables.switches import make

FIELDS = pd.DataFrame([("a", 2, "l2", 1), ("b", 2, "l3", 1)], columns=["field", "bits", "stage", "prefix"])
HEADERS = [f"a={a} b={b}" for a, b in product(range(4), range(4))]


@st.composite
def small_switches(draw: st.DrawFn) -> FlowTables:
    """Return a switch of rules over four bits, with up to six headers of one or many connections."""
    rules = []
    for row in range(draw(st.integers(1, 5))):
        parts = [
            f"{name}={draw(st.integers(0, 3))}/{draw(st.integers(1, 2))}"
            for name in "ab"
            if draw(st.integers(0, 4))
        ]
        rules.append((100 - row, " ".join(parts), draw(st.sampled_from(["drop", "out:1", "out:2"]))))
    headers = draw(st.lists(st.sampled_from(HEADERS), min_size=1, max_size=6, unique=True))
    counted = [text for text in headers for _ in range(draw(st.sampled_from([1, 1, 4, 30])))]
    probe_ns, upcall_us = draw(st.sampled_from([10.0, 147.0, 2_000.0])), draw(st.sampled_from([1.0, 11.5]))
    return make(rules, counted, fields=FIELDS, probe_ns=probe_ns, upcall_us=upcall_us)


def find_least_time_us(problem: FlowTables, most_masks: int) -> float:
    """Return the least time of a connection, over all sets of masks and all correct entries for each header.

    A mask may serve a header if all headers of the four bits that agree on the mask have its action.
    """
    headers = group_headers(problem)
    words = problem.layout.to_words([problem.layout.parse_header(text) for text in HEADERS])
    actions = classify(words, problem.entries)
    masks = np.unique(words & problem.used_mask, axis=0)  # the words of all headers are those of all masks
    inside = [[((words ^ word) & mask == 0).all(axis=1) for word in headers.words] for mask in masks]
    valid = np.array([[len(set(actions[cube].tolist())) == 1 for cube in row] for row in inside])
    number = [np.unique(headers.words & mask, axis=0, return_inverse=True)[1].reshape(-1) for mask in masks]
    probe, upcall = problem.probe_us, problem.cost("upcall_us")
    best = upcall * headers.weight.sum()  # a cache without entries
    for count in range(1, most_masks + 1):
        every = np.array(list(product(range(count), repeat=len(headers.words))))
        for used in combinations(range(len(masks)), count):
            selected = every[valid[list(used)][every, np.arange(len(headers.words))].all(axis=1)]
            if not len(selected):
                continue
            entries, hits = np.zeros(len(selected)), np.zeros((len(selected), count))
            for index, mask in enumerate(used):
                current = selected == index
                hits[:, index] = current @ headers.weight
                for item in range(number[mask].max() + 1):
                    entries += (current & (number[mask] == item)).any(axis=1)
            lookups = -np.sort(-hits, axis=1) @ np.arange(1, count + 1)  # by falling hits
            best = min(best, float((probe * lookups + (upcall + probe * count) * entries).min()))
    return best / float(headers.weight.sum())


@given(small_switches())
@settings(max_examples=8, deadline=None)
def test_no_cache_is_faster_than_the_bound(problem: FlowTables) -> None:
    headers = group_headers(problem)
    incompatible = find_incompatible(problem, headers, np.zeros(len(headers.words)))
    bound_us = bound_time(problem, headers, incompatible)
    assert bound_us <= find_least_time_us(problem, 3) * (1 + 1e-9)
    old_us = problem.probe_us + problem.cost("upcall_us") * len(incompatible) / len(problem.flows)
    assert bound_us >= min(old_us, problem.cost("upcall_us")) * (1 - 1e-9)


@pytest.mark.exhaustive
@given(small_switches())
@settings(max_examples=1_000, deadline=None)
def test_no_cache_is_faster_than_the_bound_of_many_switches(problem: FlowTables) -> None:
    headers = group_headers(problem)
    incompatible = find_incompatible(problem, headers, np.zeros(len(headers.words)))
    assert bound_time(problem, headers, incompatible) <= find_least_time_us(problem, 3) * (1 + 1e-9)


@given(small_switches())
@settings(max_examples=15, deadline=None)
def test_no_correct_entry_serves_headers_of_two_groups(problem: FlowTables) -> None:
    headers = group_headers(problem)
    groups = find_groups(problem, headers, find_incompatible(problem, headers, np.zeros(len(headers.words))))
    words = problem.layout.to_words([problem.layout.parse_header(text) for text in HEADERS])
    actions = classify(words, problem.entries)
    for item, other in combinations(range(len(groups.words)), 2):
        first, second = groups.words[item], groups.words[other]
        if groups.group[item] != groups.group[other]:
            inside = ((words ^ first) & ~(first ^ second) == 0).all(axis=1)
            assert len(set(actions[inside].tolist())) > 1


@pytest.mark.slow
def test_masks_and_lookups_raise_the_bound() -> None:
    problem = generators.acl(rules=300, connections=3_000, seed=1)
    headers = group_headers(problem)
    incompatible = find_incompatible(problem, headers, np.zeros(len(headers.words)))
    misses_us = problem.probe_us + problem.cost("upcall_us") * len(incompatible) / len(problem.flows)
    assert bound_time(problem, headers, incompatible) > 1.4 * misses_us
