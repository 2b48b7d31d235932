"""Sweeps from end to end: resumed, interrupted, killed, on a cluster, with runs that fail or kill."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import planner as package
from benchmarks import sweep_kills
from planner.errors import InputError
from planner.store.store import Store
from planner.sweeps.sweep import Estimate, summarize_failures
from tests.commands import planner

SCENARIO = """
system = "traffic"
[problem]
source = "generate"
preset = "fat_tree"
k = 4
[designs.ecmp]
[designs.free]
design = "optimum"
objective = "cost"
[sweep]
"problem.seed" = [1, 2]
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO)
    return tmp_path / "s.toml"


def start(*words: object, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "planner.cli", *(str(word) for word in words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


def wait_until_kept(folder: Path, count: int, patience_s: float = 120.0) -> None:
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if Store.exists(folder):
            try:
                with Store(folder) as store:
                    if len(store) >= count:
                        return
            except InputError:  # not made yet
                pass
        time.sleep(0.05)
    pytest.fail(f"{folder} did not get {count} runs")


# --- what a person does -------------------------------------------------------------------


@pytest.mark.slow
def test_a_sweep_from_its_dry_run_to_its_extension(scenario: Path, tmp_path: Path) -> None:
    dry = planner("sweep", scenario, "--out", "st", "--dry-run")
    assert dry.code == 0
    assert "4 runs; 0 are done, 4 remain" in dry.out
    assert "estimated time: unknown" in dry.out
    assert not (tmp_path / "st").exists(), "a dry run leaves nothing"

    result = planner("sweep", scenario, "--out", "st", "--workers", 1, "--json")
    assert result.code == 1, "two runs failed"
    assert result.err.splitlines()[-1] == "4 of 4 points are in st, 4 runs made now"
    assert "objective 'cost'" in result.err
    plain = json.loads(result.out)
    assert (plain["points"], plain["made"], plain["failed"], plain["interrupted"]) == (4, 4, 2, False)
    rows = {(row["label"], row["problem.seed"]): row for row in plain["runs"]}
    assert rows["ecmp", 2]["status"] == "heuristic"
    assert rows["free", 1]["status"] == "failed"
    alone = json.loads(
        planner("solve", scenario, "--design", "ecmp", "--set", "problem.seed=2", "--json").out
    )["runs"][0]
    for metric, value in alone["metrics"].items():
        assert value is None or rows["ecmp", 2][metric] == pytest.approx(value), "a run is what solve makes"

    with Store("st") as store:
        selected = store.runs()
        flows = store.plan(selected.loc[selected["plan"].notna(), "plan"].iloc[0])["flows"]
        assert len(flows)
    again = planner("sweep", scenario, "--out", "st", "--designs", "ecmp", "--json")
    assert again.code == 0
    assert json.loads(again.out)["made"] == 0, "what is done is not done again"
    dry = planner("sweep", scenario, "--out", "st", "--set", "problem.seed=1,2,3", "--dry-run", "--json")
    cost = json.loads(dry.out)
    assert (cost["runs"], cost["done"], cost["unknown"]) == (6, 2, 3), "failed runs are tried again"
    assert cost["seconds"] == pytest.approx(selected["wall_s"].dropna().median())


@pytest.mark.slow
@pytest.mark.parametrize("store", ["st", "."])
def test_a_store_in_the_folder_of_the_tables_is_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')
    (tmp_path / "links.csv").write_text("source,target,capacity_mbps\na,b,100\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,10\n")
    words = ("sweep", "s.toml", "--out", store, "--designs", "ecmp", "--workers", 1)
    axis = ("--set", "problem.scale=1,2")
    made = [json.loads(planner(*words, *axis, "--json").out)["made"] for _ in range(2)]
    assert made == [2, 0]
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,11\n")
    assert json.loads(planner(*words, *axis, "--json").out)["made"] == 2


@pytest.mark.slow
def test_a_sweep_in_python(scenario: Path, tmp_path: Path) -> None:
    """From a script without any guard, and that is no file at all."""
    code = f"""
import planner
seen = []
names = ["ecmp", "optimum"]
result = planner.sweep({str(scenario)!r}, "st", designs=names, axes={{"problem.seed": [1, 2, 1]}},
                       workers=1, plans=False, advance=lambda *numbers: seen.append(numbers))
frame = result.runs
both = planner.compare(planner.load({str(scenario)!r}, changes={{"problem.seed": 2}}), designs=names)
ours = frame[frame["problem.seed"] == 2].set_index("label")["share_of_bound"]
assert abs(ours - both.metrics["share_of_bound"]).max() < 1e-9, (ours, both.metrics)
frame = frame[frame["label"] == "ecmp"]
print(result.exit_code, result.made, seen[-1], frame["problem.seed"].tolist(), frame["label"].tolist())
"""
    result = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.stdout.split("\n")[0] == "0 4 (4, 0, 4) [1, 1, 2] ['ecmp', 'ecmp', 'ecmp']", result.stderr
    with Store(tmp_path / "st") as store:
        assert store.runs("design = ecmp")["status"].tolist() == ["heuristic", "heuristic"]
        assert "plan" not in store.runs() or store.runs()["plan"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.toml"], "none.toml: no such scenario"),
        (
            ["s.toml", "--set", "problem.sed=1"],
            "s.toml: problem.sed: no such parameter of preset 'fat_tree'; did you mean 'seed'?",
        ),
        (["s.toml", "--set", "problem.seed"], "--set problem.seed: must be KEY=VALUE or KEY=V1,V2,..."),
        (
            ["s.toml", "--designs", "ecpm"],
            "s.toml: designs.ecpm: no such design of traffic; did you mean 'ecmp'?",
        ),
        (["s.toml", "--memory", "much"], "--memory much: must be such as 4GB, 512MiB or auto"),
        (
            ["s.toml", "--cluster", "tcp://127.0.0.1:1"],
            "--cluster tcp://127.0.0.1:1: no Dask scheduler answers there",
        ),
        (["s.toml", "--cluster", "nonsense"], "--cluster nonsense: no Dask scheduler answers there"),
    ],
)
def test_a_bad_sweep_is_one_clear_line(
    scenario: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.sweeps import cluster_workers

    monkeypatch.setattr(cluster_workers, "CONNECTION_LIMIT_S", 2.0)
    result = planner("sweep", *words, "--out", "st")
    assert result.code == 1
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith(message)


def test_a_key_that_is_set_twice_is_refused() -> None:
    from planner.cli.options import axes_of, changes_of

    for read in (axes_of, changes_of):
        with pytest.raises(InputError, match="--set a=2: a has"):
            read(["a=1", "a=2"])


def test_values_of_an_axis_may_have_commas() -> None:
    from planner.cli.options import axes_of

    assert axes_of(["a=1,2.5,x", "b=[1,2],[3]", "c='p,q',r", "d=true", 'e={k=[1,2]},"t"']) == {
        "a": [1, 2.5, "x"],
        "b": [[1, 2], [3]],
        "c": ["p,q", "r"],
        "d": [True],
        "e": [{"k": [1, 2]}, "t"],
    }


def test_failures_are_listed_once_with_their_count() -> None:
    assert summarize_failures(["b", "a", "b"]) == ["b (2 times)", "a"]
    assert summarize_failures([str(number) for number in range(9)])[-1] == "and 4 other failures"


def test_an_estimate_counts_the_remaining_runs() -> None:
    assert Estimate(points=9, runs=8, done=3, seconds=None, unknown=5).remaining == 5


# --- what a machine does to it ------------------------------------------------------------


@pytest.mark.slow
def test_after_ctrl_c_running_batches_end_and_the_same_command_continues(scenario: Path) -> None:
    words = ("sweep", scenario, "--out", "st", "--designs", "ecmp", "--workers", 1)
    seeds = "problem.seed=" + ",".join(map(str, range(400)))
    process = start(*words, "--set", seeds)
    wait_until_kept(Path("st"), 3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    lines = said.splitlines()
    assert lines[0] == "finishing the submitted runs; interrupt again to end at once"
    assert lines[-1] == "interrupted before the end; the same command continues from here"
    with Store("st") as store:
        selected = store.runs()
    assert 3 <= len(selected) < 400
    assert (selected["status"] == "heuristic").all()
    fewer = "problem.seed=" + ",".join(map(str, range(len(selected) + 2)))
    result = planner("sweep", *words[1:], "--set", fewer, "--json")
    assert result.code == 0
    assert json.loads(result.out)["made"] == 2


@pytest.mark.exhaustive
def test_a_sweep_killed_many_times_gives_the_same_store(tmp_path: Path) -> None:
    undisturbed = sweep_kills.Trial(folder=tmp_path, seeds=8, store="undisturbed")
    undisturbed.start()
    assert undisturbed.wait() == 1, "the design that cannot run"
    killed = sweep_kills.Trial(folder=tmp_path, seeds=8, store="killed")
    log = sweep_kills.run_with_kills(killed, 3, random.Random(3))
    assert len(log) >= 2, "it was disturbed"
    assert sweep_kills.require_equal(tmp_path / "undisturbed", tmp_path / "killed") == 88


@pytest.mark.exhaustive
def test_a_cluster_that_loses_a_worker_loses_time_only(tmp_path: Path) -> None:
    """Started by the documented commands: a scheduler and two workers, processes of their own."""
    undisturbed = sweep_kills.Trial(folder=tmp_path, seeds=3, store="undisturbed")
    undisturbed.start()
    undisturbed.wait()
    with sweep_kills.Cluster(sweep_kills.free_port()) as cluster:
        trial = sweep_kills.Trial(folder=tmp_path, seeds=3, store="there", cluster=cluster.address)
        process = trial.start()
        wait_until_kept(tmp_path / "there", 2)
        cluster.kill("worker 1")
        assert trial.wait() == 1, "the design that cannot run"
        assert process.returncode == 1
    assert trial.starts == 1
    assert sweep_kills.require_equal(tmp_path / "undisturbed", tmp_path / "there") == 33


@pytest.mark.slow
def test_a_lost_scheduler_is_one_clear_line(scenario: Path) -> None:
    with sweep_kills.Cluster(sweep_kills.free_port()) as cluster:
        seeds = "problem.seed=" + ",".join(map(str, range(500)))
        words = ("--out", "st", "--designs", "ecmp", "--set", seeds, "--cluster", cluster.address)
        process = start("sweep", scenario, *words)
        wait_until_kept(Path("st"), 1)
        cluster.kill("scheduler")
        _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("the connection to the cluster was lost")
    assert len(said.splitlines()) == 1
    with Store("st") as store:
        assert len(store) >= 1


STRANGER = '''
import os
from dataclasses import replace
from planner_models.traffic import SYSTEM as TRAFFIC

def decide(problem, *, deadly: bool = False, options, previous=None):
    """Equal-cost multipath, unless it is deadly."""
    if deadly:
        os._exit(9)
    return TRAFFIC.design("ecmp").run(problem, options=options, previous=previous)

SYSTEM = replace(TRAFFIC, name="stranger", designs=(replace(TRAFFIC.design("ecmp"), decide=decide),))
'''


@pytest.mark.slow
def test_a_run_that_kills_its_workers_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a system of somebody else's, whose version counts in the names of its runs."""
    site = tmp_path / "site"
    metadata = site / "stranger-2.5.dist-info"
    metadata.mkdir(parents=True)
    (site / "stranger.py").write_text(STRANGER)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 2.5\n")
    (metadata / "entry_points.txt").write_text("[planner.systems]\nstranger = stranger:SYSTEM\n")
    (tmp_path / "s.toml").write_text(
        'system = "stranger"\n[problem]\nsource = "generate"\npreset = "fat_tree"\nk = 4\n'
        '[designs.ecmp]\n[sweep]\n"designs.ecmp.deadly" = [true, false]\n"problem.seed" = [1]\n'
    )
    monkeypatch.chdir(tmp_path)
    process = start("sweep", "s.toml", "--out", "st", "--workers", 1, environment={"PYTHONPATH": str(site)})
    _, said = process.communicate(timeout=300)
    assert process.returncode == 6, said
    assert "workers died during this run, one after the other" in said
    with Store("st") as store:
        frame = store.runs().sort_values("status")
        assert frame["status"].tolist() == ["failed", "heuristic"]
        deadly = frame[frame["status"] == "heuristic"]["parameters.deadly"]
        assert deadly.tolist() == ["false"]
        assert frame["versions"].unique().tolist() == [f"planner {package.__version__}, stranger 2.5"]


@pytest.mark.slow
def test_a_full_disk_ends_a_sweep_in_one_clear_line(scenario: Path) -> None:
    seeds = "problem.seed=" + ",".join(map(str, range(60)))
    words = [sys.executable, "-m", "planner.cli", "sweep", str(scenario), "--out", "st", "--set", seeds]
    limit = 300 << 10

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    result = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=limited)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        "st: the disk is full, or a limit on the size of files is reached; every run stored"
    )
    with Store("st") as store:
        before = store.runs()
    assert 0 < len(before) < 120
    result = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    assert json.loads(result.stdout)["made"] == 120 - (before["status"] != "failed").sum()
    with Store("st") as store:
        after = store.runs()
    assert len(after) == 120
    selected = before[before["status"] != "failed"].set_index("digest")
    columns = [column for column in selected if column in after]
    pd.testing.assert_frame_equal(
        selected[columns], after.set_index("digest").loc[selected.index, columns], check_dtype=False
    )
