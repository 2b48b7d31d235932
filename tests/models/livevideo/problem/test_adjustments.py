"""The note on links into groups: said where viewers are served only because streams are shared."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import planner
from planner.contract.notes import notes_of
from planner_models.livevideo import LiveVideo
from planner_models.livevideo.problem.adjustments import describe_shared_last_hop


def notes(capacity_mbps: float, clients: list[float]) -> list[str]:
    """Return the notes on a source with one link to each of several groups, which request 2 Mbit/s."""
    groups = [f"g{row}" for row in range(len(clients))]
    tables = {
        "clusters": pd.DataFrame({"cluster": ["src", *groups], "tier": ["source", *["group"] * len(groups)]}),
        "links": pd.DataFrame({"tail": "src", "head": groups, "capacity_mbps": capacity_mbps}),
        "objects": pd.DataFrame({"channel": ["c"], "bitrate_kbps": [2_000.0]}),
        "requests": pd.DataFrame(
            {"group": groups, "channel": "c", "bitrate_kbps": 2_000.0, "clients": clients}
        ),
    }
    note = describe_shared_last_hop(LiveVideo.from_tables(tables))
    return [note] if note else []


def test_a_last_hop_that_only_multicast_fits_is_said_once() -> None:
    (note,) = notes(100.0, [300.0])
    assert note == (
        "assumed: links into a group carry each stream once for all of its viewers (multicast); a stream of "
        "its own for each of the 300 viewers of 'g0' would need 600 Mbit/s, and its links have 100 Mbit/s; "
        "problem.last_hop = unicast plans a stream for each"
    )


@pytest.mark.parametrize(("clients", "group"), [([60.0, 300.0, 10.0], "g1"), ([300.0, 60.0, 10.0], "g0")])
def test_the_group_that_lacks_most_is_named_and_the_others_are_counted(
    clients: list[float], group: str
) -> None:
    (note,) = notes(100.0, clients)
    assert f"of '{group}' would need 600 Mbit/s" in note
    assert "; 1 other group is short too; " in note


def test_nothing_is_said_where_every_viewer_could_have_a_stream() -> None:
    assert notes(100.0, [50.0]) == []
    assert notes(100.0, [50.5]) != []


def test_a_scenario_of_tables_says_it_once_beside_the_answer(tmp_path: Path) -> None:
    for name, text in {
        "clusters": "cluster,tier\nsrc,source\ng,group\n",
        "links": "tail,head,capacity_mbps\nsrc,g,100\n",
        "objects": "channel,bitrate_kbps\nc,2000\n",
        "requests": "group,channel,bitrate_kbps,clients\ng,c,2000,300\n",
    }.items():
        (tmp_path / f"{name}.csv").write_text(text)
    file = tmp_path / "s.toml"
    file.write_text('system = "livevideo"\n[problem]\nsource = "tables"\npath = "."\n[designs.optimum]\n')
    run = planner.solve(file)
    assert run.metrics["unserved_clients"] == 0
    assert len([note for note in notes_of(run.problem) if "(multicast)" in note]) == 1
