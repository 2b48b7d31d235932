"""Checks of given plans, and of corrupted ones: rejected, reported with their amount, or legal."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner import Options
from planner.errors import InputError, PlanRejected
from planner_models.livevideo import SYSTEM, LiveVideo, Trees, check
from planner_models.livevideo.plan.plan import build_waits, from_tables
from planner_models.livevideo.problem import generators
from tests.models.livevideo.plans import V, plan, small


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", 1000.0, "S", "E")], "channel 'x' at 1000 kbit/s is no object of the problem"),
        ([("v", 1000.0, "A", "E")], "A->E is no link of the problem"),
        ([("v", 1000.0, "E", "A")], "E does not receive v/1000"),
        ([*V, ("v", 1000.0, "S", "E2"), ("v", 1000.0, "E2", "A")], "A receives v/1000 2 times"),
        ([*V, V[0]], "E receives v/1000 2 times"),
    ],
)
def test_tables_that_are_no_trees_are_rejected(rows: list[tuple[str, float, str, str]], message: str) -> None:
    with pytest.raises(PlanRejected, match=message):
        check(small(), plan(*rows))


def test_a_source_must_hold_the_channel() -> None:
    item = small()
    other = LiveVideo(
        clusters=pd.concat(
            [item.clusters, pd.DataFrame({"cluster": ["S2"], "tier": ["source"]})], ignore_index=True
        ),
        links=pd.concat(
            [item.links, pd.DataFrame([("S2", "E", 9.0, 0.0, 0.0)], columns=item.links.columns)],
            ignore_index=True,
        ),
        objects=item.objects, requests=item.requests,
        holders=pd.DataFrame({"channel": ["v"], "source": ["S2"]}),
    )  # fmt: skip
    with pytest.raises(PlanRejected, match="S does not hold v/1000"):
        check(other, plan(*V))


KINDS = ("drop a row", "duplicate a row", "change a number", "change a label", "swap labels")


@pytest.fixture(scope="module")
def decided() -> tuple[LiveVideo, Trees]:
    """Return a crowded test bed and a plan in which some requests wait and some are not served."""
    item = generators.ec2_testbed(videos=60, link_mbps=12.0)
    good = SYSTEM.design("distributed").decide(item, options=Options()).plan
    assert good.unserved is not None
    assert len(good.unserved)
    served = np.flatnonzero(~item.requests["channel"].isin(good.unserved["channel"]))
    return item, replace(good, waits=build_waits(item, served[:9], 5.0))


def corrupt(frame: pd.DataFrame, kind: str, random: np.random.Generator) -> pd.DataFrame:
    """Return the table with one fault of that kind."""
    row = int(random.integers(len(frame)))
    if kind == "drop a row":
        return frame.drop(index=row).reset_index(drop=True)
    if kind == "duplicate a row":
        return pd.concat([frame, frame.iloc[[row]]], ignore_index=True)
    numbers = [name for name in frame if name in ("bitrate_kbps", "clients", "waited_s")]
    labels = [name for name in frame if name not in numbers]
    other = frame.copy()
    if kind == "change a number":
        column = str(random.choice(numbers))
        factor = float(random.choice([-1.0, 0.0, 0.5, 1.5, 1e12, np.nan]))
        other[column] = other[column].astype(float)
        other.loc[row, column] *= factor
    elif kind == "change a label":
        other.loc[row, str(random.choice(labels))] = "nobody"
    else:
        column = str(random.choice(labels))
        second = int(random.integers(len(frame)))
        other.loc[[row, second], column] = frame.loc[[second, row], column].to_numpy()
    return other


def is_legal(item: LiveVideo, tables: dict[str, pd.DataFrame]) -> bool:
    """Return whether the tables are trees within capacities that agree with the lists of requests."""
    capacity = {(link.tail, link.head): link.capacity_mbps for link in item.links.itertuples()}
    load = Counter[tuple[str, str]]()
    receives: dict[tuple[str, float], set[str]] = {}
    parents = Counter[tuple[str, float, str]]()
    for row in tables["trees"].itertuples():
        load[row.tail, row.head] += row.bitrate_kbps / 1000
        receives.setdefault((row.channel, row.bitrate_kbps), set()).add(row.head)
        parents[row.channel, row.bitrate_kbps, row.head] += 1
    sources = {"S1", "S2"}
    fed = all(
        row.tail in sources or row.tail in receives[row.channel, row.bitrate_kbps]
        for row in tables["trees"].itertuples()
    )
    within = all(mbps <= capacity[link] * (1 + 1e-9) for link, mbps in load.items())
    asked = {(r.group, r.channel, r.bitrate_kbps): r.clients for r in item.requests.itertuples()}
    served = {key for key in asked if key[0] in receives.get(key[1:], set())}
    waits = [(r.group, r.channel, r.bitrate_kbps) for r in tables["waits"].itertuples()]
    unserved = {(r.group, r.channel, r.bitrate_kbps): r.clients for r in tables["unserved"].itertuples()}
    return (
        fed
        and within
        and max(parents.values()) == 1
        and set(waits) <= served
        and len(set(waits)) == len(waits)
        and (tables["waits"]["waited_s"] >= 0).all()
        and len(unserved) == len(tables["unserved"])
        and unserved == {key: clients for key, clients in asked.items() if key not in served}
    )


def test_the_plan_is_legal(decided: tuple[LiveVideo, Trees]) -> None:
    item, good = decided
    assert not len(check(item, good))
    assert is_legal(item, good.to_tables())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", ["trees", "waits", "unserved"])
def test_every_corruption_is_seen_or_harmless(
    decided: tuple[LiveVideo, Trees], table: str, kind: str
) -> None:
    item, good = decided
    random = np.random.default_rng(len(kind) + 100 * len(table))
    for _ in range(12):
        tables = good.to_tables()
        tables[table] = corrupt(tables[table], kind, random)
        if tables[table].equals(good.to_tables()[table]):
            continue
        try:
            violations = check(item, from_tables(item, tables))
        except (InputError, PlanRejected):
            continue
        assert len(violations) or is_legal(item, tables)


def test_requests_that_wait_in_vain_are_rejected(decided: tuple[LiveVideo, Trees]) -> None:
    item, good = decided
    assert good.unserved is not None
    waits = good.unserved.drop(columns="clients").assign(waited_s=1.0)
    with pytest.raises(PlanRejected, match=r"waits row 1: no tree reaches v\d+/1400 to G\d, must be served"):
        check(item, replace(good, waits=waits))


def test_clients_who_are_served_or_missing_are_rejected(decided: tuple[LiveVideo, Trees]) -> None:
    item, good = decided
    assert good.unserved is not None
    with pytest.raises(PlanRejected, match=r"unserved: lacks v\d+/1400 to G\d, which no tree reaches"):
        check(item, replace(good, unserved=good.unserved.iloc[1:].reset_index(drop=True)))
    served = item.requests[["group", "channel", "bitrate_kbps"]].assign(clients=1.0)
    with pytest.raises(PlanRejected, match=r"unserved row 1: a tree reaches v1/1400"):
        check(item, replace(good, unserved=served))
    with pytest.raises(PlanRejected, match=r"unserved row 1: clients is 2, must be 1"):
        check(item, replace(good, unserved=good.unserved.assign(clients=2.0)))
