"""Flow tables: CPU time of a connection by each design, against a bound; and the time of masks and pools.

    python -m benchmarks.flowtables [--quick]

Generated rule sets of three kinds, with 8,000 connections. Times are of the processor, after compiling.

Asserted: every entry passes the check, no design beats the bound, a planned pool is the best of all designs,
and a least specific mask among 10,000 rules takes less than 1 ms. Misses by the size of a cache are those of
a simulation, and modules on different fields have an entry for each pair in one table.
"""

from __future__ import annotations

import time
from collections import OrderedDict

import numpy as np

from benchmarks.common import machine, parser_of
from planner_models.flowtables import SYSTEM, check, measure
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.cache_sizes import count_misses
from planner_models.flowtables.problem import generators
from planner_models.flowtables.problem.fields import make_layout
from planner_models.flowtables.problem.policies import merge_modules

DESIGNS = ("tuple_search", "all", "least_specific", "pool", "replanned", "merged")
MOST_SECONDS_PER_MASK = 1e-3
MASKS = 2_000
ENTRIES = 200_000  # of the cache whose sizes are compared


def main() -> None:
    """Print a row for each rule set, and the time of a mask by the number of rules."""
    quick = parser_of(__doc__).parse_args().quick
    print(machine())
    for name in DESIGNS:  # compile
        SYSTEM.design(name).run(generators.small())
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
        print(f"{kind:<10}" + "".join(f"{cell:>24}" for cell in cells) + f"{bound:>10.3f}")
    time_sizes(1_000_000 if quick else 10_000_000)
    time_merging(50 if quick else 200, 500 if quick else 5_000)
    for rules in (200, 1_000) if quick else (1_000, 10_000, 30_000, 100_000):
        problem = generators.acl(rules=rules, connections=MASKS, seed=1)
        make_masks = make_least_masks(problem, True)
        start = time.process_time()
        make_masks(problem.headers)
        seconds = (time.process_time() - start) / MASKS
        entries = problem.size()["entries"]
        print(f"least specific mask among {entries:,} entries: {1e6 * seconds:.0f} us")
        assert entries > 15_000 or seconds < MOST_SECONDS_PER_MASK


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
    for one in entry[: count // 10].tolist():
        simulated += one not in held
        held[one] = None
        held.move_to_end(one)
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
        entries = [sum(one.entries) for one in merged]
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
