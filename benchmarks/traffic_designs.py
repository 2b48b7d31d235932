"""Times of LocalFlow's kernels, and its lemma and bounds on random switches.

    python -m benchmarks.traffic_designs [--quick]

`planner reproduce traffic` compares the designs of the paper.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from planner_models.traffic.designs import localflow
from planner_models.traffic.plan import tcp_rates


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
        count, links, delta = (
            int(random.integers(1, 60)),
            int(random.integers(2, 9)),
            float(random.uniform(0.1, 10)),
        )
        _, link, amount = localflow.schedule_switch(
            random.integers(0, 5, count),
            random.integers(1, 60, count).astype(float),
            links=links,
            delta=delta,
        )
        worst = max(worst, float(np.ptp(np.bincount(link, amount, links))) / (links * delta))
    print(f"           over 300 random switches the difference is at most {worst:.3f} times links x delta")
    assert worst <= 1 + 1e-9


def time_kernels(quick: bool) -> None:
    """Print the median time of each compiled kernel, for increasing sizes."""

    def median_ms(run: Callable[[], object], repeats: int) -> float:
        run()  # compiles
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return 1e3 * statistics.median(times)

    print(f"\n{'kernel':58} {'median ms':>10}   goal ms")
    random = np.random.default_rng(0)
    rate, destination = random.lognormal(0, 2, 2000), random.integers(0, 500, 2000)
    for delta in (0.0, 0.01, 0.05):
        slack = delta * rate.sum() / 8
        flow, _, _ = localflow.schedule_switch(destination, rate, links=8, delta=slack)
        split = float((np.bincount(flow) > 1).mean())
        median = median_ms(lambda: localflow.schedule_switch(destination, rate, links=8, delta=slack), 15)  # noqa: B023
        print(
            f"{f'Algorithm 1, 2,000 flows, 8 links, delta {delta}: {split:.1%} split':58} {median:10.3f}   2"
        )
    cases = [(16, 1_024, 2.0)] + ([] if quick else [(48, 1_000_000, 10_000.0)])
    for k, flows, goal in cases:
        share = _random_routes(k, flows, random)
        links, caps = np.ones(share.shape[1]), np.ones(flows)
        rates = tcp_rates.max_min_rates(share, links, caps)
        load = share.T @ rates
        assert (load <= 1 + 1e-9).all()
        # every flow is at its cap or crosses a full link, so none can increase
        is_bounded = (share @ (load >= 1 - 1e-9).astype(float) > 0) | (rates >= 1 - 1e-9)
        assert is_bounded.all()
        median = median_ms(lambda: tcp_rates.max_min_rates(share, links, caps), 3 if flows > 10_000 else 50)  # noqa: B023
        print(f"{f'max-min rates, {flows:,} flows, k = {k}':58} {median:10.3f}   {goal:g}")
        if flows <= 10_000:
            median = median_ms(lambda: tcp_rates.proportional_rates(share, links, caps), 9)  # noqa: B023
            print(f"{f'proportionally fair rates, {flows:,} flows, k = {k}':58} {median:10.3f}")


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="no network of 27,648 hosts")
    arguments = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}")

    time_kernels(arguments.quick)
    check_theorems()

    print("every assertion holds")


if __name__ == "__main__":
    main()
