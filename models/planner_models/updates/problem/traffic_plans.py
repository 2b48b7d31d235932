"""Updates from one plan of system `traffic` to another, as `planner solve --out` saves them, and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner.search.tolerances import SOLVED_SHARE
from planner_models.traffic.plan.schema import FLOWS, LINKS
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import MOST_MBPS

LEAST_SHARE = SOLVED_SHARE  # of a switch's packets; less is rounding
CAPACITY_DIGITS: Final = 12
PLAN = "plan"


def read(
    *,
    before: Annotated[
        Path,
        Field(description="folder of the present plan: tables flows and links, or plan/ with them"),
    ],
    after: Annotated[Path, Field(description="folder of the next plan, in the same form")],
    headroom: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="space of tables beyond the larger of before and after, as a part of it; none: no "
            "limit",
        ),
    ] = None,
    delay_ms: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="time that a packet takes on a link, ms")
    ] = 1.0,
) -> Update:
    """Return the update from one routing to another: a class for each demand, or for each target.

    Flows by demand make a class for each demand that enters at its source. Flows by target alone, which
    either plan may have, make a class for each target, which packets enter everywhere. A switch splits
    packets as the flows do. Capacities are those of links with a load; parallel links count as one.

    raises  InputError for folders without the tables, and for flows that run in circles
    """
    plans = [_read_plan(before), _read_plan(after)]
    key = ["source", "target", "class"]
    for flows, _ in plans:
        key = [name for name in key if name in flows]
    if "source" not in key and "class" in key:
        key = ["target"]
    parts = [_split(flows, key) for flows, _ in plans]
    links = _join_links([loads for _, loads in plans]).assign(delay_ms=delay_ms)
    names = pd.unique(pd.concat([links["from"], links["to"]]))
    traffic = pd.concat([_measure(flows, key) for flows, _ in plans]).groupby(level=0, sort=False).max()
    keys = pd.concat([frame[["class", *key_columns(key)]] for frame, _ in parts]).drop_duplicates("class")
    classes = pd.DataFrame({"class": keys["class"], "egress": keys["egress"]})
    if "source" in key:
        classes = classes.assign(ingress=keys["ingress"])
    classes = classes.assign(traffic_mbps=traffic.reindex(classes["class"]).fillna(0.0).to_numpy())
    made = Update(
        switches=pd.DataFrame({"switch": names}),
        links=links,
        classes=classes.reset_index(drop=True),
        now=parts[0][1],
        next=parts[1][1],
    )
    if headroom is None:
        return made
    held = np.maximum(made.rules_now, made.rules_next)
    sized = made.switches.assign(rule_capacity=np.floor(held * (1 + headroom) + 1e-9))
    return replace(made, switches=sized)


def to_flows(problem: Update, *, after: bool = True) -> pd.DataFrame:
    """Return the table `flows` of system `traffic` of the rules after the update, or before it.

    With it `planner check --plan` tests the routing that an update leads to on the problem of `traffic`.
    Demands that a plan sheds have no rules: they are in its table `shed`.

    raises  InputError for classes whose packets enter at several switches: the traffic of each is not known
    """
    many = np.flatnonzero(problem.ingress < 0)
    if len(many):
        raise InputError(
            f"classes row {many[0] + 1}: class '{problem.class_index[many[0]]}' has no ingress; flows need "
            "the source of all traffic"
        )
    slots = problem.slots
    configuration, share = (slots.next if after else slots.now), problem.hop_shares[int(after)]
    slot = np.repeat(np.arange(len(slots.owner)), np.diff(configuration.start))
    owner, names = slots.owner[slot], problem.switch_index.to_numpy(object)
    source, target = names[problem.ingress[owner]], names[problem.egress[owner]]
    labels = [
        _label(str(problem.class_index[row]), start, end)
        for row, start, end in zip(owner.tolist(), source, target, strict=True)
    ]
    frame = pd.DataFrame(
        {
            "source": source,
            "target": target,
            "tail": names[slots.switch[slot]],
            "head": names[configuration.hop],
            "rate_mbps": problem.traffic_mbps[owner] * share,
        }
    )
    if any(labels):
        frame = frame.assign(**{"class": labels})
    positive: pd.DataFrame = frame[frame["rate_mbps"] > 0].reset_index(drop=True)
    return positive


def _label(name: str, source: str, target: str) -> str:
    """Return the class of traffic in the name that `_name` gave to a class of packets; "" for none."""
    start = f"{source} > {target} ("
    return name[len(start) : -1] if name.startswith(start) and name.endswith(")") else ""


def key_columns(key: list[str]) -> list[str]:
    """Return the columns that classes of a key have besides their name."""
    return ["egress", *(["ingress"] if "source" in key else [])]


def _read_plan(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables flows and links of a saved plan."""
    folder = Path(folder)
    if (folder / PLAN).is_dir():
        folder = folder / PLAN
    elif folder.is_dir() and not any(path.name.startswith("flows") for path in folder.iterdir()):
        inside = sorted(path.parent.name for path in folder.glob(f"*/{PLAN}"))
        hint = (
            f"; it has those of designs {', '.join(inside)}: choose one, such as {inside[0]}"
            if inside
            else ""
        )
        raise InputError(f"{folder.name}: holds no plan of system traffic (tables flows and links){hint}")
    tables = read_tables([FLOWS, LINKS], find_tables([FLOWS, LINKS], folder))
    return tables["flows"], tables["links"]


def _name(frame: pd.DataFrame, key: list[str]) -> pd.Series:
    """Return the class of each row, such as `a > b (gold)` or `to b`."""
    target = frame["target"].astype(str)
    named = frame["source"].astype(str) + " > " + target if "source" in key else "to " + target
    return named + " (" + frame["class"].astype(str) + ")" if "class" in key else named


def _split(flows: pd.DataFrame, key: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the classes of flows, and the rules: the share of each next hop of a class at a switch."""
    frame = pd.DataFrame(
        {
            "class": _name(flows, key),
            "egress": flows["target"].astype(str),
            **({"ingress": flows["source"].astype(str)} if "source" in key else {}),
            "switch": flows["tail"].astype(str),
            "next_hop": flows["head"].astype(str),
            "rate": flows["rate_mbps"],
        }
    )
    columns = ["class", *key_columns(key)]
    frame = frame[(frame["rate"] > 0) & (frame["switch"] != frame["egress"])]
    by = [*columns, "switch", "next_hop"]
    grouped = pd.DataFrame(frame.groupby(by, sort=False, as_index=False)["rate"].sum())
    for _ in range(2):  # shares add up to 1 again without those that are rounding
        grouped["share"] = grouped["rate"] / grouped.groupby(["class", "switch"])["rate"].transform("sum")
        grouped = grouped[grouped["share"] > LEAST_SHARE].reset_index(drop=True)
    rules: pd.DataFrame = grouped[["class", "switch", "next_hop", "share"]]
    classes: pd.DataFrame = grouped[columns].drop_duplicates()
    return classes, rules


def _measure(flows: pd.DataFrame, key: list[str]) -> pd.Series:
    """Return the traffic of each class that arrives, Mbit/s."""
    arriving = flows[flows["head"].astype(str) == flows["target"].astype(str)]
    return arriving["rate_mbps"].groupby(_name(arriving, key), sort=False).sum()


def _join_links(loads: list[pd.DataFrame]) -> pd.DataFrame:
    """Return all links of two plans with their capacities, by load and utilization; blank without a load.

    Capacities are rounded to `CAPACITY_DIGITS`, as divisions are. The largest number stands for no limit in
    `traffic`: with it on one of parallel links, the capacity is blank.
    """
    frame = pd.concat(loads, ignore_index=True)
    is_used = frame["utilization"] > 0
    capacity = (frame["load_mbps"] / frame["utilization"]).where(is_used).map(_round_capacity)
    frame = pd.DataFrame(
        {
            "from": frame["tail"].astype(str),
            "to": frame["head"].astype(str),
            "parallel": frame.get("parallel", 1.0),
            "capacity_mbps": capacity.where(capacity < MOST_MBPS, np.inf).where(is_used),
        }
    )
    each = frame.groupby(["from", "to", "parallel"], sort=False, as_index=False)["capacity_mbps"].max()
    joined: pd.DataFrame = each.groupby(["from", "to"], sort=False, as_index=False)["capacity_mbps"].sum(
        min_count=1
    )
    return joined.assign(capacity_mbps=joined["capacity_mbps"].where(joined["capacity_mbps"] < MOST_MBPS))


def _round_capacity(capacity_mbps: float) -> float:
    return float(f"{capacity_mbps:.{CAPACITY_DIGITS}g}")
