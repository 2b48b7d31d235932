"""Times of LocalFlow's kernels, and its lemma and bounds on random switches.

    python -m benchmarks.traffic_designs [--quick]

`planner reproduce traffic` compares the designs of the paper.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from benchmarks.common import machine, median_time, parser_of
from planner_models.flows import fair_rates
from planner_models.traffic.designs import localflow


def check_theorems() -> None:
    """Check the bound of section 6 on random switches, and an example that exceeds Lemma 6.2."""
    flow, link, amount = localflow.schedule_switch([0, 0, 0], [8.0, 11.0, 11.0], links=3, delta=1.0)
    load = np.bincount(link, amount, 3)
    print(
        f"\nLemma 6.2: flows 8, 11, 11 on three links, delta 1: "
        f"links differ by {np.ptp(load):g} (printed: at most 1)"
    )
    assert np.ptp(load) == 3.0
    assert len(flow) == 3
    random = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        count, links = int(random.integers(1, 60)), int(random.integers(2, 9))
        delta = float(random.uniform(0.1, 10))
        targets, rates = random.integers(0, 5, count), random.integers(1, 60, count).astype(float)
        _, link, amount = localflow.schedule_switch(targets, rates, links=links, delta=delta)
        worst = max(worst, float(np.ptp(np.bincount(link, amount, links))) / (links * delta))
    print(f"           over 300 random switches the difference is at most {worst:.3f} times links x delta")
    assert worst <= 1 + 1e-9


def time_kernels(quick: bool) -> None:
    """Print the median time of each compiled kernel, for increasing sizes."""
    print(f"\n{'kernel':58} {'median ms':>10}   goal ms")
    random = np.random.default_rng(0)
    rate, destination = random.lognormal(0, 2, 2000), random.integers(0, 500, 2000)
    for delta in (0.0, 0.01, 0.05):
        run = partial(localflow.schedule_switch, destination, rate, links=8, delta=delta * rate.sum() / 8)
        seconds, (flow, _, _) = median_time(run, 15)
        split = float((np.bincount(flow) > 1).mean())
        print_time(f"Algorithm 1, 2,000 flows, 8 links, delta {delta}: {split:.1%} split", seconds, 2.0)
    cases = [(16, 1_024, 2.0)] + ([] if quick else [(48, 1_000_000, 10_000.0)])
    for k, flows, goal in cases:
        share = _random_routes(k, flows, random)
        links, caps = np.ones(share.shape[1]), np.ones(flows)
        repeats = 3 if flows > 10_000 else 50
        seconds, rates = median_time(partial(fair_rates.max_min_rates, share, links, caps), repeats)
        load = share.T @ rates
        assert (load <= 1 + 1e-9).all()
        # every flow is at its cap or crosses a full link, so none can increase
        is_bounded = (share @ (load >= 1 - 1e-9).astype(float) > 0) | (rates >= 1 - 1e-9)
        assert is_bounded.all()
        print_time(f"max-min rates, {flows:,} flows, k = {k}", seconds, goal)
        if flows <= 10_000:
            seconds, _ = median_time(partial(fair_rates.proportional_rates, share, links, caps), 9)
            print_time(f"proportionally fair rates, {flows:,} flows, k = {k}", seconds)


def print_time(name: str, seconds: float, goal_ms: float | None = None) -> None:
    print(f"{name:58} {1e3 * seconds:10.3f}   {'' if goal_ms is None else f'{goal_ms:g}'}")


def _random_routes(k: int, flows: int, random: np.random.Generator) -> sp.csr_array:
    """Return the links of random flows of a fat tree, each on a random shortest path: flows by links."""
    half, hosts = k // 2, k**3 // 4
    source = random.integers(0, hosts, flows)
    target = (source + random.integers(1, hosts, flows)) % hosts
    pod, rack = source // half**2, source // half
    to_pod, to_rack = target // half**2, target // half
    plane, core = random.integers(0, half, flows), random.integers(0, half, flows)
    hops = np.stack(
        [source, 2 * hosts + rack * half + plane, 4 * hosts + (pod * half + plane) * half + core,
         5 * hosts + (to_pod * half + plane) * half + core, 3 * hosts + to_rack * half + plane,
         hosts + target],
        axis=1,
    )  # fmt: skip
    is_used = np.ones(hops.shape, dtype=bool)
    is_used[rack == to_rack, 1] = is_used[rack == to_rack, 4] = False
    is_used[pod == to_pod, 2:4] = False
    row = np.broadcast_to(np.arange(flows)[:, None], hops.shape)[is_used]
    return sp.csr_array((np.ones(len(row)), (row, hops[is_used])), shape=(flows, 6 * hosts))


def main() -> None:
    """Time the kernels and check the theorems."""
    quick = parser_of(__doc__, "no network of 27,648 hosts").parse_args().quick
    print(machine())
    time_kernels(quick)
    check_theorems()
    print("every assertion holds")


if __name__ == "__main__":
    main()
