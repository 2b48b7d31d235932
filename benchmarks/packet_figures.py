"""Figures 4, 7, 10 and 11 of Sen et al. 2013 by packets: means over seeds and their errors, beside the paper.

    python -m benchmarks.packet_figures FIGURE [--k K] [--seconds S] [--seeds N] [--from-seed N]

FIGURE is 4, 7, 10 or 11, with fat trees of k-port switches. Each row is a figure of the paper, in its unit,
and what the runs have for it: a comparison of designs on the same flows, seed by seed. Nothing is fitted:
windows, timeouts and the rest that the paper does not print are the defaults of `PacketSettings`, and
senders wait for 30 repeated replies where packets of a flow take several ways.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.common import machine
from planner.contract.simulation import SimulationResult
from planner.options import Options
from planner.runs.reproduction import read_published
from planner_models.traffic import SYSTEM
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.run import run

SPLIT: Final = {"duplicate_acks": 30}
LONG: Final = {"median_bytes": 1e10, "sigma": 0.0}
SHORT: Final = {"median_bytes": 5e3, "sigma": 3.0}
"""Sizes that make 86% of flows smaller than 125 kB, as 7.2.2 states of a distribution that is not printed."""
MPTCP: Final = {"design": "ecmp_hash", "subflows": 8, "coupling": "lia"}
DESIGNS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ecmp": {"design": "ecmp_hash"},
    "localflow": {"design": "localflow", **SPLIT},
    "localflow_temporal": {"design": "localflow", "forwarding": "split_random", **SPLIT},
    "localflow_ns": {"design": "localflow_ns"},
    "localflow_001": {"design": "localflow", "decision": {"delta": 0.01}, **SPLIT},
    "scatter": {"design": "packet_scatter", **SPLIT},
    "scatter_temporal": {"design": "packet_scatter", "forwarding": "scatter_random", **SPLIT},
    "mptcp_8": MPTCP,
    "mptcp_4": {**MPTCP, "subflows": 4},
}

Ratio = Callable[[Mapping[str, SimulationResult]], float]


def simulate(problem: Traffic, name: str, **parameters: Any) -> SimulationResult:
    """Return the run of one of `DESIGNS`."""
    parameters = {**DESIGNS[name], **parameters}
    return run(
        problem,
        design=SYSTEM.design(parameters.pop("design")),
        information={},
        decision_parameters=parameters.pop("decision", {}),
        options=Options(),
        model="packets",
        **parameters,
    )


def throughput(result: SimulationResult) -> float:
    """Return the throughput of a run, Mbit/s."""
    value = result.metrics["throughput_mbps"]
    assert value is not None
    return value


def below(name: str, base: str) -> Ratio:
    """Return the loss of throughput of a design against another, percent, as a function of their runs."""
    return lambda runs: 100 * (1 - throughput(runs[name]) / throughput(runs[base]))


def above(name: str, base: str) -> Ratio:
    """Return the gain of throughput of a design over another, percent, as a function of their runs."""
    return lambda runs: -below(name, base)(runs)


def completion_above(name: str, base: str) -> Ratio:
    """Return the gain of mean completion time over another, percent, of flows that ended in both."""

    def compare(runs: Mapping[str, SimulationResult]) -> float:
        took: list[pd.Series[float]] = []
        for label in (name, base):
            flows = runs[label].tables["flows"].set_index("flow")
            took.append((flows["end_s"] - flows["start_s"]).dropna())
        both = took[0].index.intersection(took[1].index)
        return 100 * (float(took[0].loc[both].mean()) / float(took[1].loc[both].mean()) - 1)

    return compare


FIGURES: Final[Mapping[int, Mapping[str, Ratio]]] = {
    4: {
        "traf_f4_ps": below("scatter", "localflow"),
        "traf_f4_mptcp8": below("mptcp_8", "localflow"),
        "traf_f4_mptcp4": below("mptcp_4", "localflow"),
        "traf_f4_ecmp": below("ecmp", "localflow"),
    },
    7: {
        "traf_f7_lf1_tput": above("localflow", "ecmp"),
        "traf_f7_lf1_fct": completion_above("localflow", "ecmp"),
        "traf_f7_lf1_001_tput": above("localflow_001", "ecmp"),
        "traf_f7_lf1_001_fct": completion_above("localflow_001", "ecmp"),
        "traf_f7_lfns_tput": above("localflow_ns", "ecmp"),
        "traf_f7_lfns_fct": completion_above("localflow_ns", "ecmp"),
        "traf_f7_ps_tput": above("scatter", "ecmp"),
        "traf_f7_ps_fct": completion_above("scatter", "ecmp"),
        "traf_f7_mptcp_tput": above("mptcp_8", "ecmp"),
        "traf_f7_mptcp_fct": completion_above("mptcp_8", "ecmp"),
    },
    10: {
        "traf_f10_lf": lambda runs: (
            100
            * (throughput(runs["localflow at 0.001 s"]) - throughput(runs["localflow at 1 s"]))
            / throughput(runs["ecmp"])
        ),
        "traf_f10_ps": above("localflow at 0.001 s", "scatter"),
    },
    11: {
        "traf_f11_lf": below("localflow_temporal", "localflow"),
        "traf_f11_ps": below("scatter_temporal", "scatter"),
    },
}
INTERVALS_S: Final = (1.0, 0.1, 0.01, 0.001)
"""Of figure 10."""


def run_figure(figure: int, k: int, seconds: float, seed: int) -> dict[str, SimulationResult]:
    """Return the runs of the designs of a figure on the flows of a seed; a third of the time is warm-up."""
    timing: dict[str, Any] = {"until_s": seconds, "warm_up_s": seconds / 3, "seed": seed}
    if figure == 7:
        problem = generators.oversubscribed_fat_tree(k=k, seed=seed)
        timing |= {**SHORT, "interval_s": 0.01, "flows_per_source": 24}
    else:
        problem = generators.fat_tree(k=k, workload="permutation", seed=seed)
        timing |= {**(SHORT if figure == 10 else LONG), "interval_s": 0.05}
    if figure == 10:
        timing.pop("interval_s")
        runs = {name: simulate(problem, name, **timing) for name in ("ecmp", "scatter", "mptcp_8")}
        return runs | {
            f"localflow at {interval:g} s": simulate(problem, "localflow", interval_s=interval, **timing)
            for interval in INTERVALS_S
            if interval < seconds
        }
    names = {
        4: ("localflow", "scatter", "mptcp_8", "mptcp_4", "ecmp", "localflow_ns"),
        7: ("ecmp", "localflow", "localflow_001", "localflow_ns", "scatter", "mptcp_8"),
        11: ("localflow", "localflow_temporal", "scatter", "scatter_temporal"),
    }
    return {name: simulate(problem, name, **timing) for name in names[figure]}


def main() -> None:
    """Print a row for each figure of the paper, and the throughput of each design."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("figure", type=int, choices=sorted(FIGURES))
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from-seed", type=int, default=1)
    arguments = parser.parse_args()
    published = read_published("traffic")
    rows = FIGURES[arguments.figure]
    values: list[dict[str, float]] = []
    for seed in range(arguments.from_seed, arguments.from_seed + arguments.seeds):
        runs = run_figure(arguments.figure, arguments.k, arguments.seconds, seed)
        print(f"seed {seed}:", {name: round(throughput(result)) for name, result in runs.items()}, flush=True)
        values.append({row: float(of(runs)) for row, of in rows.items()})
    frame = pd.DataFrame(values)
    table = pd.DataFrame(
        {
            "paper": {row: published[row]["value"] for row in rows},
            "mean": frame.mean(),
            "standard error": frame.std() / math.sqrt(len(frame)) if len(frame) > 1 else np.nan,
            "unit": {row: published[row]["unit"] for row in rows},
        }
    )
    print(table.round(2).to_string())
    print(machine())


if __name__ == "__main__":
    main()
