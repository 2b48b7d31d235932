"""Estimate of demands from the loads of links: tomogravity.

Routers count what their links carry, not where it goes. Many demand matrices make the same loads; of these,
the estimate is the one nearest to the gravity model, by relative entropy:

    min sum_k t_k log(t_k / g_k)   s.t.  sum_k a_ek t_k = load_e for each link e,
                                          totals of what each node sends and receives,  t >= 0

with the share a_ek of demand k on link e, and g_k in proportion to what its source sends times what its
target receives. Scaling the demands on one link after the other to its load converges to it (multiplicative
algebraic reconstruction).

source  tomogravity: Zhang, Roughan, Duffield and Greenberg 2003; entropy: Zhang, Roughan, Lund, Donoho 2003
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats
from planner.compiled import njit, run_small_in_python
from planner.contract.table import Table, label, number
from planner.contract.tables import report_unknown_names, row_name
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner.search.tolerances import ROUNDING
from planner_models.flows import split_ratios
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.schema import LEAST_MBPS, LINKS, MOST_MBPS, NODES

MAX_SWEEPS: Final = 2_000
TOLERANCE: Final = ROUNDING  # relative, of loads and totals that the estimate makes
MAX_PAIRS: Final = 200_000  # of nodes in a network whose demands are estimated

LOADS: Final = Table(
    name="loads",
    about="what a link carries, as its router counts",
    columns={
        "tail": label("node where the link starts"),
        "head": label("node where the link ends"),
        "parallel": number(
            "which of the links from tail to head, from 1", at_least=1, whole=True, optional=True, default=1.0
        ),
        "load_mbps": number("traffic on the link, Mbit/s", at_least=0),
    },
    key=("tail", "head", "parallel"),
)
TOTALS: Final = Table(
    name="totals",
    about="what a node sends and receives for its own users, as its access links count",
    columns={
        "node": label("the node"),
        "egress_mbps": number("traffic that starts there, Mbit/s", at_least=0),
        "ingress_mbps": number("traffic that ends there, Mbit/s", at_least=0),
    },
    key=("node",),
)


def estimate(
    problem: Traffic,
    share: sp.csr_array,
    load_mbps: Floats,
    totals: tuple[Floats, Floats] | None = None,
    possible: Floats | None = None,
) -> Floats:
    """Return the estimated rates of the demands, (K,) Mbit/s.

    share      (K, E) of each demand's traffic on each link, by the routing in place
    load_mbps  (E,) measured; nan where a link is not measured
    totals     (N,) each: what nodes send, and receive; None: of what their links send and receive, which
               other traffic passes too, for the gravity model alone
    possible   (K,) 0 for demands that are known to be 0; None: none is known
    """
    nodes = len(problem.nodes)
    is_known = np.isfinite(load_mbps)
    if totals is None:
        load_known = np.where(is_known, load_mbps, 0.0)
        sent, received = (sum_by_index(ends, load_known, nodes) for ends in (problem.tail, problem.head))
    else:
        sent, received = totals
    prior = sent[problem.source] * received[problem.target]
    prior = prior if possible is None else np.where(possible > 0, prior, 0.0)
    rows = [sp.csr_array(share.T)[is_known]]
    right_sides = [load_mbps[is_known]]
    if totals is not None:
        each = np.arange(len(problem.demands))
        for ends, total in ((problem.source, sent), (problem.target, received)):
            rows.append(sp.csr_array((np.ones(len(each)), (ends, each)), shape=(nodes, len(each))))
            right_sides.append(total)
    matrix, right = sp.csr_array(sp.vstack(rows)), np.concatenate(right_sides)
    carried = float(matrix @ prior @ right)
    scale = float(right @ right) / carried if carried > 0 else 0.0
    rate = prior * scale
    _scale_to_rows(matrix.indptr, matrix.indices, matrix.data, right, rate, MAX_SWEEPS, TOLERANCE)
    return np.where(rate >= LEAST_MBPS, np.minimum(rate, MOST_MBPS), 0.0)


def ecmp_shares(problem: Traffic) -> sp.csr_array:
    """Return the share of each demand on each link, (K, E), under shortest paths with ECMP."""
    ratios = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
    is_routable = (problem.rate_mbps > 0) & ~problem.unreachable
    return sp.csr_array(split_ratios.apply_ratios(problem, ratios, is_routable.astype(float)))


def measure_error(truth_mbps: Floats, estimate_mbps: Floats) -> float:
    """Return the sum of all errors of rates, (K,), over all traffic; smaller is better."""
    return float(np.abs(estimate_mbps - truth_mbps).sum() / truth_mbps.sum())


def read(
    path: Annotated[
        Path,
        Field(
            description="folder or workbook with links, loads (tail, head, load_mbps), and where known nodes "
            "and totals (node, egress_mbps, ingress_mbps)"
        ),
    ],
) -> Traffic:
    """Estimate the demands of a network from the loads of its links, under shortest paths with ECMP.

    Every pair of nodes with a path may have a demand. A link that `loads` does not list is not measured.

    raises  InputError for names that are not in the network, and for a network that is too large
    """
    tables = (NODES, LINKS, LOADS, TOTALS)
    frames = read_tables(tables, find_tables(tables, path, ("nodes", "totals")))
    network: dict[str, pd.DataFrame] = {"links": frames["links"]}
    named = pd.concat([frames["links"]["tail"], frames["links"]["head"]])
    if "nodes" in frames:
        network["nodes"], named = frames["nodes"], frames["nodes"]["node"]
    names = list(dict.fromkeys(named.tolist()))
    if len(names) ** 2 > MAX_PAIRS:
        raise InputError(
            f"links: {len(names):,} nodes have too many pairs; at most {MAX_PAIRS:,} are estimated"
        )
    pairs = [(source, other, 1.0) for source in names for other in names if source != other]
    demands = pd.DataFrame(pairs, columns=["source", "target", "rate_mbps"])
    problem = Traffic.from_tables({**network, "demands": demands})
    loads = frames["loads"]
    link = problem.find_links(
        problem.find_nodes(loads["tail"]),
        problem.find_nodes(loads["head"]),
        loads["parallel"].to_numpy(np.int64),
    )
    if (link < 0).any():
        row = int(np.argmax(link < 0))
        name = f"{loads['tail'].iloc[row]}->{loads['head'].iloc[row]}"
        raise InputError(f"{row_name(loads, 'loads', row)}: {name} is no link of the network")
    load = np.full(len(problem.links), np.nan)
    load[link] = loads["load_mbps"].to_numpy(float)
    totals = None
    if "totals" in frames:
        table = frames["totals"]
        faults = report_unknown_names(table, "totals", "node", names, "no node of the network")
        if faults:
            raise InputError(*faults)
        node = problem.find_nodes(table["node"])
        sent, received = (
            sum_by_index(node, table[name].to_numpy(float), len(names))
            for name in ("egress_mbps", "ingress_mbps")
        )
        totals = (sent, received)
    possible = np.where(problem.unreachable, 0.0, 1.0)
    rate = estimate(problem, ecmp_shares(problem), load, totals, possible)
    estimated = problem.with_rates(rate)
    positive = estimated.demands[rate > 0].reset_index(drop=True)
    if not len(positive):
        raise InputError("loads: no link carries anything; there is no demand to estimate")
    return Traffic.from_tables({**network, "demands": positive})


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _scale_to_rows(start, column, value, right, rate, sweeps, tolerance):  # type: ignore[no-untyped-def]
    """Scale `rate` (K,) to each row of `value` @ rate = right in turn, until all hold; changes `rate`."""
    for _ in range(sweeps):
        worst = 0.0
        for e in range(len(right)):
            now, largest = 0.0, 0.0
            for i in range(start[e], start[e + 1]):
                now += value[i] * rate[column[i]]
                largest = max(largest, value[i])
            if now <= 0.0:
                continue
            worst = max(worst, abs(now - right[e]) / max(now, right[e]))
            factor = right[e] / now
            for i in range(start[e], start[e + 1]):
                if factor <= 0.0:
                    rate[column[i]] = 0.0
                else:
                    rate[column[i]] *= factor ** (value[i] / largest)
        if worst <= tolerance:
            break
