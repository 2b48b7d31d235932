"""Plans in lists of tunnels: tables, and what routers print."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pandas as pd
import pytest

import planner
from planner.errors import PlannerError
from planner_models.traffic import SYSTEM
from tests import hostile

PROBLEM = SYSTEM.problem.from_tables(
    {
        "links": pd.DataFrame(
            {
                "tail": ["r1", "r2", "r1", "r3", "r2", "r4", "r3", "r4"],
                "head": ["r2", "r1", "r3", "r1", "r4", "r2", "r4", "r3"],
                "capacity_mbps": [10.0] * 8,
            }
        ),
        "demands": pd.DataFrame(
            {"source": ["r1", "r4", "r1"], "target": ["r4", "r1", "r2"], "rate_mbps": [12.0, 4.0, 1.0]}
        ),
    }
)
JUNOS = """
Ingress LSP: 2 sessions

r4
  From: r1, State: Up, ActiveRoute: 0, LSPname: r1-to-r4-a
  ActivePath:  (primary)
  LSPtype: Static Configured
 *Primary                    State: Up
    Bandwidth: 9Mbps
    Computed ERO (S [L] denotes strict [loose] hops): (CSPF metric: 20)
          r2 S r4 S
    Received RRO (ProtectionFlag 1=Available 2=InUse 4=B/W 8=Node 10=SoftPreempt):
          r2 r4

r4
  From: r1, State: Up, ActiveRoute: 0, LSPname: r1-to-r4-b
 *Primary                    State: Up
    Bandwidth: 3000kbps
    Computed ERO (S [L] denotes strict [loose] hops): (CSPF metric: 20)
          r3 S r4 S

r1
  From: r4, State: Dn, ActiveRoute: 0, LSPname: r4-to-r1
    Computed ERO (S [L] denotes strict [loose] hops): (CSPF metric: 20)
          r3 S r1 S
Total 2 displayed, Up 2, Down 0
"""
IOS = """
Name: r1_t1                               (Tunnel1) Destination: r4
  Status:
    Admin: up         Oper: up     Path: valid       Signalling: connected
  Config Parameters:
    Bandwidth: 9000     kbps (Global)  Priority: 7  7   Affinity: 0x0/0xFFFF
  RSVP Signalling Info:
       Src r1, Dst r4, Tun_Id 1, Tun_Instance 10
    RSVP Path Info:
      My Address: r1
      Explicit Route: r2
                      r4
      Record   Route:   NONE
Name: r1_t2                               (Tunnel2) Destination: r4
  Status:
    Admin: up         Oper: up     Path: valid       Signalling: connected
  Config Parameters:
    Bandwidth: 3000     kbps (Global)  Priority: 7  7   Affinity: 0x0/0xFFFF
    RSVP Path Info:
      My Address: r1
      Explicit Route: r3 r4
Name: r1_t3                               (Tunnel3) Destination: r2
  Status:
    Admin: up         Oper: down     Path: not valid
"""
TABLES = {
    "arrows": "LSP Name,From,To,Path,Bandwidth (Mbps)\na,r1,r4,r1 > r2 > r4,9\nb,r1,r4,r1 -> r3 -> r4,3\n",
    "dashes": "Tunnel,Ingress,Egress,ERO,Bandwidth (Gbps)\na,r1,r4,r1-r2-r4,0.009\nb,r1,r4,r1-r3-r4,0.003\n",
    "hops": "tunnel;head end;tail end;hops;bandwidth (Mbit/s)\na;r1;r4;r2;9\nb;r1;r4;r3;3\n",
    "spaces": "name\tsource\ttarget\texplicit route\tbw (Mbps)\na\tr1\tr4\tr2 r4\t9\nb\tr1\tr4\tr3 r4\t3\n",
}


@pytest.mark.parametrize(
    ("name", "text"),
    [("lsp.txt", JUNOS), ("tunnels.log", IOS), *((f"{name}.csv", text) for name, text in TABLES.items())],
)
def test_tunnels_share_demands_by_bandwidth(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    checked = planner.check(PROBLEM, tmp_path / name)
    assert checked.is_valid
    load = checked.plan.links.set_index(["tail", "head"])["load_mbps"]
    assert load["r2", "r4"] == pytest.approx(9.0)
    assert load["r3", "r4"] == pytest.approx(3.0)
    assert load["r1", "r2"] == pytest.approx(10.0)  # with the demand that has no tunnel
    assert load["r4", "r2"] == pytest.approx(2.0)


def test_tunnels_without_bandwidth_share_equally(tmp_path: Path) -> None:
    file = tmp_path / "tunnels.csv"
    file.write_text("name,path\na,r1 > r2 > r4\nb,r1 > r3 > r4\n")
    load = planner.check(PROBLEM, file).plan.links.set_index(["tail", "head"])["load_mbps"]
    assert load["r2", "r4"] == load["r3", "r4"] == pytest.approx(6.0)
    result = planner.compare(PROBLEM, designs=["ecmp"], plans={"today": file})
    assert result["today"].metrics["max_utilization"] == pytest.approx(0.7)


def test_a_table_of_routes_is_a_plan_and_no_list_of_tunnels(tmp_path: Path) -> None:
    file = tmp_path / "routes.csv"
    file.write_text("source,target,path,rate_mbps\nr1,r4,r1 > r2 > r4,5\n")
    checked = planner.check(PROBLEM, file)
    assert checked.metrics["delivered_mbps"] == pytest.approx(5.0)


@pytest.mark.parametrize(("name", "text"), [("a.txt", JUNOS), ("a.log", IOS), ("a.csv", TABLES["arrows"])])
def test_damaged_lists_are_refused_in_clear_lines_or_read(name: str, text: str, tmp_path: Path) -> None:
    for seed in range(40):
        draw = random.Random(seed)
        (tmp_path / name).write_bytes(hostile.damage_bytes(draw, text.encode()))
        with contextlib.suppress(PlannerError):
            planner.check(PROBLEM, tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "name,path\na,r1 > r9 > r4\n", "'r9' is no node"),
        ("a.csv", "name,path\na,r1 > r4\n", "path goes r1 > r4, where there is no link"),
        ("a.csv", "name,path,bandwidth (Mbps)\na,r1 > r2,-1\n", "must be at least 0"),
        ("a.txt", JUNOS.replace("9Mbps", "9furlongs"), "its unit is none of bps, kbps, mbps, gbps"),
        ("a.txt", "nothing of use\n", "has no table of a plan"),
    ],
)
def test_a_bad_list_is_one_clear_line(name: str, text: str, line: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PlannerError) as caught:
        planner.check(PROBLEM, tmp_path / name)
    assert line in str(caught.value)
