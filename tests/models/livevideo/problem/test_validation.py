"""User errors through the command line: one clear line each, no traceback."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.commands import planner

CLUSTERS = "cluster,tier\nS,source\nE,edge\nF,edge\nA,group\nB,group\n"
LINKS = "tail,head,capacity_mbps,cost,latency_ms\nS,E,5,1,1\nS,F,5,1,1\nE,A,5,0,1\nF,B,5,0,1\n"
OBJECTS = "channel,bitrate_kbps,priority\nv,1000,1\nw,2000,1\n"
REQUESTS = "group,channel,bitrate_kbps,clients\nA,v,1000,3\nB,w,2000,1\n"
SESSIONS = "start_s,duration_s,group,channel,bitrate_kbps\n0,90,A,v,1000\n61,10,B,w,2000\n"
RULE = "channel,bitrate_kbps,tail,head\n"
RIGHT = {"clusters": CLUSTERS, "links": LINKS, "objects": OBJECTS, "requests": REQUESTS}
SCENARIO = (
    'system = "livevideo"\n[problem]\nsource = "tables"\npath = "net"\n[designs.optimum]\n'
    "[designs.cdn]\n[solver]\ntime_limit_s = 5\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a valid scenario, which is the working directory."""
    (tmp_path / "net").mkdir()
    for name, text in RIGHT.items():
        (tmp_path / "net" / f"{name}.csv").write_text(text)
    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_scenario_is_valid(folder: Path) -> None:
    result = planner("compare", "s.toml", "--out", folder / "out")
    assert result.code == 0, result.err
    assert (folder / "out" / "optimum" / "plan" / "trees.parquet").exists()


BAD: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "a missing file": (
        {"objects": ""},
        ["net: has no objects.csv (nor .parquet, .xlsx, .ods, .feather, .json)"],
    ),
    "an empty file": (
        {"links": b""},
        ["links.csv: is empty, must begin with a line of column names"],
    ),
    "only a header": ({"links": "tail,head,capacity_mbps\n"}, ["links.csv: holds no rows"]),
    "a missing column": (
        {"links": "tail,head,capacity\nS,E,5\n"},
        [
            (
                "links.csv: column 'capacity' names no unit: call it capacity_mbps where it is in Mbit/s, or "
                "give it its own unit, such as capacity_gbps; or write [problem.columns.links] "
                'capacity_mbps = "capacity" for Mbit/s, or write [problem.columns.links] '
                'capacity_gbps = "capacity" for Gbit/s'
            ),
        ],
    ),
    "semicolons": (
        {"objects": "channel;bitrate_kbps\nv;1,000\n"},
        [
            (
                "objects.csv row 2: bitrate_kbps is '1,000', 1000 or 1.000? say [problem.tables.objects] "
                'decimal = "." or ","'
            )
        ],
    ),
    "NaN": (
        {"links": LINKS + "E,B,nan,1,1\n"},
        ["links.csv row 6: capacity_mbps is nan, must be a finite number"],
    ),
    "infinite": (
        {"objects": OBJECTS + "x,inf,1\n"},
        ["objects.csv row 4: bitrate_kbps is inf, must be a finite number; for no limit write 1e+07"],
    ),
    "an empty field": ({"links": LINKS + "E,B,,1,1\n"}, ["links.csv row 6: capacity_mbps is empty"]),
    "negative capacity": (
        {"links": LINKS + "E,B,-3,1,1\n"},
        ["links.csv row 6: capacity_mbps is -3.0, must be at least 0"],
    ),
    "zero capacity": (
        {"links": LINKS + "E,B,-1,1,1\n"},
        ["links.csv row 6: capacity_mbps is -1.0, must be at least 0"],
    ),
    "all capacities negative": (
        {"links": "tail,head,capacity_mbps\nS,E,-1\nE,A,-1\n"},
        [
            "links.csv row 2: capacity_mbps is -1.0, must be at least 0",
            "links.csv row 3: capacity_mbps is -1.0, must be at least 0",
        ],
    ),
    "a negative cost": (
        {"links": LINKS + "E,B,1,-1,1\n"},
        ["links.csv row 6: cost is -1.0, must be at least 0"],
    ),
    "a bitrate of zero": (
        {"objects": OBJECTS + "x,0,1\n"},
        ["objects.csv row 4: bitrate_kbps is 0.0, must be greater than 0"],
    ),
    "no clients": (
        {"requests": REQUESTS + "A,w,2000,0\n"},
        ["requests.csv row 4: clients is 0.0, must be greater than 0"],
    ),
    "text in a number column": (
        {"links": LINKS + "E,B,ten,1,1\n"},
        ["links.csv row 6: capacity_mbps is 'ten', must be a number"],
    ),
    "a duplicate link": (
        {"links": LINKS + "S,E,1,1,1\n"},
        ["links.csv row 6: tail 'S', head 'E' is there already in row 2"],
    ),
    "a duplicate request": (
        {"requests": REQUESTS + "A,v,1000,1\n"},
        ["requests.csv row 4: group 'A', channel 'v', bitrate_kbps '1000.0' is there already in row 2"],
    ),
    "an unknown cluster": (
        {"links": LINKS + "S,G,1,1,1\n"},
        ["links.csv row 6: head 'G' is no cluster; valid: A, B, E, F, S"],
    ),
    "a binary file": ({"links": b"PK\x03\x04\x00\x00"}, ["links.csv: is a binary file, must be text"]),
    "another encoding": (
        {"clusters": "cluster,tier\nМосква,edge\n".encode("cp1251")},
        [
            (
                "clusters.csv: is not UTF-8, and 'Ìîñêâà' is no Western European text (cp1252); save it as "
                "UTF-8, or say [problem.tables.clusters] encoding"
            )
        ],
    ),
    "faults in two tables": (
        {"links": LINKS + "E,B,-1,1,1\n", "requests": REQUESTS + "B,v,x,1\n"},
        [
            "links.csv row 6: capacity_mbps is -1.0, must be at least 0",
            "requests.csv row 4: bitrate_kbps is 'x', must be a number",
        ],
    ),
    "a request for an unknown object": (
        {"requests": REQUESTS + "A,v,3000,1\n"},
        ["requests.csv row 4: asks for an unknown object, channel 'v' at 3000 kbit/s; 'v' has 1000 kbit/s"],
    ),
    "a request for an unknown channel": (
        {"requests": REQUESTS + "A,vv,1000,1\n"},
        ["requests.csv row 4: asks for an unknown object, channel 'vv' at 1000 kbit/s; did you mean 'v'?"],
    ),
    "a cycle between tiers": (
        {"links": LINKS + "A,S,1,1,1\n"},
        ["links.csv: the tiers form a cycle: source -> edge -> group -> source"],
    ),
    "a link over two tiers": (
        {"links": LINKS + "S,A,1,1,1\n"},
        [
            (
                "links.csv row 2: leads from tier 'source' to 'edge', other links from 'source' to 'group': "
                "a tier must lead to one next tier only; or use source any_topology"
            )
        ],
    ),
    "a request of an edge": (
        {"requests": REQUESTS + "E,v,1000,1\n"},
        ["requests.csv row 4: group 'E' is of tier 'edge', must be of tier 'group'"],
    ),
    "a pin without a link": (
        {"pinned": RULE + "v,*,E,B\n"},
        ["pinned.csv row 2: there is no such link"],
    ),
    "a pin that forks": (
        {"pinned": RULE + "v,*,*,A\n", "links": LINKS + "F,A,5,1,1\n"},
        ["v/1000 is pinned to both E->A and F->A, but a cluster receives it once"],
    ),
    "a pin at a source without the channel": (
        {
            "clusters": CLUSTERS + "T,source\n",
            "links": LINKS + "T,E,5,1,1\n",
            "holders": "channel,source\nv,S\n",
            "pinned": RULE + "v,*,T,E\n",
        },
        ["v/1000 is pinned to T->E, but source 'T' does not hold it"],
    ),
    "both pinned and forbidden": (
        {"pinned": RULE + "v,*,E,A\n", "forbidden": RULE + "*,*,E,*\n"},
        ["v/1000 on E->A is both pinned and forbidden"],
    ),
    "a holder that is no source": (
        {"holders": "channel,source\nv,E\n"},
        ["holders.csv row 2: source 'E' is of tier 'edge', must be of tier 'source'"],
    ),
    "two rows of settings": (
        {"settings": "service_weight,cost_weight\n1,0\n2,0\n"},
        ["settings.csv: has 2 rows, must have one"],
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_tables_are_one_line_each(folder: Path, fault: str) -> None:
    tables, expected = BAD[fault]
    for name, text in tables.items():
        path = folder / "net" / f"{name}.csv"
        if text == "":
            path.unlink()
        else:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = planner("check", "s.toml")
    assert (result.code, result.err.splitlines(), result.out) == (1, expected, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('fail_links = ["S->G"]', "fail_links: 'S->G' is no link; did you mean"),
        ("cost_weight = -1.0", "s.toml: problem.cost_weight is -1.0, must be"),
        ('priorities_by = "fair"', "s.toml: problem.priorities_by is 'fair', must be"),
    ],
)
def test_bad_adjustments_are_one_line(folder: Path, line: str, expected: str) -> None:
    (folder / "s.toml").write_text(SCENARIO.replace('path = "net"\n', f'path = "net"\n{line}\n'))
    result = planner("check", "s.toml")
    assert result.code == 1
    assert len(result.err.splitlines()) == 1
    assert expected in result.err


SCARCE: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "a group without an edge": (
        {"clusters": CLUSTERS + "C,group\n", "requests": REQUESTS + "C,v,1000,1\n"},
        "clusters.csv row 7: group 'C' has no link from any cluster of tier 'edge'",
        ("C,v,1000.0,1.0",),
    ),
    "a bitrate above every link": (
        {"objects": OBJECTS + "x,9000,1\n", "requests": REQUESTS + "A,x,9000,1\n"},
        "objects.csv row 4: bitrate_kbps 9000 is above the capacity of every link (at most 5000 kbit/s)",
        ("A,x,9000.0,1.0",),
    ),
    "an unreachable channel": (
        {"links": LINKS.replace("S,F,5", "S,F,1")},
        ("objects.csv row 3: channel 'w' is unreachable: no path of links with 2000 kbit/s from a source "
        "that has it to group 'B'"),
        ("B,w,2000.0,1.0",),
    ),
    "a link without capacity": (
        {"links": LINKS.replace("S,F,5", "S,F,0")},
        ("objects.csv row 3: channel 'w' is unreachable: no path of links with 2000 kbit/s from a source "
        "that has it to group 'B'"),
        ("B,w,2000.0,1.0",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCARCE)
def test_scarce_capacity_is_shed_and_listed_or_proven_infeasible(folder: Path, case: str) -> None:
    tables, reason, unserved = SCARCE[case]
    for name, text in tables.items():
        (folder / "net" / f"{name}.csv").write_text(text)
    for design in ("optimum", "cdn"):
        out = folder / design
        result = planner("solve", "s.toml", "--design", design, "--out", out)
        assert result.code == 0, result.err
        listed = pd.read_parquet(next(out.rglob("unserved.parquet"))).to_csv(index=False).splitlines()
        assert listed == ["group,channel,bitrate_kbps,clients", *unserved]
        assert "cannot serve 1 client" in result.out
        strict = planner("solve", "s.toml", "--design", design, "--service", "all")
        assert strict.code == 3
        assert reason in strict.err + strict.out


def test_pins_that_do_not_fit_have_no_plan(folder: Path) -> None:
    """Proven by every design: exit code 3, and the reason in one line."""
    (folder / "net" / "links.csv").write_text(LINKS.replace("S,F,5", "S,F,2.5").replace("F,B,5", "F,B,2.5"))
    (folder / "net" / "requests.csv").write_text(REQUESTS + "B,v,1000,1\n")
    (folder / "net" / "pinned.csv").write_text(RULE + "v,*,*,*\nw,*,*,*\n")
    result = planner("solve", "s.toml", "--design", "cdn")
    assert result.code == 3
    why = "cdn: infeasible: pinned: the streams that must be carried do not fit on the links together"
    assert any(line.startswith(why) for line in (result.err + result.out).splitlines()), result.err


BAD_SESSIONS: dict[str, tuple[str, str]] = {
    "no duration": (
        SESSIONS + "5,0,A,v,1000\n",
        "sessions.csv row 4: duration_s is 0.0, must be greater than 0",
    ),
    "before the start": (
        SESSIONS + "-5,9,A,v,1000\n",
        "sessions.csv row 4: start_s is -5.0, must be at least 0",
    ),
    "no sessions": ("start_s,duration_s,group,channel,bitrate_kbps\n", "sessions.csv: holds no rows"),
}


@pytest.mark.parametrize("fault", BAD_SESSIONS)
def test_bad_sessions(folder: Path, fault: str) -> None:
    text, expected = BAD_SESSIONS[fault]
    (folder / "net" / "sessions.csv").write_text(text)
    (folder / "s.toml").write_text(SCENARIO.replace('"tables"', '"sessions"'))
    result = planner("roll", "s.toml", "--out", folder / "out")
    assert (result.code, result.err.splitlines()) == (1, [expected])


def test_a_window_after_the_end(folder: Path) -> None:
    (folder / "net" / "sessions.csv").write_text(SESSIONS)
    (folder / "s.toml").write_text(SCENARIO.replace('"tables"', '"window"\nindex = 9'))
    result = planner("solve", "s.toml", "--design", "optimum")
    assert (result.code, result.err.splitlines()) == (
        1,
        ["index is 9, the sessions last for 2 windows of 60 s"],
    )
