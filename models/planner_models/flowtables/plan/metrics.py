"""Metrics of system `flowtables`: CPU time, misses and lookups of a cache."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools
from planner.contract.metrics import Headline, less, more
from planner_models.flowtables.plan.classification import classify, find_right
from planner_models.flowtables.plan.plan import Cache, find_offloaded, read_content, read_plan, weigh_masks
from planner_models.flowtables.problem.actions import CONTROLLER
from planner_models.flowtables.problem.problem import FlowTables

PAPER: Final = "Pfaff et al. 2015"

METRICS: Final = (
    less(
        "cpu_per_connection_us",
        "us",
        "CPU time of a new connection: a lookup in each mask searched until its entry, and for each miss "
        "an upcall and a lookup in every mask; and an upcall where its packets go to the controller; mean",
        f"{PAPER}, 4.2, 7.2 and Table 1",
    ),
    less(
        "misses", "misses", "connections that go to userspace: one for each entry, and those without an entry"
    ),
    less("megaflows", "entries", "entries of the cache"),
    less("masks", "masks", "masks of entries: hash tables that a search without a match looks into"),
    less(
        "probes_per_connection",
        "lookups",
        "masks searched for the entry of a connection, with entries in place; mean",
        f"{PAPER}, 4.2",
    ),
    less(
        "probes_per_packet",
        "lookups",
        "masks searched for a packet where there is no microflow cache; mean",
        f"{PAPER}, Table 2",
    ),
    more("hit_rate", "%", "packets that find an entry, in percent of all", f"{PAPER}, 7.1"),
    less("uncached", "connections", "connections whose entry the cache may not hold: each is a miss"),
    less("to_controller", "connections", "connections whose packets go to the controller: each is an upcall"),
    less("matched_bits", "bits", "bits that an entry matches; mean of entries"),
    less("stale_entries", "entries", "entries of the cache before that rules give another action now"),
    more("offloaded", "%", "packets of entries in the TCAM of the network card", f"{PAPER}, 8.3"),
    more(
        "lookups_saved", "%", "lookups in software that the card saves, of those without it", f"{PAPER}, 8.3"
    ),
    less("tables", "tables", "flow tables that a miss is looked up in at most, neighbours merged"),
    less("table_entries", "entries", "entries of all flow tables, neighbours merged"),
    less("revalidation_s", "s", "CPU time to check all entries against the rules again", f"{PAPER}, 6"),
)
HEADLINE: Final = Headline(
    metric="cpu_per_connection_us",
    verb="takes {} of CPU time for a new connection",
    fallbacks={"uncached": "has no entry for"},
    table=(
        "cpu_per_connection_us",
        "misses",
        "masks",
        "lookups_saved",
        "probes_per_connection",
        "probes_per_packet",
        "hit_rate",
        "matched_bits",
        "uncached",
    ),
)
LIMITS: Final = {
    "action": "entries with packets of another action",
    "flow_limit": "more entries than the flow limit",
    "matched": "entries without bits that they must match",
    "nic_entries": "more entries than the card holds",
    "nic_inserts": "more insertions than the card takes",
    "nic_masks": "more masks than the card holds",
    "offload": "offloaded entries with other lookups or insertions",
    "undecided": "entries whose action the check cannot decide",
    "revalidation": "more entries than can be checked in time",
}


def measure(
    problem: FlowTables,
    plan: Cache,
    previous: Cache | None,
) -> dict[str, float | None]:
    """Return a value for every metric.

    Each entry has one miss, as userspace installs it at the first packet that needs it.
    """
    content, service = read_plan(problem, plan)
    is_hit = service.entry >= 0
    entries, masks = len(content.value), len(content.masks)
    uncached = int((~is_hit).sum())
    misses = entries + uncached
    probes = float(service.searched[is_hit].sum())
    connections = len(is_hit)
    is_punt = find_punts(problem)
    time_us = problem.probe_us * probes + misses * (problem.cost("upcall_us") + problem.probe_us * masks)
    time_us += float(is_punt.sum()) * problem.cost("upcall_us")
    packets = problem.packets
    total = float(packets.sum())
    hits = float(packets[is_hit & ~is_punt].sum())
    # the first packet of an entry misses; those to the controller are upcalls all
    hits -= sum(CONTROLLER not in action.split() for action in content.action)
    return {
        "cpu_per_connection_us": time_us / connections,
        "misses": float(misses),
        "megaflows": float(entries),
        "masks": float(masks),
        "probes_per_connection": probes / is_hit.sum() if is_hit.any() else None,
        "probes_per_packet": float((service.searched * packets).sum()) / total,
        "hit_rate": 100 * max(hits, 0.0) / total,
        "to_controller": float(is_punt.sum()),
        "uncached": float(uncached),
        "matched_bits": weigh_masks(content, np.ones(64 * len(problem.full_mask))),
        "stale_entries": None if previous is None else float(count_stale(problem, previous)),
        **_measure_offload(problem, plan),
        "tables": float(len(problem.table_numbers) if plan.layout is None else len(plan.layout)),
        "table_entries": None if plan.layout is None else float(plan.layout["entries"].sum()),
        "revalidation_s": entries * problem.cost("revalidate_us") / 1e6,
    }


def _measure_offload(problem: FlowTables, plan: Cache) -> dict[str, float | None]:
    """Return the packets and lookups that the network card takes, %; None without one."""
    if plan.offload is None:
        return {"offloaded": None, "lookups_saved": None}
    _, service = read_plan(problem, plan)
    is_held = np.isin(service.entry, find_offloaded(plan))
    packets = problem.packets.astype(float)
    lookups = service.searched * packets
    return {
        "offloaded": 100 * float(packets[is_held].sum()) / float(packets.sum()),
        "lookups_saved": 100 * float(lookups[is_held].sum()) / max(float(lookups.sum()), 1.0),
    }


def find_punts(problem: FlowTables) -> Bools:
    """Return the connections (F,) with packets that go to the controller: each of them is an upcall."""
    if not problem.is_punt.any():
        return np.zeros(len(problem.flows), dtype=bool)
    return np.asarray(problem.is_punt[classify(problem.headers, problem.entries)])


def count_stale(problem: FlowTables, previous: Cache) -> int:
    """Return the number of entries of a cache with packets that rules now give another action."""
    content = read_content(problem, previous)
    if not len(content.value):
        return 0
    number = {name: index for index, name in enumerate(problem.actions)}
    action = np.array([number.get(name, -1) for name in content.action], dtype=np.int32)
    now = classify(content.value, problem.entries)
    is_right = find_right(content.value, content.mask_of, content.masks, action, now, problem.entries)
    return int((~np.asarray(is_right)).sum())
