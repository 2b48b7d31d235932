"""Shared entries and capacities: python -m benchmarks.multicast_channels [--quick]

1. Algorithm 2 on one switch, compiled against NumPy; both must agree.
2. Convex congestion: 10,000 groups, 1,000 meta-groups; the cost is recounted port by port.
3. Every edge switch of the paper's datacenter: seconds and overhead of Algorithm 2 (at several delta) and
   of agglomerative sharing, recounted from the members' ports; and for some of them, how near that is to
   bounds that no plan can beat: from the prices of all 2^24 unions of ports, and the one of every plan.
4. Gaps that are proven: heuristics against the optimum on small switches, and the certified gap at 24
   ports as groups and meta-groups grow.
5. Joins and leaves: tracked repairs against sharing anew each time.
6. Figures 5a to 5c from the command line, and groups that fit for any table size (Fig. 6).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import machine, median_time, parser_of
from planner.arrays import Floats, Ints
from planner.bits import count_bits
from planner.compiled import njit
from planner_models.multicast.designs import partitioned
from planner_models.multicast.designs.channelization import algorithm2, local_search, p_median
from planner_models.multicast.plan import group_capacity, meta_groups
from planner_models.multicast.problem import workloads

PORTS = 24
MAX_GAP = 0.02  # of one switch, to the bound that no sharing beats
GAP_OF_POOL = 2e-3  # of the bound over all unions to that over some, as a share of the extra traffic
Way = Callable[[meta_groups.Masks, Floats], Ints]


def generate_groups(count: int, seed: int = 0) -> tuple[meta_groups.Masks, Floats]:
    """Return port sets and rates of groups at one switch, of every density."""
    rng = np.random.default_rng(seed)
    wants = rng.random((count, PORTS)) < rng.random((count, 1))
    wants[np.arange(count), rng.integers(PORTS, size=count)] = True
    masks = (wants * (np.uint64(1) << np.arange(PORTS, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    return masks, rng.uniform(1, 10, count)


# --- 1. Algorithm 2 -----------------------------------------------------------------------


def run_with_numpy(masks: meta_groups.Masks, rates: Floats, free: int, delta: float) -> list[int]:
    """Run Algorithm 2 with NumPy over meta-groups."""
    union, load, used = np.zeros(free, dtype=np.uint64), np.zeros(free), 0
    meta = []
    for mask, rate in zip(masks, rates, strict=True):
        size = int(np.bitwise_count(mask))
        if size == PORTS or size == 1:
            meta.append(-1 if size == PORTS else -1 - int(mask).bit_length())
            continue
        best, cheapest = -1, np.inf
        if used:
            u = union[:used]
            cost = rate * np.bitwise_count(u & ~mask) + load[:used] * np.bitwise_count(mask & ~u)
            best = int(cost.argmin())
            cheapest = cost[best]
        if best < 0 or (used < free and cheapest > delta * rate * size):
            best = used
            used += 1
        union[best] |= mask
        load[best] += rate
        meta.append(best)
    return meta


def time_one_switch(quick: bool) -> None:
    """Compare two implementations of Algorithm 2."""
    print("1. Algorithm 2 on one switch, linear cost, delta 0.2")
    print(f"   {'groups':>7} {'entries':>8} {'compiled ms':>12} {'NumPy x':>8}")
    for count, size in ((1000, 500), (3000, 1000)) if quick else ((3000, 1000), (10_000, 1000)):
        masks, rates = generate_groups(count)
        run = partial(algorithm2.aggregate, masks, rates, table_size=size, ports=PORTS, delta=0.2)
        own_s, meta = median_time(run)
        numpy = partial(run_with_numpy, masks, rates, size - PORTS - 1, 0.2)
        arrays, by_arrays = median_time(numpy, 1, warm=False)
        assert len(set(zip(by_arrays, meta.tolist(), strict=True))) == len(set(by_arrays))
        print(f"   {count:7,} {size:8,} {1000 * own_s:12.2f} {arrays / own_s:8.0f}")


def time_convex(quick: bool) -> None:
    """Time Algorithm 2 with convex congestion, and recount its cost."""
    count, size = (3000, 500) if quick else (10_000, 1000)
    masks, rates = generate_groups(count)
    background = np.random.default_rng(1).uniform(0, 4000, PORTS)
    congestion = meta_groups.Congestion.of_ports(40_000.0)
    parameters: dict[str, Any] = {"ports": PORTS, "congestion": congestion, "background_mbps": background}
    took, meta = median_time(partial(algorithm2.aggregate, masks, rates, table_size=size, **parameters))
    cost = meta_groups.congestion_cost(masks, rates, meta, **parameters)
    recounted = 0.0
    for port in range(PORTS):
        reached = np.unique(meta[(masks >> np.uint64(port)) & np.uint64(1) > 0])
        load = float(rates[np.isin(meta, reached)].sum() + background[port])
        recounted += float(congestion.of(np.array(load)))
    assert abs(cost - recounted) < 1e-6 * recounted
    print(f"2. convex congestion: {count:,} groups, {size:,} entries: {took:.3f} s (goal 0.3 s)")


# --- 3. every edge switch -----------------------------------------------------------------


def generate_datacenter(sizes: workloads.Sizes, step: int) -> tuple[Ints, meta_groups.Masks, Floats]:
    """Return first groups, ports and rates of every `step`th edge switch of the paper."""
    host = np.arange(27_648)
    drawn = workloads.generate_workload(
        hosts=27_648,
        tenancy=workloads.Tenancy(tenants=3000, largest_tenant=5000, groups=100_000, sizes=sizes),
        arrangement=118,
        seed=0,
    )
    start, group, ports = drawn.spread(host // PORTS, host % PORTS, 1152).by_edge()
    rows = [np.arange(start[e], start[e + 1]) for e in range(0, 1152, step)]
    rows_used = np.concatenate(rows)
    begins = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return begins, ports[rows_used], drawn.rate_mbps[group[rows_used]]


def measure_overhead(
    start: Ints, masks: meta_groups.Masks, rates: Floats, size: int, way: Way
) -> tuple[float, float, float]:
    """Return seconds, processor seconds, and overhead in percent of the wanted traffic, for all switches."""
    extra = np.zeros(len(start) - 1)

    def one(switch: int) -> None:
        rows = slice(start[switch], start[switch + 1])
        meta = way(masks[rows], rates[rows])
        assert meta.max() < size
        extra[switch] = meta_groups.extra_mbps(masks[rows], rates[rows], meta)

    one(0)  # compiles
    begin, busy = time.perf_counter(), time.process_time()
    meta_groups.run_in_threads(one, list(range(len(start) - 1)))
    took, busy = time.perf_counter() - begin, time.process_time() - busy
    return took, busy, 100 * float(extra.sum() / (rates @ np.bitwise_count(masks)))


CASES: tuple[tuple[workloads.Sizes, int], ...] = (("uniform", 1000), ("wve", 300))
DELTAS = (0.05, 0.1, 0.15, 0.2, 0.5)


def compare_switches(quick: bool) -> None:
    """Compare Algorithm 2 and clustering at every edge switch."""
    step = 48 if quick else 1
    print(f"3. every {'48th ' if quick else ''}edge switch of 27,648 hosts, 100,000 groups near")
    heads = f"{'seconds':>8} {'processor':>10} {'overhead %':>11} {'x Algorithm 2':>14}"
    print(f"   {'sizes':8} {'entries':>8} {'way':26} {heads}")
    for sizes, size in CASES:
        start, masks, rates = generate_datacenter(sizes, step)
        ways: dict[str, Way] = {
            f"Algorithm 2, delta {delta:g}": partial(
                algorithm2.aggregate, table_size=size, ports=PORTS, delta=delta
            )
            for delta in DELTAS
        }
        ways |= {
            f"agglomerative, {rounds} round{'s' * (rounds != 1)}": partial(
                local_search.aggregate, table_size=size, rounds=rounds
            )
            for rounds in ((0, 1, 4) if quick else (0, 1))
        }
        by_pass = float("inf")
        for name, way in ways.items():
            took, busy, share = measure_overhead(start, masks, rates, size, way)
            against = ""
            if name.startswith("Algorithm 2"):
                by_pass = min(by_pass, share)
            else:
                assert share < by_pass
                against = f"{share / by_pass:14.3f}"
            print(f"   {sizes:8} {size:8,} {name:26} {took:8.2f} {busy:10.2f} {share:11.2f} {against}")


@njit(cache=True, fastmath=True)
def sum_over_subsets(sums: NDArray[np.float32], ports: int) -> None:
    """Replace the value of each set of ports by the sum over all its subsets."""
    half = min(12, ports)
    low = 1 << half
    for begin in range(0, len(sums), low):  # the low ports fit the nearest cache
        for port in range(half):
            step = 1 << port
            for offset in range(begin, begin + low, 2 * step):
                for i in range(offset, offset + step):
                    sums[i + step] += sums[i]
    for port in range(half, ports):
        step = 1 << port
        for first in range(0, len(sums), 2 * step):
            for i in range(first, first + step):
                sums[i + step] += sums[i]


@njit(cache=True)
def select_unions(
    sums: NDArray[np.float32], size: int, min_value: float
) -> tuple[meta_groups.Masks, NDArray[np.float32]]:
    """Return the sets of `size` ports with a sum above `min_value`, and those sums."""
    unions, values = [np.uint64(0)], [np.float32(0)]
    for union in range(len(sums)):
        if sums[union] > min_value and count_bits(np.uint64(union)) == size:
            unions.append(np.uint64(union))
            values.append(sums[union])
    return np.array(unions)[1:], np.array(values)[1:]


@dataclass(kw_only=True, eq=False)
class UnionPool:
    """Some unions of ports, and prices of sets at which the best of these unions save the least.

    sets, weights  distinct sets of ports, (n,), and the traffic of each
    most           (n,) highest cost of each set in a union that it may use
    size           entries of the table
    """

    sets: meta_groups.Masks
    weights: Floats
    most: Floats
    size: int

    def __post_init__(self) -> None:
        self.unions: dict[int, int] = {}  # number of each
        self.pairs: list[tuple[Ints, Ints]] = []  # sets within each union, and the number of the union

    def add(self, unions: meta_groups.Masks) -> None:
        """Add the unions that are not in the pool."""
        for union in unions.tolist():
            if union not in self.unions:
                cost = self.weights * int(union).bit_count()
                within = np.flatnonzero(((self.sets & ~np.uint64(union)) == 0) & (cost <= self.most))
                self.pairs.append((within, np.full(len(within), len(self.unions))))
                self.unions[union] = len(self.unions)

    def raise_bound(self, price: Floats, goal: float) -> tuple[Floats, float, float]:
        """Return prices by the subgradient method, the bound of these unions, and its least value."""
        of, position = (np.concatenate(column) for column in zip(*self.pairs, strict=True))
        ports = np.array([union.bit_count() for union in self.unions], dtype=float)
        cost, own_cost = self.weights[of] * ports[position], self.weights * np.bitwise_count(self.sets)
        best, best_price, min_value = -float("inf"), price, 0.0
        slope, stride, stalled = np.zeros(len(price)), 0.7, 0
        for _ in range(400):
            saves = np.maximum(price[of] - cost, 0.0)
            value = np.bincount(position, saves, minlength=len(ports))
            top = np.argpartition(-value, self.size - 1)[: self.size]
            bound = float(price.sum() - value[top].sum())
            if bound > best:
                best, best_price, min_value, stalled = bound, price, float(value[top].min()), 0
            else:
                stalled += 1
                if stalled % 10 == 0:
                    stride, price, slope = stride / 1.5, best_price, 0 * slope
            selected = np.zeros(len(ports), dtype=bool)
            selected[top] = True
            taken = np.bincount(of[(saves > 0) & selected[position]], minlength=len(price))
            slope = 0.6 * slope + 1 - taken
            if not slope.any():
                break
            price = np.maximum(price + stride * (goal - bound) / float(slope @ slope) * slope, own_cost)
        return best_price, best, min_value


def savings(price: Floats, weights: Floats, count: int) -> Floats:
    """Return the saving of each set in a union of so many ports."""
    return np.asarray(np.maximum(price - weights * count, 0.0))


def value_unions(
    sets: meta_groups.Masks, saves: Callable[[int], Floats], ports: int, threshold: float
) -> tuple[meta_groups.Masks, Floats]:
    """Return all unions that save more than `threshold`, with savings; `saves` is by the union's size."""
    sums = np.empty(1 << ports, dtype=np.float32)
    pools = []
    for count in range(1, ports + 1):
        savings_of = np.where(np.bitwise_count(sets) <= count, saves(count), 0.0)
        if savings_of.sum() > threshold:
            sums[:] = 0.0
            sums[sets.astype(np.int64)] = savings_of
            sum_over_subsets(sums, ports)
            pools.append(select_unions(sums, count, threshold))
    unions, values = zip(*pools, strict=True)
    return np.concatenate(unions), np.concatenate(values).astype(float)


def bound_traffic(
    masks: meta_groups.Masks, rates: Floats, size: int, meta: Ints, ports: int, limit: float
) -> float:
    """Return a lower bound of traffic: the Lagrangian bound of `p_median`, over every union of ports.

    Each set of ports pays a price, each union is valued by what it saves, and the best `size` unions are
    subtracted. By column generation: prices follow from a pool of unions, which gets those of most value
    among all at the mean of these prices and the best so far.
    """
    sets, weights, inverse = meta_groups.distinct_sets(masks, rates)
    assigned = np.zeros(len(sets), dtype=np.int64)
    assigned[inverse] = meta
    union = np.zeros(int(assigned.max()) + 1, dtype=np.uint64)
    np.bitwise_or.at(union, assigned, sets)
    inside = np.bitwise_count(union)[assigned] * weights
    goal, demand_mbps = float(inside.sum()), float(weights @ np.bitwise_count(sets))
    pool = UnionPool(sets=sets, weights=weights, most=2 * inside + 2 * weights, size=size)
    pool.add(np.concatenate([union, sets]))
    best, best_price, price, idle = demand_mbps, None, inside + 0.3 * weights, 0
    end = time.perf_counter() + limit
    while True:
        newest, reached, min_value = pool.raise_bound(price, goal)
        is_near = reached - best < GAP_OF_POOL * (goal - demand_mbps)
        if is_near or idle == 2 or time.perf_counter() > end:
            return best
        price = newest if best_price is None or idle else (newest + best_price) / 2
        min_value = max(0.7 * min_value, 1e-3)
        while True:
            unions, values = value_unions(sets, partial(savings, price, weights), ports, min_value)
            if len(values) >= size:
                break
            min_value /= 2
        order, count_before = np.argsort(-values), len(pool.unions)
        pool.add(unions[order[: 6 * size]])
        idle = idle + 1 if len(pool.unions) == count_before else 0
        # a millionth for single precision
        bound = float(price.sum() - values[order[:size]].sum() * (1 + 1e-6))
        if bound > best:
            best, best_price = bound, price
        price = newest if best_price is None else best_price


def compare_with_bound(quick: bool) -> None:
    """Compare plans of a switch of each case with the bound; the quick run takes its first 16 ports."""
    ports, limit = (16, 20.0) if quick else (24, 420.0)
    print(f"   switch 480, {ports} ports: extra traffic in % of what is wanted")
    heads = f"{'bound':>7} {'of plans':>9} {'8 rounds':>9} {'1 round':>8} {'0 rounds':>9}"
    heads += f" {'Algorithm 2':>12} {'seconds':>8}"
    print(f"   {'sizes':8} {'port sets':>10} {'entries':>8} {heads}")
    for sizes, entries in CASES:
        start, masks, rates = generate_datacenter(sizes, 480)
        rows = slice(start[1], start[2])
        all_sets = len(np.unique(masks[rows]))
        port_sets = masks[rows] & np.uint64((1 << ports) - 1)
        here = port_sets > 0
        port_sets, traffic = port_sets[here], rates[rows][here]
        sets = len(np.unique(port_sets))
        size = round(entries * sets / all_sets)
        demand_mbps = float(traffic @ np.bitwise_count(port_sets))
        plans = [local_search.aggregate(port_sets, traffic, table_size=size, rounds=n) for n in (8, 1, 0)]
        extras = [meta_groups.extra_mbps(port_sets, traffic, meta) for meta in plans]
        by_pass = min(
            meta_groups.extra_mbps(
                port_sets,
                traffic,
                algorithm2.aggregate(port_sets, traffic, table_size=size, ports=ports, delta=delta),
            )
            for delta in DELTAS
        )
        begin = time.perf_counter()
        bound = bound_traffic(port_sets, traffic, size, plans[0], ports, limit) - demand_mbps
        took = time.perf_counter() - begin
        unicast = np.full(len(port_sets), np.inf)
        near = float(partitioned.bound_extra_mbps([partitioned.Switch(port_sets, traffic, unicast, size)])[0])
        assert max(bound, near) <= min(extras)
        assert extras[0] <= extras[1]
        assert max(extras) < by_pass
        row = [100 * extra / demand_mbps for extra in (bound, near, *extras, by_pass)]
        print(
            f"   {sizes:8} {sets:10,} {size:8,} {row[0]:7.2f} {row[1]:9.2f} {row[2]:9.2f} {row[3]:8.2f}"
            f" {row[4]:9.2f} {row[5]:12.2f} {took:8.1f}"
        )


# --- 4. proven gaps -----------------------------------------------------------------------


def report_gaps(quick: bool) -> None:
    """Report gaps of small switches to the optimum, and certified gaps at 24 ports."""
    print("4. gaps in all traffic, of small switches whose optimum is proven")
    gaps: dict[str, list[float]] = {"Algorithm 2": [], "agglomerative": [], "bound": []}
    for seed in range(4 if quick else 12):
        masks, rates = generate_groups(30, seed)
        size = PORTS + 5
        best = p_median.certify(masks, rates, table_size=6, seconds=20)
        assert best.gap < 1e-6
        by_pairs = meta_groups.extra_mbps(masks, rates, local_search.aggregate(masks, rates, table_size=6))
        # single ports and all ports have entries of their own in Algorithm 2: they are set aside here too
        several = (np.bitwise_count(masks) > 1) & (np.bitwise_count(masks) < PORTS)
        by_pass = algorithm2.aggregate(masks[several], rates[several], table_size=size + 2, ports=PORTS)
        beside = p_median.certify(
            masks[several], rates[several], table_size=int(by_pass.max()) + 1, seconds=20
        )
        passed = meta_groups.extra_mbps(masks[several], rates[several], by_pass)
        gaps["Algorithm 2"].append((passed - beside.extra_mbps) / beside.total_mbps)
        gaps["agglomerative"].append((by_pairs - best.extra_mbps) / best.total_mbps)
        gaps["bound"].append(
            (best.extra_mbps - meta_groups.extra_mbps_bound(masks, rates, 6)) / best.total_mbps
        )
    for name, values in gaps.items():
        print(f"   {name:14} median {100 * np.median(values):5.2f}%  most {100 * max(values):5.2f}%")
    print("   certified gap at 24 ports; meta-groups are a quarter of the groups")
    print(f"   {'groups':>7} {'entries':>8} {'seconds':>8} {'gap %':>7}")
    limit = 5.0 if quick else 60.0
    for count in (20, 40, 60) if quick else (20, 40, 60, 80, 100, 120, 160, 240):
        masks, rates = generate_groups(count, 1)
        begin = time.perf_counter()
        certified = p_median.certify(masks, rates, table_size=count // 4, seconds=limit / 2)
        took = time.perf_counter() - begin
        recounted = meta_groups.extra_mbps(masks, rates, certified.meta)
        assert abs(recounted - certified.extra_mbps) < 1e-6 * certified.total_mbps
        assert certified.gap < MAX_GAP
        print(f"   {count:7,} {count // 4:8,} {took:8.1f} {100 * certified.gap:7.2f}")


# --- 5. change ----------------------------------------------------------------------------


def time_changes(quick: bool) -> None:
    """Time joins and leaves with tracked repairs."""
    events = 300 if quick else 3000
    print(f"5. {events:,} joins and leaves at a switch with 1,000 groups and 200 entries")
    print(f"   {'shared anew':22} {'events/s':>9} {'times':>6} {'rules/event':>12} {'overhead %':>11}")
    masks, rates = generate_groups(1000)
    for name, drift in (("never", float("inf")), ("where it drifts 0.5%", 0.005), ("at every rise", -1.0)):
        count = min(events, 200) if drift < 0 else events
        tracker = algorithm2.SharingTracker(masks=masks, rates=rates, table_size=200, drift=drift)
        rng = np.random.default_rng(5)
        begin = time.perf_counter()
        for _ in range(count):
            group, port = int(rng.integers(1000)), int(rng.integers(PORTS))
            if int(tracker.masks[group]) >> port & 1:
                tracker.leave(group, port)
            else:
                tracker.join(group, port)
        took = time.perf_counter() - begin
        here = tracker.masks != 0
        recounted = meta_groups.extra_mbps(tracker.masks[here], tracker.rates[here], tracker.assigned[here])
        assert abs(recounted - tracker.extra_mbps) < 1e-6 * tracker.wanted_mbps
        share = 100 * tracker.extra_mbps / tracker.wanted_mbps
        print(
            f"   {name:22} {count / took:9,.0f} {tracker.reshared:6} {tracker.rules / count:12.2f} "
            f"{share:11.2f}"
        )


# --- 6. figures ---------------------------------------------------------------------------


def time_figures(quick: bool) -> None:
    """Time Figures 5a to 5c, and the capacities of Figure 6."""
    print("6. figures, from the command line, and groups that fit for any table size")
    total = 0.0
    for name in ("figure_5a",) if quick else ("figure_5a", "figure_5b", "figure_5c"):
        command = [sys.executable, "-m", "planner", "compare", f"multicast/{name}"]
        run = partial(subprocess.run, command, check=True, capture_output=True)
        took, _ = median_time(run, 1, warm=False)
        total += took
        print(f"   {name:34} {took:8.1f} s")
    few = 10 if quick else 1
    begin = time.perf_counter()
    cases: tuple[tuple[workloads.Placement, workloads.Sizes, int], ...] = (
        ("near", "wve", 660_000), ("near", "uniform", 660_000),
        ("random", "wve", 180_000), ("random", "uniform", 40_000),
    )  # fmt: skip
    for placement, sizes, count in cases:
        tenancy = workloads.Tenancy(
            tenants=3000, largest_tenant=5000, groups=count // few, placement=placement, sizes=sizes
        )
        capacity = group_capacity.workload_capacity(
            k=48, aggregation_copies=3, tenancy=tenancy, arrangement=118, largest=6000 // few
        )
        fits = group_capacity.supported_groups(capacity)
        assert all(a <= b for a, b in pairwise(fits.dropna()))
    took = time.perf_counter() - begin
    print(f"   {'figure 6, tables up to 6,000':34} {took:8.1f} s")
    print(f"   {'together':34} {total + took:8.1f} s (goal 60 s, two cores)")


def main() -> None:
    """Run all parts, and print tables."""
    quick = parser_of(__doc__, "smaller, in about a minute").parse_args().quick
    print(f"{machine()}; medians of 3 where runs are short\n")
    switch, network = (time_one_switch, time_convex), (compare_switches, compare_with_bound)
    for benchmark in (*switch, *network, report_gaps, time_changes, time_figures):
        benchmark(quick)
        print()


if __name__ == "__main__":
    main()
