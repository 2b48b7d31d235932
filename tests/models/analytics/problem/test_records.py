"""Problems from records of users, against plain counting of the records."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.analytics.problem.records import read_records

FILES = {
    "sites": "site,pop,uplink_mbps\na,p,1\nb,p,1\n",
    "pops": "pop,uplink_mbps,merges\np,1,yes\n",
    "intervals": "interval,start_s,length_s\n1,0,60\n2,60,60\n",
    "cubes": "cube,aggregate\nc,count\nm,max\n",
    "queries": "query,cube,value_usd,combine,deadline_s\nq,c,1,coarsest,120\nr,m,1,coarsest,120\n",
    "levels": (
        "query,level,operator,parameter,bytes_per_record,bytes_per_cell,error,value_share,filter_column,keeps,"
        "filter_value\n"
        "q,all,sample,1,10,0,0,1,,,\nq,slow,filter,,10,0,,,value,at_least,5\nq,none,none,,0,0,0,0,,,\n"
        "r,errors,filter,,10,0,,,status,not_equal,ok\nr,timeouts,filter,,10,0,,0.5,status,equal,timeout\n"
        "r,none,none,,0,0,0,0,,,\n"
    ),
    "records": (
        "site,time_s,cell,value,status\na,0,x,1,ok\na,59.9,x,6,timeout\na,60,y,7,ok\nb,0,x,5,reset\n"
        "b,119,y,2,ok\nb,120,y,9,ok\n"
    ),
}


def write(folder: Path, **changed: str) -> Path:
    for name, text in {**FILES, **changed}.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_volumes_shares_and_errors_are_those_of_the_records(tmp_path: Path) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = read_records(path=write(tmp_path))
    assert notes == ["warning: records.csv: 1 record in no interval is left out"]
    volume = {tuple(row) for row in problem.volume.astype({"site": str, "cube": str}).to_numpy().tolist()}
    of_cube = {("a", 1.0, 2.0, 1.0), ("a", 2.0, 1.0, 1.0), ("b", 1.0, 1.0, 1.0), ("b", 2.0, 1.0, 1.0)}
    assert volume == {(site, cube, *entry) for site, *entry in of_cube for cube in ("c", "m")}
    passing = problem.passing
    assert passing is not None
    shares = {
        (row.level, row.site): (row.record_share, row.cell_share)
        for row in passing.astype({"site": str, "level": str}).itertuples()
    }
    assert shares == {
        ("slow", "a"): (pytest.approx(2 / 3), 1.0),
        ("slow", "b"): (0.5, 0.5),
        ("errors", "a"): (pytest.approx(1 / 3), 0.5),
        ("errors", "b"): (0.5, 0.5),
        ("timeouts", "a"): (pytest.approx(1 / 3), 0.5),
        ("timeouts", "b"): (0.0, 0.0),
    }
    # of counts 3 and 2, 2 and 1 pass; of the largest of the errors, 6 is a timeout
    assert problem.levels["error"].tolist() == [0, pytest.approx((1 / 3 + 1 / 2) / 2, abs=1e-6), 0, 0, 0, 0]
    assert problem.levels["value_share"].iloc[1] == pytest.approx(1 - (1 / 3 + 1 / 2) / 2, abs=1e-6)
    assert problem.levels["value_share"].iloc[4] == 0.5


def test_records_of_one_cube_only_count_there(tmp_path: Path) -> None:
    records = "cube,site,time_s,cell,value,status\nc,a,1,x,9,ok\nm,a,1,x,2,reset\n,b,1,x,3,timeout\n"
    problem = read_records(path=write(tmp_path, records=records))
    counts: dict[tuple[str, str], float] = defaultdict(float)
    for row in problem.volume.itertuples():
        counts[str(row.site), str(row.cube)] += row.records
    assert counts == {("a", "c"): 1, ("a", "m"): 1, ("b", "c"): 1, ("b", "m"): 1}


RECORDS, LEVELS = FILES["records"], FILES["levels"]


@pytest.mark.parametrize(
    ("table", "before", "after", "message"),
    [
        ("records", "b,0,", "z,0,", "records.csv row 5: site 'z' is no site"),
        (
            "records",
            "a,60,y,7",
            "a,60,y,",
            "records.csv row 4: value is blank, must be a number: cube 'm' has",
        ),
        ("records", "value", "size", "records.csv: column 'value' is missing"),
        ("levels", "q,all,sample,1,10,0,0", "q,all,sample,1,10,0,", "levels.csv row 2: error is blank"),
        (
            "levels",
            "equal,timeout",
            "at_least,3",
            "levels.csv row 6: keeps is at_least, must be equal or not",
        ),
        ("records", RECORDS, RECORDS.splitlines()[0] + "\n", "records.csv: holds no rows"),
    ],
)
def test_faults_name_file_row_and_rule(
    tmp_path: Path, table: str, before: str, after: str, message: str
) -> None:
    assert before in FILES[table]
    with pytest.raises(InputError) as error:
        read_records(path=write(tmp_path, **{table: FILES[table].replace(before, after)}))
    assert any(message in fault for fault in error.value.faults), error.value.faults


def test_the_scenario_reads_the_shares_of_its_records() -> None:
    folder = Path(__file__).parents[4] / "data" / "scenarios" / "analytics" / "filters"
    problem = read_records(path=folder)
    frame = pd.read_csv(folder / "records.csv")
    assert problem.passing is not None
    for row in problem.passing[problem.passing["level"] == "100 ms or more"].itertuples():
        of_site = frame[frame["site"] == row.site]
        assert row.record_share == pytest.approx((of_site["value"] >= 100).mean())


def test_a_cube_that_is_filtered_needs_records(tmp_path: Path) -> None:
    records = "cube,site,time_s,cell,value,status\nc,a,1,x,9,ok\n"
    with pytest.raises(InputError, match="has no record of cube 'm', which query 'r' filters"):
        read_records(path=write(tmp_path, records=records))
