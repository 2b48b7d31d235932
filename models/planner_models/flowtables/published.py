"""Published values of Pfaff et al. 2015, and the functions that find ours.

Reproduction targets of system `flowtables`, declared in `data/published/flowtables.toml`.

Values of Pfaff et al. 2015 on caches: limits, production, and Tables 1 and 2.

Values of Pfaff et al. 2015 on lookups: tables and their entries, tuples searched, tries, and times.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.flowtables.designs import DESIGNS
from planner_models.flowtables.designs.reactive import install_microflows
from planner_models.flowtables.designs.tuple_space import make_tuple_space, search
from planner_models.flowtables.plan.lookup import fill_table, find_all
from planner_models.flowtables.plan.metrics import measure
from planner_models.flowtables.problem.fields import STAGES, Layout
from planner_models.flowtables.problem.generators import table_1
from planner_models.flowtables.problem.pipeline import Stage, count_joint_cubes, merge_tables
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import MOST_ENTRIES
from planner_models.flowtables.problem.tables import DEFAULT_COSTS

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
BATCH: Final = "each miss is an upcall of its own"
VERSION: Final = "a setting of an old version"
TIME: Final = "a setting; entries do not expire here"
TRAFFIC: Final = "the traffic of the hypervisors is unknown"
HOSTS: Final = "a setting of the measurement"
LOOKUP_US: Final = 1 / 6.8  # of one tuple, by a core (section 7.2: 6.8 million hash lookups a second)
LOOKUPS: Final = (
    "from the misses, as fitted to Table 1, and 147 ns for each further tuple, as the paper measures it"
)
KERNEL_LOOKUPS: Final = (
    "lookups are kernel time here; the paper's share falls, though its packets search twice as many tuples"
)
PATH: Final = "rates of a datapath in the kernel, which the model of lookups and misses lacks"


SIZES: Final = ((2, 3), (4, 8), (16, 5))
BITS: Final = (1, 3, 6)
MOST_MASKS: Final = 12
TUPLES: Final = 10
OCTET: Final = 8
FIVE_PREFIXES: Final = ("20.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "10.1.3.0/24", "10.1.4.5/32")
TWO_PREFIXES: Final = ("10.0.0.0/8", "10.1.2.3/32")
ON_BITS: Final = "prose counts octets, as does ours here; on bits the paper's Figure 3 and ours match {}"


def find_pipeline(study: Study) -> TargetValues:  # noqa: ARG001
    grown = [merge_tables(_make_stages(n1, n2)) for n1, n2 in SIZES]
    return TargetValues(
        values={
            "flow_micro_space": [_count_microflows(bits) for bits in BITS] == [2**bits for bits in BITS],
            "flow_cross": all(
                count_joint_cubes(_make_stages(n1, n2)) == n1 * n2 == merged[0].entries[0]
                for (n1, n2), merged in zip(SIZES, grown, strict=True)
            ),
            "flow_resubmit": all(
                merged[1].entries == (n1, n2) for (n1, n2), merged in zip(SIZES, grown, strict=True)
            ),
        },
        notes={
            "flow_micro_bits": "a setting: fields of OpenFlow 1.0",
            "flow_micro_space": f"microflows of all headers of {', '.join(map(str, BITS))} bits",
            "flow_cross": "joint entries that are not empty, counted without making them",
            "flow_nvp_lookups": "a setting of a pipeline whose rules are not printed",
        },
    )


def _make_stages(first: int, second: int) -> list[Stage]:
    """Return two tables, each with an entry for every value of a field of its own."""
    layout = Layout([("a", 8, "l2", False), ("b", 8, "l3", False)])
    stages = []
    for name, count in (("a", first), ("b", second)):
        full = layout.full_mask([name])
        values = [number << layout.shift[name] for number in range(count)]
        stages.append(Stage(layout.to_words(values), layout.to_words([full] * count)))
    return stages


def _count_microflows(bits: int) -> int:
    """Return the entries of a cache of microflows after a packet of each header."""
    problem = FlowTables(
        fields=pd.DataFrame([("a", bits, "l2", 0)], columns=["field", "bits", "stage", "prefix"]),
        rules=pd.DataFrame([(1, "a=0", "out:1")], columns=["priority", "match", "action"]),
        flows=pd.DataFrame({"header": [f"a={number}" for number in range(2**bits)]}),
    )
    plan = install_microflows(problem).plan
    assert plan is not None
    return len(plan.megaflows)


def find_tuple_search(study: Study) -> TargetValues:  # noqa: ARG001
    counts = range(1, MOST_MASKS + 1)
    searched = [_search_masks(count) for count in counts]
    unprinted = "a setting of a table whose rules are not printed"
    return TargetValues(
        values={
            "flow_match_probes": all(
                bool(np.isclose(hit.mean(), (count + 1) / 2))
                for count, (hit, _) in zip(counts, searched, strict=True)
            ),
            "flow_miss_probes": all(miss == count for count, (_, miss) in zip(counts, searched, strict=True)),
            "flow_stages": float(len(STAGES)),
        },
        notes={
            "flow_match_probes": f"for 1 to {MOST_MASKS} masks with one entry each",
            "flow_miss_probes": f"for 1 to {MOST_MASKS} masks",
            **dict.fromkeys(
                (
                    "flow_nvp_tuples",
                    "flow_nvp_single",
                    "flow_nvp_two",
                    "flow_nvp_five",
                    "flow_nvp_pri_min",
                    "flow_nvp_pri_max",
                ),
                unprinted,
            ),
            "flow_nvp_more": "the place of the tuple in a table whose rules are not printed",
        },
    )


def _search_masks(count: int) -> tuple[np.ndarray, int]:
    """Return the masks searched for a header of each of some masks, (count,), and for one of no mask.

    Mask i has bit i alone; its entry holds headers with this bit.
    """
    bits = (np.uint64(1) << np.arange(count, dtype=np.uint64))[:, None]
    table = fill_table(bits, np.arange(count, dtype=np.int32), bits)
    _, searched = find_all(table, np.concatenate([bits, np.zeros((1, 1), dtype=np.uint64)]))
    return searched[:-1], int(searched[-1])


def find_tries(study: Study) -> TargetValues:  # noqa: ARG001
    bits = {
        name: _match_bits(prefixes, address)
        for name, prefixes, address in (
            ("flow_trie_1", FIVE_PREFIXES, "10.1.3.5"),
            ("flow_trie_2", FIVE_PREFIXES, "20.0.5.1"),
            ("flow_trie_3", FIVE_PREFIXES, "10.3.5.1"),
            ("flow_trie_4", FIVE_PREFIXES, "30.10.5.2"),
            ("flow_trie_6", TWO_PREFIXES, "10.5.6.7"),
        )
    }
    longer = sum(_is_inside("10.1.6.1", prefix) for prefix in FIVE_PREFIXES if _length(prefix) > 2 * OCTET)
    skipped = _match_bits(FIVE_PREFIXES, "10.1.6.1")
    return TargetValues(
        values={
            **{name: float(-(-count // OCTET) * OCTET) for name, count in bits.items()},
            # a tuple is searched in full where its prefix may match
            "flow_trie_5": float(longer + (skipped == 4 * OCTET)),
            "flow_trie_none": float(_match_bits(TWO_PREFIXES, "10.5.6.7", by_prefix=False)),
        },
        notes={
            **{name: ON_BITS.format(count) for name, count in bits.items() if count % OCTET},
            "flow_trie_5": f"{skipped} bits tell that no longer prefix matches",
        },
    )


def _match_bits(prefixes: tuple[str, ...], address: str, *, by_prefix: bool = True) -> int:
    """Return the bits of an address that the search of a table of prefixes looks at."""
    rules = [
        (_length(prefix), f"ip_dst={prefix}", f"out:{row}") for row, prefix in enumerate(prefixes, start=1)
    ]
    problem = FlowTables(
        rules=pd.DataFrame(rules, columns=["priority", "match", "action"]),
        flows=pd.DataFrame({"header": [f"ip_dst={address}"]}),
    )
    space = make_tuple_space(problem, is_staged=False)
    mask = search(problem, problem.headers, space, by_priority=False, by_prefix=by_prefix)
    return int(np.bitwise_count(mask).sum())


def _length(prefix: str) -> int:
    return int(prefix.partition("/")[2])


def _is_inside(address: str, prefix: str) -> bool:
    layout = Layout([("ip_dst", 32, "l3", True)])
    [(value, mask)] = layout.parse(f"ip_dst={prefix}")
    return (layout.parse_header(f"ip_dst={address}") ^ value) & mask == 0


def find_costs(study: Study) -> TargetValues:  # noqa: ARG001
    probe_ns = DEFAULT_COSTS["probe_ns"]
    _, searched = _search_masks(TUPLES)
    machine = "a setting of the measurement"
    rates = "packets per second of a datapath with several cores and network cards"
    return TargetValues(
        values={
            "flow_hash_rate": 1e3 / probe_ns,
            "flow_class_rate": 1e9 / (probe_ns * searched),
            "flow_probe_ns": probe_ns,
            "flow_upcall_us": DEFAULT_COSTS["upcall_us"],
        },
        notes={
            "flow_sessions": machine,
            "flow_cores": machine,
            "flow_nics": machine,
            "flow_hash_entries": machine,
            "flow_long_rate": rates,
            "flow_long_gain": rates,
            "flow_hash_rate": "the default time of a lookup comes from it",
            "flow_probe_ns": "the default of costs.probe_ns",
            "flow_upcall_us": "the default of costs.upcall_us",
        },
    )


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
    return TargetValues(values={}, notes={**notes, "flow_cpu_out": "a bug of a version"})


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
    for row, metric in metrics.items():
        values |= {
            f"flow_t1_{row}_flows": metric["misses"],
            f"flow_t1_{row}_masks": metric["masks"],
            **_find_rates(f"flow_t1_{row}", metric["missed"], 0.0),
        }
    fitted = "from the misses, fitted to megaflows disabled and to all optimizations"
    ours = {
        "flows": "of random ports, a third of connections to each of two prefixes and elsewhere",
        "masks": "TCP and ARP of three prefixes alone; the paper does not print its packets",
    }
    notes = {name: ours.get(name.rpartition("_")[2], fitted) for name in values}
    notes["flow_t1_none_flows"] += "; each TCP packet meets the rule with ports, so that all match ports"
    return TargetValues(values=values, notes=notes, shortened=frozenset(values if study.quick else ()))


def _find_rates(row: str, missed: float, tuples: float) -> dict[str, float]:
    """Return ktps, and CPU times of userspace and kernel in percent, by id.

    missed  misses of a connection
    tuples  searched by the packets of a connection, over those of Table 1
    """
    longest, shortest = 1 / DISABLED_KTPS, 1 / ALL_KTPS
    lookups = tuples * LOOKUP_US / 1000
    ktps = 1 / (shortest + (longest - shortest) * missed + lookups)
    of_miss = DISABLED_KERNEL / DISABLED_KTPS - ALL_KERNEL / ALL_KTPS
    kernel = ALL_KERNEL / ALL_KTPS + of_miss * missed + 100 * lookups
    return {
        f"{row}_tps": ktps,
        f"{row}_user": ktps * missed * DISABLED_USER / DISABLED_KTPS,
        f"{row}_kernel": ktps * kernel,
    }


def find_table_2(study: Study) -> TargetValues:
    """Find the tuples searched by a packet, and the rates and CPU times that follow from them.

    With microflows, packets but the first of a connection search one tuple. A transaction takes the time of
    Table 1 for its misses (see `find_table_1`), and `LOOKUP_US` for each further tuple that its packets
    search, which is kernel time.
    """
    count = QUICK_CONNECTIONS if study.quick else CONNECTIONS
    metrics = _run(count, ("none", "all"))
    values: dict[str, float | bool | None] = {}
    for row, name in (("on", "all"), ("off", "none")):
        metric = metrics[name]
        values[f"flow_t2_off_{row}_tuples"] = metric["searched"]
        values[f"flow_t2_on_{row}_tuples"] = 1 + (metric["searched"] - 1) / metric["packets"]
        further = (metric["searched"] - 1) * (metric["packets"] - 1)  # tuples, over those with microflows
        values |= _find_rates(f"flow_t2_on_{row}", metric["missed"], 0.0)
        values |= _find_rates(f"flow_t2_off_{row}", metric["missed"], further)
    rows = [f"flow_t2_{row}_{quantity}" for row in TABLE_2 for quantity in ("tps", "user", "kernel")]
    notes: dict[str, str] = dict.fromkeys(rows, LOOKUPS)
    notes["flow_t2_off_off_tuples"] = notes["flow_t2_on_off_tuples"] = (
        "one mask holds all packets of our trace without optimizations; the paper's switch had three"
    )
    notes["flow_t2_off_on_kernel"] = KERNEL_LOOKUPS
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


TARGETS: Final = read_targets(
    "flowtables",
    {
        "pipeline": find_pipeline,
        "tuple_search": find_tuple_search,
        "tries": find_tries,
        "cache": find_cache,
        "production": find_production,
        "costs": find_costs,
        "bridge": find_bridge,
        "rules": find_rules,
        "table_1": find_table_1,
        "table_2": find_table_2,
    },
)
