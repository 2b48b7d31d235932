"""Values of Pfaff et al. 2015 on caches: limits, production, and Tables 1 and 2."""

from __future__ import annotations

from typing import Final

import pandas as pd

from planner.contract.targets import Study, TargetValues
from planner_models.flowtables.designs.table import DESIGNS
from planner_models.flowtables.plan.metrics import measure
from planner_models.flowtables.problem.generators import table_1
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import MOST_ENTRIES

CONNECTIONS: Final = 1_051_884  # kernel flows with megaflows disabled: one for each connection
QUICK_CONNECTIONS: Final = 10_000
ROWS: Final = {
    "disabled": "microflows",
    "none": "tuple_search",
    "priority": "priority",
    "prefix": "prefix",
    "staged": "staged",
    "all": "all",
}
DISABLED_KTPS: Final = 37.0
ALL_KTPS: Final = 117.0
DISABLED_USER: Final = 45.0
DISABLED_KERNEL: Final = 40.0
ALL_KERNEL: Final = 20.0
BATCH: Final = "not covered: each miss is an upcall of its own"
VERSION: Final = "a setting of an old version"
TIME: Final = "a setting; entries do not expire here"
TRAFFIC: Final = "not covered: the traffic of the hypervisors is unknown"
HOSTS: Final = "a setting of the measurement"
PATH: Final = "not covered: rates of a datapath in the kernel, which the model of lookups and misses lacks"


def find_cache(study: Study) -> TargetValues:  # noqa: ARG001
    problem = _make_switch()
    limit = problem.most_entries
    return TargetValues(
        values={
            "flow_limit_21": float(limit),
            "flow_reval": limit * problem.cost("revalidate_us") / 1e6,
        },
        notes={
            "flow_batch": BATCH,
            "flow_limit_old": VERSION,
            "flow_limit_20": VERSION,
            "flow_limit_21": "the entries that are checked in 1 s; the time of one was fitted to it",
            "flow_reval": "of as many entries",
            "flow_poll": TIME,
            "flow_idle": TIME,
        },
    )


def _make_switch() -> FlowTables:
    """Return a switch with default costs, and no limit of entries but the time to check them."""
    rules = pd.DataFrame([(1, "tcp", "out:1")], columns=["priority", "match", "action"])
    made = FlowTables(rules=rules, flows=pd.DataFrame({"header": ["tcp"]}))
    return made.with_costs(flow_limit=float(MOST_ENTRIES))


def find_production(study: Study) -> TargetValues:  # noqa: ARG001
    settings = ("flow_prod_hours", "flow_prod_poll", "flow_prod_hosts")
    results = (
        "flow_prod_mean",
        "flow_prod_p99",
        "flow_hit_all",
        "flow_hit_slow",
        "flow_hit_busy",
        "flow_prod_hits",
        "flow_prod_miss",
        "flow_cpu_80",
        "flow_cpu_50",
    )
    notes = {**dict.fromkeys(settings, HOSTS), **dict.fromkeys(results, TRAFFIC)}
    return TargetValues(values={}, notes={**notes, "flow_cpu_out": "not covered: a bug of a version"})


def find_bridge(study: Study) -> TargetValues:  # noqa: ARG001
    names = ("gbps", "tps", "cpu", "tps2", "cpu2", "fold")
    rows = [f"flow_bridge_{name}" for name in names] + ["flow_ovs_tps", "flow_ovs_cpu"]
    return TargetValues(values={}, notes=dict.fromkeys(rows, PATH))


def find_rules(study: Study) -> TargetValues:  # noqa: ARG001
    rows = [f"flow_rule_{number}" for number in range(1, 5)]
    return TargetValues(values={}, notes=dict.fromkeys(rows, "a setting: rules of the preset table_1"))


def find_table_1(study: Study) -> TargetValues:
    """Find flows and masks of a run, and rates and CPU times from their misses.

    A transaction takes a + b m, with m misses of a connection; userspace c m of CPU time, and the kernel
    d + e m. a, b, c, d and e are fitted to the rows without megaflows and with all optimizations.
    """
    metrics = _run(QUICK_CONNECTIONS if study.quick else CONNECTIONS)
    values: dict[str, float | bool | None] = {}
    longest, shortest = 1 / DISABLED_KTPS, 1 / ALL_KTPS
    for row, metric in metrics.items():
        missed = metric["missed"]
        ktps = 1 / (shortest + (longest - shortest) * missed)
        of_miss = DISABLED_KERNEL / DISABLED_KTPS - ALL_KERNEL / ALL_KTPS
        values |= {
            f"flow_t1_{row}_tps": ktps,
            f"flow_t1_{row}_flows": metric["misses"],
            f"flow_t1_{row}_masks": metric["masks"],
            f"flow_t1_{row}_user": ktps * missed * DISABLED_USER / DISABLED_KTPS,
            f"flow_t1_{row}_kernel": ktps * (ALL_KERNEL / ALL_KTPS + of_miss * missed),
        }
    fitted = "from the misses, fitted to megaflows disabled and to all optimizations"
    ours = {
        "flows": "of random ports, a third of connections to each of two prefixes and elsewhere",
        "masks": "TCP and ARP of three prefixes alone; the paper does not print its packets",
    }
    notes = {name: ours.get(name.rpartition("_")[2], fitted) for name in values}
    notes["flow_t1_none_flows"] += "; each TCP packet meets the rule with ports, so that all match ports"
    return TargetValues(values=values, notes=notes, shortened=frozenset(values if study.quick else ()))


def find_table_2(study: Study) -> TargetValues:
    """Find the tuples searched by a packet; with microflows, packets but the first search one."""
    count = QUICK_CONNECTIONS if study.quick else CONNECTIONS
    metrics = _run(count, ("none", "all"))
    values: dict[str, float | bool | None] = {}
    for row, name in (("on", "all"), ("off", "none")):
        metric = metrics[name]
        values[f"flow_t2_off_{row}_tuples"] = metric["searched"]
        values[f"flow_t2_on_{row}_tuples"] = 1 + (metric["searched"] - 1) / metric["packets"]
    rows = [f"flow_t2_{row}_{quantity}" for row in TABLE_2 for quantity in ("tps", "user", "kernel")]
    notes: dict[str, str] = dict.fromkeys(rows, PATH)
    notes["flow_t2_off_off_tuples"] = notes["flow_t2_on_off_tuples"] = (
        "one mask holds all packets of our trace without optimizations; the paper's switch had three"
    )
    notes["flow_t2_on_on_tuples"] = "the first of ten packets of a connection searches the megaflows"
    every = {*values, *rows}
    return TargetValues(values=values, notes=notes, shortened=frozenset(every if study.quick else ()))


TABLE_2: Final = ("on_on", "off_on", "on_off", "off_off")


def _run(connections: int, rows: tuple[str, ...] = tuple(ROWS)) -> dict[str, dict[str, float]]:
    """Return misses, also of a connection, masks, and tuples searched by a packet, by row of Table 1.

    The cache holds an entry for each miss: entries that it may not hold would be misses again.
    """
    problem = table_1(connections=connections, seed=1)
    problem = problem.with_costs(flow_limit=float(MOST_ENTRIES), revalidate_us=0.0)
    mean_packets = float(problem.packets.mean())
    result = {}
    for row in rows:
        design = next(design for design in DESIGNS if design.name == ROWS[row])
        plan = design.run(problem).plan
        assert plan is not None
        metrics = measure(problem, plan, None)
        misses = metrics["misses"] or 0.0
        result[row] = {
            "misses": misses,
            "missed": misses / connections,
            "masks": metrics["masks"] or 0.0,
            "searched": metrics["probes_per_packet"] or 0.0,
            "packets": mean_packets,
        }
    return result
