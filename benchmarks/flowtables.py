"""Flow tables: CPU time of a connection by each design, against a bound; and the time of masks and pools.

    python -m benchmarks.flowtables [--quick]

Generated rule sets of three kinds, with 8,000 connections. Times are of the processor, after compiling.

A million packets, each of a new connection, are replayed among 100,000 rules, with `all` and with `pool`.
Least specific masks are compared with those of the fewest bits, by integer programs.

The best pool of 2,000 candidate masks is bounded by the linear program of pools, and searched by its prices.

Asserted: every entry passes the check, no design beats the bound, a planned pool is the best of all designs,
and a least specific mask among 10,000 rules takes less than 1 ms. Misses by the size of a cache are those of
a simulation, and modules on different fields have an entry for each pair in one table.
"""

from __future__ import annotations

import time
from collections import OrderedDict

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.common import machine, parser_of
from planner_models.flowtables import SYSTEM, FlowTables, check, measure
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.reactive import MASKS_OF_MISSES, fill_by_misses, make_least_masks
from planner_models.flowtables.plan.cache_sizes import count_misses
from planner_models.flowtables.plan.check import find_wrong
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.plan.lookup import find_all
from planner_models.flowtables.problem import generators
from planner_models.flowtables.problem.fields import Words, make_layout
from planner_models.flowtables.problem.policies import merge_modules

DESIGNS = ("tuple_search", "all", "least_specific", "pool", "replanned", "merged")
MORE_TRIALS = 10_000  # of the local search of `merged`
MOST_SECONDS_PER_MASK = 1e-3
MASKS = 2_000
CANDIDATES = 2_000
MOST_GAP = 0.1  # of the best pool of candidates
PROGRAMS = {"acl": 4, "firewall": 1, "chain": 1}  # of the cover by column generation
ENTRIES = 200_000  # of the cache whose sizes are compared


def main() -> None:
    """Print a row for each rule set, and the time of a mask by the number of rules."""
    quick = parser_of(__doc__).parse_args().quick
    print(machine())
    for name in DESIGNS:  # compile
        SYSTEM.design(name).run(generators.small())
    SYSTEM.design("merged").run(generators.small(), parameters={"candidates": 10})
    rules, connections = (200, 1_000) if quick else (1_000, 8_000)
    print(f"{'rules':<10}" + "".join(f"{name:>24}" for name in DESIGNS) + f"{'bound':>10}")
    for kind, make in (
        ("acl", generators.acl),
        ("firewall", generators.firewall),
        ("chain", generators.chain),
    ):
        problem = make(rules=rules, connections=connections, seed=1)
        costs, cells, bound = {}, [], None
        for name in DESIGNS:
            start = time.process_time()
            decision = SYSTEM.design(name).run(problem)
            seconds = time.process_time() - start
            assert decision.plan is not None
            assert not len(check(problem, decision.plan)), f"{kind}: {name} has wrong entries"
            metrics = measure(problem, decision.plan, None)
            costs[name] = metrics["cpu_per_connection_us"] or 0.0
            cells.append(f"{costs[name]:.2f} us {metrics['masks']:.0f} m {seconds:.2f} s")
            bound = decision.proof.bound or bound
        assert bound is not None
        assert min(costs.values()) >= bound * (1 - 1e-9)
        assert costs["merged"] == min(costs.values())
        print(f"{kind:<10}" + "".join(f"{cell:>24}" for cell in cells) + f"{bound:>10.3f}", flush=True)
        search_longer(kind, problem, costs["merged"])
        search_candidates(kind, problem, costs["merged"])
        compare_misses(kind, make(rules=rules, connections=connections * 5 // 8, seed=1), PROGRAMS[kind])
    time_sizes(1_000_000 if quick else 10_000_000)
    time_merging(50 if quick else 200, 500 if quick else 5_000)
    compare_exact(200 if quick else 10_000, 20 if quick else 100)
    for name in ("all", "pool"):
        time_replay(name, 2_000 if quick else 100_000, 20_000 if quick else 1_000_000)
    for rules in (200, 1_000) if quick else (1_000, 10_000, 30_000, 100_000):
        problem = generators.acl(rules=rules, connections=MASKS, seed=1)
        make_masks = make_least_masks(problem, True)
        start = time.process_time()
        make_masks(problem.headers)
        seconds = (time.process_time() - start) / MASKS
        entries = problem.size()["entries"]
        print(f"least specific mask among {entries:,} entries: {1e6 * seconds:.0f} us")
        assert entries > 15_000 or seconds < MOST_SECONDS_PER_MASK


def run_checked(
    kind: str, problem: FlowTables, design: str, parameters: dict[str, int]
) -> tuple[float, float | None, str | None, float]:
    """Return objective, bound, its scope, and seconds of a design with a plan that passes the check."""
    start = time.process_time()
    decision = SYSTEM.design(design).run(problem, parameters=parameters)
    seconds = time.process_time() - start
    proof = decision.proof
    assert decision.plan is not None
    assert proof.objective is not None
    assert not len(check(problem, decision.plan)), f"{kind}: wrong entries"
    return proof.objective, proof.bound, proof.bound_scope, seconds


def search_longer(kind: str, problem: FlowTables, cost_us: float) -> None:
    """Time a longer local search of `merged`, from the same masks."""
    objective, _, _, seconds = run_checked(kind, problem, "merged", {"trials": MORE_TRIALS})
    assert objective <= cost_us * (1 + 1e-9)
    print(f"{kind}: merged, {MORE_TRIALS:,} trials: {objective:.2f} us, {seconds:.1f} s")


def search_candidates(kind: str, problem: FlowTables, cost_us: float) -> None:
    """Time the search for the best pool of candidate masks, and compare it with its bound."""
    objective, bound, scope, seconds = run_checked(kind, problem, "merged", {"candidates": CANDIDATES})
    assert bound is not None
    assert bound <= objective <= cost_us * (1 + 1e-9)
    assert 1 - bound / objective < MOST_GAP
    print(
        f"{kind}: merged, {scope}: {objective:.2f} us, at least {bound:.2f} "
        f"({100 * (1 - bound / objective):.1f}% less), {seconds:.1f} s",
        flush=True,
    )


def compare_misses(kind: str, problem: FlowTables, programs: int) -> None:
    """Time covers of all headers by few entries, and compare their misses with their bounds."""
    for rounds in (0, programs):
        require_few_misses(kind, problem, rounds)


def require_few_misses(kind: str, problem: FlowTables, rounds: int) -> None:
    objective, bound, _, seconds = run_checked(kind, problem, "fewest_misses", {"rounds": rounds})
    assert bound is not None
    assert objective >= bound
    gap = 100 * (1 - bound / objective)
    print(
        f"{kind}: {len(problem.flows):,} connections, {rounds} programs: {objective:,.0f} misses, "
        f"at least {bound:,.0f} ({gap:.1f}% less), {seconds:.1f} s",
        flush=True,
    )


def time_replay(name: str, rules: int, packets: int) -> None:
    """Time a cache that misses fill, each packet of a new connection, and check some of its entries."""
    problem = generators.acl(rules=rules, connections=packets, seed=1)
    entries, headers = problem.entries, problem.headers
    make_masks = MASKS_OF_MISSES[name](problem)
    start = time.process_time()
    table = fill_by_misses(problem, make_masks, reuse=name == "pool")
    seconds = time.process_time() - start
    count, masks = table.counts.tolist()
    print(
        f"{name}: {packets:,} packets replayed among {len(entries.action):,} entries: {seconds:.1f} s, "
        f"{count:,} misses, {masks:,} masks"
    )
    assert (np.asarray(find_all(table, headers[:10_000])[0]) >= 0).all()
    random = np.random.default_rng(1)
    for row in random.permutation(count)[:200].tolist():
        value, mask = table.value[row], table.masks[table.mask_of[row]]
        action = problem.actions[int(classify(value[None, :], entries)[0])]
        assert find_wrong(problem, value, mask, action) is None, f"{name}: a wrong entry"


def compare_exact(rules: int, packets: int) -> None:
    """Compare the bits of least specific masks with the fewest that keep a packet's action."""
    problem = generators.acl(rules=rules, connections=packets, seed=2)
    headers = group_headers(problem).words
    masks = make_least_masks(problem, False)(headers)
    start = time.process_time()
    exact = np.array([count_fewest_bits(problem, header) for header in headers])
    seconds = (time.process_time() - start) / len(headers)
    counts = np.bitwise_count(masks).sum(axis=1)
    assert (counts >= exact).all()
    more = 100 * (counts.sum() / exact.sum() - 1)
    print(
        f"bits of least specific masks of {len(headers)} packets among {rules:,} rules: {counts.mean():.2f}, "
        f"at least {exact.mean():.2f} ({more:.2f}% more); exact: {1e3 * seconds:.0f} ms"
    )


def count_fewest_bits(problem: FlowTables, header: Words) -> int:
    """Return the fewest bits of a mask that keeps a header's action in one flow table, by integer programs.

    One for each entry that matches the header and has its action, the anchor: the mask has the anchor's bits
    and, for each entry before it of another action, a bit in which the header differs from it.
    """
    rules = problem.entries
    action = int(classify(header[None, :], rules)[0])
    matches = ((header ^ rules.value) & rules.mask == 0).all(axis=1)
    anchors = np.flatnonzero(matches & (rules.action == action)).tolist()
    none = np.zeros_like(header)
    candidates = [(rules.mask[row], row) for row in anchors]
    if action == 0:
        candidates.append((none, len(rules.action)))  # packets without a match are dropped
    best = 64 * len(header)
    for anchor, end in candidates:
        bits = int(np.bitwise_count(anchor).sum())
        differs = (header ^ rules.value[:end]) & rules.mask[:end]
        differs = np.unique(differs[(rules.action[:end] != action) & ~(differs & anchor).any(axis=1)], axis=0)
        if not len(differs) or bits >= best:
            best = min(best, bits)
            continue
        if not differs.any(axis=1).all():
            continue  # a header of the anchor that an entry of another action holds
        hits = np.unpackbits(keep_minimal(differs).astype(">u8").view(np.uint8), axis=1)
        used = np.flatnonzero(hits.any(axis=0))
        result = milp(
            np.ones(len(used)),
            constraints=LinearConstraint(hits[:, used], lb=1),
            integrality=np.ones(len(used)),
            bounds=Bounds(0, 1),
        )
        assert result.success
        best = min(best, bits + round(result.fun))
    return best


def keep_minimal(sets: Words) -> Words:
    """Return the sets of bits (n, words) that contain no other one."""
    remaining, minimal = sets[np.argsort(np.bitwise_count(sets).sum(axis=1), kind="stable")], []
    while len(remaining):
        minimal.append(remaining[0])
        remaining = remaining[((remaining & remaining[0]) != remaining[0]).any(axis=1)]
    return np.array(minimal)


def time_sizes(count: int) -> None:
    """Time the misses of all sizes of a cache, and compare one size with its simulation."""
    random = np.random.default_rng(1)
    entry = np.minimum(random.zipf(1.2, size=count) - 1, ENTRIES - 1)
    count_misses(entry[:10], ENTRIES)  # compile
    start = time.process_time()
    misses = count_misses(entry, ENTRIES)
    seconds = time.process_time() - start
    print(f"misses of {ENTRIES:,} sizes of a cache, {count:,} packets: {seconds:.2f} s")
    size = 1_000
    held: OrderedDict[int, None] = OrderedDict()
    simulated = 0
    for entry_number in entry[: count // 10].tolist():
        simulated += entry_number not in held
        held[entry_number] = None
        held.move_to_end(entry_number)
        if len(held) > size:
            held.popitem(last=False)
    assert count_misses(entry[: count // 10], ENTRIES)[size] == simulated
    assert misses[0] == count


def time_merging(monitored: int, routes: int) -> None:
    """Time the choice of tables for a monitor beside routes, on different fields and on the same."""
    for same_field in (False, True):
        made = generators.draw_modules(monitored, routes, same_field, np.random.default_rng(1))
        start = time.process_time()
        merged = merge_modules(*made, make_layout(None))
        seconds = time.process_time() - start
        entries = [sum(merging.entries) for merging in merged]
        kind = "same field" if same_field else "other fields"
        print(
            f"monitor of {monitored} and {routes:,} routes, {kind}: "
            f"{entries[0]:,} entries in one table, {entries[1]:,} in two, {seconds:.2f} s"
        )
        product = (monitored + 1) * (routes + 1)
        assert entries[0] < product if same_field else entries[0] == product
        assert entries[1] == monitored + routes + 2


if __name__ == "__main__":
    main()
