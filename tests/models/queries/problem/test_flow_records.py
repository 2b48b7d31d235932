"""Packets of switches read from flow records: by exporter, scaled, and refused where unclear."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.queries import SYSTEM
from planner_models.queries.problem.flow_records import read_records

RECORDS = """start,end,from,to,protocol,sport,dport,packets,volume,router,port,rate
2026-03-02 08:00:00,2026-03-02 08:00:10,10.0.0.1,10.0.1.1,6,40000,80,5,5000,192.0.2.1,2,10
2026-03-02 08:00:05,2026-03-02 08:00:05,10.0.0.2,10.0.1.1,17,5000,53,1,80,192.0.2.2,3,10
2026-03-02 08:00:06,2026-03-02 08:00:07,2001:db8::1,2001:db8::2,6,1,2,1,80,192.0.2.2,3,10
"""
COLUMNS = (
    "start=start, end=end, source=from, target=to, protocol=protocol, source_port=sport, target_port=dport, "
    "packets=packets, bytes=volume, exporter=router, input=port, sampling=rate"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pd.DataFrame(
        {
            "query": ["web", "names"],
            "select": ["bytes", "packets"],
            "where": ["tp_dst=80", "udp & tp_dst=53"],
            "every_s": [10.0, None],
        }
    ).to_csv(tmp_path / "queries.csv", index=False)
    pd.DataFrame({"switch": ["s1", "s2"], "rules": 20}).to_csv(tmp_path / "switches.csv", index=False)
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "records.csv").write_text(RECORDS)
    pd.DataFrame({"exporter": ["192.0.2.1", "192.0.2.2"], "node": ["s1", "s2"]}).to_csv(
        tmp_path / "exporters.csv", index=False
    )
    return tmp_path


def test_records_are_packets_of_their_exporter(folder: Path) -> None:
    exporters = folder / "exporters.csv"
    problem = read_records(
        path=folder, records=folder / "export", exporters=exporters, record_columns=COLUMNS
    )
    flows = problem.flows
    assert flows["switch"].tolist() == ["s1", "s2"]
    assert flows["header"].iloc[0].split() == [
        "in_port=2", "ip_src=10.0.0.1", "ip_dst=10.0.1.1", "ip_proto=6", "tp_src=40000", "tp_dst=80",
    ]  # fmt: skip
    assert flows["packets"].tolist() == [50.0, 10.0]  # one packet of ten is counted
    assert flows["packet_bytes"].tolist() == [1_000.0, 80.0]
    assert flows["start_s"].tolist() == [0.0, 5.0]
    assert flows["length_s"].tolist() == [10.0, 0.0]
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.plan is not None
    assert set(decision.plan.answers["query"]) == {"web", "names"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",192.0.2.2,", ",192.0.2.3,", "export: '192.0.2.3' is no switch"),
        (",192.0.2.2,", ",,", "export: 1 records name no exporter, and there are 2 switches; set switch"),
        (",10\n", ",\n", "sampling: records of exporters 192.0.2.1, 192.0.2.2 do not say their sampling"),
    ],
)
def test_what_is_unclear_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    file = folder / "export" / "records.csv"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        read_records(
            path=folder,
            records=folder / "export",
            exporters=folder / "exporters.csv",
            record_columns=COLUMNS,
        )
    assert message in str(caught.value)
