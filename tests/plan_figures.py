"""Figures of plans that people see first, computed from the tables that a user would export.

Each system has an own, short computation, which shares no code with its check and metrics. It returns what
the tables say: where they leave something open, such as what a packet switch carries, a figure is missing.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

Tables = Mapping[str, pd.DataFrame]
Figures = dict[str, float]
PROBE_NS, UPCALL_US = 147.0, 11.5
"""Costs of a virtual switch's cache as published (Pfaff et al. 2015), where a problem has none."""
FREE_SHARE: Final = 0.05
"""Of windows that the 95th percentile does not bill."""
OVERLOAD: Final = 1 + 1e-6
SWEEPS: Final = 400
"""Of the fixed point of drops, at most."""


def analytics(problem: Tables, plan: Tables) -> Figures:
    return {"value": plan["answers"]["value_usd"].sum()}


def brokering(problem: Tables, plan: Tables) -> Figures:
    assigned, clusters = plan["assignments"], problem["clusters"].set_index("cluster")
    assigned = assigned[assigned["clients"] > 0]
    mbps = (assigned["clients"] * assigned["bitrate_kbps"] / 1000).groupby(assigned["cluster"]).sum()
    load = mbps.add(clusters.get("background_mbps", 0.0), fill_value=0.0)
    full = load > clusters["capacity_mbps"].reindex(load.index) * OVERLOAD
    congested = assigned["clients"][assigned["cluster"].map(full)].sum()
    shed = plan["shed"]["clients"].sum() if "shed" in plan else 0
    clients = problem["clients"]["clients"].sum()
    figures = {"clients": clients, "shed": shed, "congested": congested}
    return figures | {"served": clients - shed - congested}


def capacity(problem: Tables, plan: Tables) -> Figures:
    bought = plan["purchases"]
    setup = bought["setup_cost"].sum() if "setup_cost" in bought else 0.0
    return {"purchase_cost": bought["cost"].sum() + setup}


def cdnrouting(problem: Tables, plan: Tables) -> Figures:
    terms = problem["terms"].iloc[0] if "terms" in problem and len(problem["terms"]) else {}
    queueing_ms = float(terms.get("queueing_ms", 1.0))
    node_of = {node: row for row, node in enumerate(problem["nodes"]["node"])}
    links = problem["links"]
    index = {(row.tail, row.head): number for number, row in enumerate(links.itertuples())}
    if len(index) < len(links):  # parallel links
        return {}
    moves = sorted({*plan["assignments"]["move"], *plan["routes"]["move"]})
    served, delays, utilization = [], [], []
    for move in moves:
        assigned, routes = (plan[name][plan[name]["move"] == move] for name in ("assignments", "routes"))
        injected = _injected(problem, assigned, node_of)
        load = np.zeros(len(links))
        for target, rows in routes.groupby("target"):
            load += _load_to(str(target), rows, injected.pop(str(target), {}), node_of, index, len(links))
        if any(sum(rates.values()) > 1e-9 for rates in injected.values()):
            return {}  # demands without a path
        used = load / links["capacity_mbps"].to_numpy(float)
        inside = np.minimum(used, 0.95)
        queue = inside / (1 - inside) + np.maximum(used - 0.95, 0.0) / (1 - 0.95) ** 2
        delays.append(float(load @ (links["latency_ms"].to_numpy(float) + queueing_ms * queue)))
        served.append(float(assigned["mbps"].sum()))
        utilization.append(float(used.max()))
    clients = problem["clients"]
    requested = float((clients["clients"] * clients["bitrate_kbps"]).sum()) / 1000
    figures = {"served_mbps": float(np.mean(served)), "max_utilization": max(utilization)}
    if min(served) >= requested * (1 - 1e-9):
        offered = requested + float(problem["demands"]["rate_mbps"].sum())
        figures["mean_delay_ms"] = float(np.mean(delays)) / offered
    return figures


def _injected(problem: Tables, assigned: pd.DataFrame, nodes: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the traffic by target and source node: background, and that from clusters to clients."""
    injected: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in problem["demands"].itertuples():
        injected[row.target][row.source] += row.rate_mbps
    places: dict[str, list[tuple[str, float]]] = defaultdict(list)
    if "places" in problem:
        for row in problem["places"].itertuples():
            places[row.location].append((row.node, row.share))
    for node in nodes:
        places.setdefault(node, [(node, 1.0)])
    location = problem["clusters"].set_index("cluster")["location"]
    for row in assigned.itertuples():
        for source, part in places[location[row.cluster]]:
            for target, share in places[row.location]:
                if source != target:
                    injected[target][source] += row.mbps * part * share
    return injected


def _load_to(
    target: str,
    routes: pd.DataFrame,
    injected: Mapping[str, float],
    node_of: Mapping[str, int],
    index: Mapping[tuple[str, str], int],
    links: int,
) -> np.ndarray:
    """Return the load of links by the traffic to one node, split at each node as the rows say."""
    count = len(node_of)
    split, rates = np.zeros((count, count)), np.zeros(count)
    for row in routes.itertuples():
        split[node_of[row.head], node_of[row.tail]] += row.share
    for node, rate in injected.items():
        rates[node_of[node]] += rate
    split[:, node_of[target]] = 0.0
    passing = np.linalg.solve(np.eye(count) - split, rates)
    load = np.zeros(links)
    for row in routes.itertuples():
        load[index[row.tail, row.head]] += row.share * passing[node_of[row.tail]]
    return load


def circuitflows(problem: Tables, plan: Tables) -> Figures:
    simulated_us = float(plan["settings"]["simulated_us"].iloc[0])
    end_us = simulated_us or float(problem["network"]["horizon_us"].iloc[0])
    flows = problem["flows"]
    return {"offered_gb": flows["bytes"][flows["start_us"] < end_us].sum() / 1e9}


def circuits(problem: Tables, plan: Tables) -> Figures:
    offered, unserved = problem["demands"]["bits"].sum(), plan["unserved"]["bits"].sum()
    if "multicasts" in problem:
        offered += problem["multicasts"]["bits"].sum()  # a row for each rack that receives them
    figures = {"unserved_bits": unserved, "served_bits": offered - unserved}
    if "window_us" in problem["switch"]:
        window_us = float(problem["switch"]["window_us"].iloc[0])
        figures |= {"served_mbps": (offered - unserved) / window_us, "offered_mbps": offered / window_us}
    return figures


def coflows(problem: Tables, plan: Tables) -> Figures:
    ends = plan["circuits"].groupby("coflow")["end_ms"].max()
    arrival = problem["coflows"].set_index("coflow")["arrival_ms"]
    if set(ends.index) != set(arrival.index):  # some are served by the packet switch
        return {}
    taken = ends - arrival.reindex(ends.index)
    return {"longest_completion_ms": taken.max(), "mean_completion_ms": taken.mean()}


def consolidation(problem: Tables, plan: Tables) -> Figures:
    price = dict(zip(problem["hosts"]["host_type"], problem["hosts"]["price_per_h"], strict=True))
    fleet = plan["fleet"]
    hosts = fleet.set_index("host")["hosts"]
    figures = {"hosts": float(fleet["hosts"].sum())}
    refused = plan["refused"]["machines"].sum() if "refused" in plan else 0.0
    figures["refused"] = float(refused)
    if "survive" not in problem and not refused:
        figures["price_per_h"] = float((fleet["hosts"] * fleet["host_type"].map(price)).sum())
    copies = plan["placement"].groupby(["host", "machine", "copy"])
    split = copies["machines"].first()[copies.size() > 1]
    its_hosts = hosts.reindex(split.index.get_level_values("host")).to_numpy(float)
    figures["split_machines"] = float(split.to_numpy(float) @ its_hosts)
    return figures


def contracts(problem: Tables, plan: Tables) -> Figures:
    windows = problem["traffic"]["window"].nunique()
    traffic = problem["traffic"]["traffic_mbps"].sum() / windows
    carried = plan["loads"]["load_mbps"].sum() / windows
    figures = {"offered_mbps": traffic, "delivered_mbps": carried, "unserved_mbps": traffic - carried}
    return figures | {"bill": sum(_amounts_due(problem, plan, windows))}


def _amounts_due(problem: Tables, plan: Tables, windows: int) -> Iterable[float]:
    """Yield the amount due on each bill, in whole cents; a contract without a bill has one of its own."""
    contracts = problem["contracts"]
    bills = contracts["bill"] if "bill" in contracts else pd.Series("", index=contracts.index)
    names = np.where(bills.to_numpy(str) == "", contracts.index.astype(str), bills.to_numpy(str))
    for _, rows in contracts.groupby([contracts["cdn"].astype(str).to_numpy(), names], sort=False):
        volumes = [
            _volume(sent, str(rows["billing"].iloc[0])) for sent in _metered(problem, plan, rows, windows)
        ]
        yield round(max(_price(problem, rows, max(volumes)) - _term(rows, "credit"), 0.0), 2)


def _metered(problem: Tables, plan: Tables, rows: pd.DataFrame, windows: int) -> Iterable[list[float]]:
    """Yield the traffic that a bill meters in each window, of each direction that is billed by itself."""
    traffic, loads = problem["traffic"], plan["loads"]
    loads = loads[(loads["cdn"] == rows["cdn"].iloc[0]) & loads["region"].isin(rows["region"])]
    both = loads.merge(traffic, on=["window", "region"])
    out = both["load_mbps"]
    into = out * both["traffic_in_mbps"] / both["traffic_mbps"] if "traffic_in_mbps" in both else 0.0 * out
    metered = rows["metered"].iloc[0] if "metered" in rows else "out"
    kinds = {"out": [out], "in": [into], "in + out": [out + into], "larger": [out, into]}[metered]
    for amount in kinds:
        sent = amount.groupby(both["window"]).sum().tolist()
        yield sorted([*sent, *[0.0] * (windows - len(sent))])


def _volume(sent: list[float], billing: str) -> float:
    """Return the billed volume of ascending amounts of all windows."""
    windows = len(sent)
    return {
        "mean": sum(sent) / windows,
        "peak": sent[-1],
        "95th percentile": sent[windows - math.floor(FREE_SHARE * windows) - 1],
    }[billing]


def _price(problem: Tables, rows: pd.DataFrame, volume: float) -> float:
    """Return the price of a volume, at least the commitment, by the tiers and the burst price of a bill."""
    commitment = _term(rows, "commitment_mbps")
    billed, first = max(volume, commitment), float(rows["price_per_mbps"].iloc[0])
    steps = [(0.0, first)]
    if (burst := _term(rows, "burst_price_per_mbps")) > 0:
        steps.append((commitment, burst))
    if "tiers" in problem:
        tiers = problem["tiers"]
        of_bill = (tiers["cdn"] == rows["cdn"].iloc[0]) & tiers["region"].isin(rows["region"])
        steps += zip(tiers["above_mbps"][of_bill], tiers["price_per_mbps"][of_bill], strict=True)
    steps = sorted(steps)
    ends = [start for start, _ in steps[1:]] + [math.inf]
    return sum(
        max(min(billed, end) - start, 0.0) * price for (start, price), end in zip(steps, ends, strict=True)
    )


def _term(rows: pd.DataFrame, name: str) -> float:
    """Return a term of a bill; 0 where it is absent or blank."""
    value = float(rows[name].iloc[0]) if name in rows else 0.0
    return 0.0 if math.isnan(value) else value


def fairshare(problem: Tables, plan: Tables) -> Figures:
    rates = plan["rates"]
    share = rates["kops"] / rates["fair_share_kops"]
    served = plan["serving"].groupby("tenant")["kops"].sum() if "serving" in plan else pd.Series(dtype=float)
    figures = {"min_share": min(1.0, float(share[rates["fair_share_kops"] > 0].min()))}
    return figures | ({"throughput_kops": float(served.sum())} if len(served) else {})


def geostore(problem: Tables, plan: Tables) -> Figures:
    regions = problem["regions"].set_index("region")
    users = problem["access"].merge(plan["routes"], on=["group", "region"])
    keys = users.get("keys_per_op", 1.0)
    month = 30 * 24 * 3600
    replicas = plan["replicas"]
    put = (replicas["region"].map(regions["put_usd"]) * replicas["copies"]).groupby(replicas["group"]).sum()
    get = [sum(regions["get_usd"][name] for name in cell.split(" + ")) for cell in users["read_from"]]
    reads, writes = users["reads_per_s"], users["writes_per_s"]
    requests = (reads * keys * np.array(get) + writes * keys * users["group"].map(put)).sum() * month
    return _shards(problem, plan) | {
        "replicas": replicas["copies"].sum(),
        "request_usd": requests,
        "read_ms": (users["read_ms"] * reads).sum() / reads.sum(),
    }


def _shards(problem: Tables, plan: Tables) -> Figures:
    if "shards" not in plan:
        return {}
    shards = plan["shards"]
    ranges = problem["ranges"].set_index("range")["kops"] / shards.groupby("range").size()
    load = shards["range"].map(ranges).groupby(shards["server"]).sum()
    return {"max_load": float((load / problem["servers"].set_index("server")["kops"]).max())}


def flowtables(problem: Tables, plan: Tables) -> Figures:
    costs = problem["costs"].iloc[0] if "costs" in problem and len(problem["costs"]) else {}
    probe_us = float(costs.get("probe_ns", PROBE_NS)) / 1000
    upcall_us = float(costs.get("upcall_us", UPCALL_US))
    connections, masks, entries = len(problem["flows"]), plan["masks"], plan["megaflows"]
    hits = int(entries["connections"].sum())
    misses = len(entries) + connections - hits
    time_us = probe_us * float(masks["position"] @ masks["connections"])
    time_us += misses * (upcall_us + probe_us * len(masks))
    to_controller = entries["action"].str.split().map(lambda actions: "controller" in actions)
    figures = {"misses": misses, "masks": len(masks), "uncached": connections - hits}
    if hits == connections:  # the tables do not say the actions of connections without an entry
        time_us += float(entries["connections"][to_controller].sum()) * upcall_us
        figures["cpu_per_connection_us"] = time_us / connections
    return figures


def livevideo(problem: Tables, plan: Tables) -> Figures:
    trees, links = plan["trees"], problem["links"]
    load: dict[tuple[str, str], float] = defaultdict(float)
    for row in trees.itertuples():
        load[row.tail, row.head] += row.bitrate_kbps / 1000
    viewers = list(plan["viewers"].itertuples()) if "viewers" in plan else []  # of a unicast last hop
    for row in viewers:
        load[row.edge, row.group] += row.clients * row.bitrate_kbps / 1000
    capacity_mbps = {(row.tail, row.head): row.capacity_mbps for row in links.itertuples()}
    full = {link for link, mbps in load.items() if mbps > capacity_mbps[link] * OVERLOAD}
    clusters = problem["clusters"]
    sources = set(clusters["cluster"][clusters["tier"] == clusters["tier"].iloc[0]])
    reached = {
        item: _intact(rows, sources, full) for item, rows in trees.groupby(["channel", "bitrate_kbps"])
    }
    requests = problem["requests"]
    states = [
        reached.get((row.channel, row.bitrate_kbps), {}).get(row.group) for row in requests.itertuples()
    ]
    clients = requests["clients"].to_numpy(float)
    served = clients[np.array([state is True for state in states])].sum()
    at_sources = dict.fromkeys(sources, True)
    for row in viewers:
        is_intact = reached.get((row.channel, row.bitrate_kbps), at_sources).get(row.edge)
        served += row.clients if is_intact and (row.edge, row.group) not in full else 0
    price = {(row.tail, row.head): getattr(row, "cost", 0.0) for row in links.itertuples()}
    return {
        "clients": clients.sum(),
        "clients_at_bitrate": 100 * served / clients.sum(),
        "cost": sum(price[link] * mbps for link, mbps in load.items()) + _added_to_bills(problem, load),
    }


def _added_to_bills(problem: Tables, load: Mapping[tuple[str, str], float]) -> float:
    """Return what the load of links adds to bills by percentile: with its windows, less without any load."""
    total = 0.0
    for bill in problem["bills"].itertuples() if "bills" in problem else ():
        links = problem["links"][problem["links"]["bill"] == bill.bill]
        mbps = sum(load.get((row.tail, row.head), 0.0) for row in links.itertuples())
        samples = problem["samples"]["load_mbps"][problem["samples"]["bill"] == bill.bill].tolist()
        windows = int(getattr(bill, "windows", 1))
        committed = getattr(bill, "commitment_mbps", 0.0)
        levels = []
        for rate in (mbps, 0.0):
            ordered = sorted(samples + [rate] * windows)
            rank = math.ceil(len(ordered) * getattr(bill, "percentile", 95.0) / 100 - 1e-9)
            levels.append(max(ordered[max(rank, 1) - 1], 0.0 if math.isnan(committed) else committed))
        total += bill.price_per_mbps * (levels[0] - levels[1])
    return total


def _intact(rows: pd.DataFrame, sources: set[Any], full: set[tuple[str, str]]) -> dict[Any, bool]:
    """Return the nodes that a tree reaches, and whether over links without overload."""
    children: dict[str, list[str]] = defaultdict(list)
    for tail, head in zip(rows["tail"], rows["head"], strict=True):
        children[tail].append(head)
    intact: dict[Any, bool] = {}
    stack = [(source, True) for source in sources]
    while stack:
        node, is_intact = stack.pop()
        if node in intact:
            continue
        intact[node] = is_intact
        stack += [(head, is_intact and (node, head) not in full) for head in children[node]]
    return intact


def membership(problem: Tables, plan: Tables) -> Figures:
    price = problem["sites"].set_index("site")["price_per_month"]
    rows = plan["members"]
    deciding = rows[rows["role"] != "manager"]["count"].sum()
    figures = {"price": float((rows["site"].map(price) * rows["count"]).sum()), "members": float(deciding)}
    unwatched = plan["shed"]["targets"].sum() if "shed" in plan else 0.0
    return figures | {"unwatched": float(unwatched), "commit_ms": float(plan["protocol"]["commit_ms"].max())}


def multicast(problem: Tables, plan: Tables) -> Figures:
    needed = plan["entries"]
    limits = {layer: problem["fabric"][f"{layer}_entries"].iloc[0] for layer in needed["layer"].unique()}
    if (needed["entries"] > needed["layer"].map(limits)).any() or "headers" in plan:
        return {}  # full tables refuse groups; headers reach hosts that tables do not name
    groups = problem["groups"].set_index("group")["rate_mbps"]
    members = problem["members"].groupby("group")["host"].agg(set)
    stored = set(plan["partitions"]["group"]) if "partitions" in plan else set()
    at_switch = _edge_switches(problem)
    here: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in problem["members"].itertuples():
        here[at_switch[row.host], row.group].add(row.host)
    extra: dict[str, int] = defaultdict(int)
    for (switch, _), rows in plan["meta_groups"].groupby(["switch", "meta_group"]):
        reached = set().union(*(here[switch, group] for group in rows["group"]))
        for group in rows["group"]:
            if here[switch, group]:
                extra[group] += len(reached) - len(here[switch, group])
    total = 0.0
    for group, rate in groups.items():
        count = len(members.get(group, ()))
        total += rate * (1 + count + extra[group]) if group in stored else 2 * rate * count
    return {"host_traffic_mbps": total, "groups_by_unicast": len(groups) - len(stored)}


def _edge_switches(problem: Tables) -> dict[str, str]:
    """Return the edge switch of each host."""
    hosts = problem["hosts"].astype({"pod": int, "edge": int})
    if "switches" not in problem:
        return {row.host: f"edge-{row.pod}-{row.edge}" for row in hosts.itertuples()}
    edges = problem["switches"][problem["switches"]["layer"] == "edge"]
    names = {int(pod): rows["switch"].tolist() for pod, rows in edges.groupby("pod")}
    return {row.host: names[row.pod][row.edge] for row in hosts.itertuples()}


def queries(problem: Tables, plan: Tables) -> Figures:
    asked, answers = problem["queries"].set_index("query"), plan["answers"].set_index("query")
    period = answers["period_s"] if "period_s" in answers else pd.Series(np.nan, index=answers.index)
    share = (asked["every_s"].reindex(answers.index) / period).fillna(1.0)
    figures = {
        "asked": float(asked["weight"].sum()),
        "answered": float((asked["weight"].reindex(answers.index) * share).sum()),
        "unanswered": float(len(asked) - len(answers)),
        "coarser": float((share < 1 - 1e-9).sum()),
    }
    if (plan["methods"]["method"].isin(["ahead", "controller"])).all():
        figures["rules"] = float(len(plan["rules"]))
    return figures


def rotors(problem: Tables, plan: Tables) -> Figures:
    offered, unserved = problem["demands"]["rate_mbps"].sum(), plan["unserved"]["rate_mbps"].sum()
    return {"offered_mbps": offered, "unserved_mbps": unserved, "delivered_mbps": offered - unserved}


def topology(problem: Tables, plan: Tables) -> Figures:
    port = problem["blocks"].set_index("block")["port_mbps"]
    rate = problem["demands"].groupby(["source", "target"])["rate_mbps"].sum()
    rate = rate[rate > 0]
    room: dict[tuple[str, str], float] = defaultdict(float)
    for row in plan["topology"].itertuples():
        mbps = row.links * min(port[row.block], port[row.other_block])
        room[row.block, row.other_block] += mbps
        room[row.other_block, row.block] += mbps
    load: dict[tuple[str, str], float] = defaultdict(float)
    hops, routed = 0.0, 0.0
    for row in plan["routes"].itertuples():
        sent = row.share * rate[row.source, row.target]
        stops = [row.source, *([row.via] if isinstance(row.via, str) and row.via else []), row.target]
        for pair in itertools.pairwise(stops):
            load[pair] += sent
        hops += sent * (len(stops) - 1)
        routed += sent
    figures = {"offered_mbps": float(rate.sum())}
    if routed >= float(rate.sum()) * (1 - 1e-9):
        figures["demand_scale"] = min(room[pair] / mbps for pair, mbps in load.items() if mbps > 0)
        figures["stretch"] = hops / routed
    return figures


def traffic(problem: Tables, plan: Tables) -> Figures:
    offered = problem["demands"]["rate_mbps"].sum()
    shed = plan["shed"]["rate_mbps"].sum() if "shed" in plan else 0.0
    missing = shed + (plan["lost"]["rate_mbps"].sum() if "lost" in plan else 0.0)
    figures = {"offered_mbps": offered, "shed_mbps": shed}
    if (plan["links"]["utilization"] <= OVERLOAD).all():
        return figures | {"delivered_mbps": offered - missing, "lost_mbps": missing - shed}
    if "classes" in problem or {"source", "target"} - {*plan["flows"]}:
        return figures  # queues serve classes; flows of several demands
    arrived = _delivered(problem, plan)
    return figures | {"delivered_mbps": arrived, "lost_mbps": offered - shed - arrived}


def _delivered(problem: Tables, plan: Tables) -> float:
    """Return the traffic that arrives where each link drops its excess, the same share of all on it.

    Traffic that is dropped loads no later link. A demand leaves a node over its links in the proportions of
    its planned flow.
    """
    ends = ["source", "target"]
    flows = plan["flows"].astype(dict.fromkeys([*ends, "tail", "head"], str))
    flows = flows[flows["rate_mbps"] > 0].groupby([*ends, "tail", "head", "parallel"])["rate_mbps"].sum()
    flows = flows.reset_index()
    capacity_mbps = plan["links"]["load_mbps"] / plan["links"]["utilization"].where(lambda used: used > 0)
    links = plan["links"].astype({"tail": str, "head": str})
    label = pd.MultiIndex.from_frame(links[["tail", "head", "parallel"]])
    link = label.get_indexer(pd.MultiIndex.from_frame(flows[["tail", "head", "parallel"]]))
    limit = capacity_mbps.fillna(np.inf).to_numpy(float)
    split = flows["rate_mbps"] / flows.groupby([*ends, "tail"])["rate_mbps"].transform("sum")
    begins = (flows["tail"] == flows["source"]).astype(int) - (flows["head"] == flows["source"]).astype(int)
    sums = flows.assign(begins=begins * flows["rate_mbps"]).groupby(ends)["begins"].sum()
    places, cells = pd.factorize(
        pd.concat(
            [
                flows["source"] + "\t" + flows["target"] + "\t" + flows[end]
                for end in ("tail", "head", "source", "target")
            ]
        )
    )
    tail, head, source, target = places.reshape(4, -1)
    sent = np.zeros(len(cells))
    sent[source] = sums.reindex(pd.MultiIndex.from_frame(flows[ends])).to_numpy(float)
    leaves = np.ones(len(cells))
    leaves[target] = 0.0
    at = sent.copy()
    for _ in range(SWEEPS):
        on_link = (at * leaves)[tail] * split.to_numpy(float)
        arriving = np.bincount(link, on_link, minlength=len(limit))
        passed = np.minimum(1.0, limit / np.maximum(arriving, 1e-300))
        before, at = at, sent + np.bincount(head, on_link * passed[link], minlength=len(cells))
        if np.allclose(at, before, rtol=1e-12, atol=1e-12):
            break
    return float(at[np.unique(target)].sum())


def updates(problem: Tables, plan: Tables) -> Figures:
    classes = pd.concat([problem["now"], problem["next"]])["class"].nunique()
    return {"classes": classes, "operations": len(plan["operations"])}


FIGURES: Final[Mapping[str, Callable[[Tables, Tables], Figures]]] = {
    "analytics": analytics,
    "brokering": brokering,
    "capacity": capacity,
    "cdnrouting": cdnrouting,
    "circuitflows": circuitflows,
    "circuits": circuits,
    "coflows": coflows,
    "consolidation": consolidation,
    "contracts": contracts,
    "fairshare": fairshare,
    "flowtables": flowtables,
    "geostore": geostore,
    "livevideo": livevideo,
    "membership": membership,
    "multicast": multicast,
    "queries": queries,
    "rotors": rotors,
    "topology": topology,
    "traffic": traffic,
    "updates": updates,
}
