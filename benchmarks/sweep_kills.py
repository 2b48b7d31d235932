"""Robustness of sweeps: a sweep that is killed many times gives the same store as an undisturbed one.

    python -m benchmarks.sweep_kills [--kills 10] [--seeds 18] [--cluster] [--seed 1]

Kills (SIGKILL) hit a worker or the sweep itself at random moments. With --cluster they hit a
Dask scheduler, its workers, started as the documentation says, and the sweep. Every process that ends is
started again with the same command. In the end both stores must contain the same runs, metrics, settings,
messages and plans, except for times.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from benchmarks.common import free_port
from planner.contract.tables import digest
from planner.store.record import TIMES
from planner.store.store import Store

SCENARIOS = {
    "traffic": """
system = "traffic"
problem = {source = "generate", preset = "fat_tree", k = 4}
[designs]
optimum = {}
ecmp = {}
two = {design = "optimum", paths = 2, objective = "utilization"}
impossible = {design = "optimum", objective = "cost"}
""",
    "multicast": """
system = "multicast"
designs = {partitioned_aggregated = {}, partitioned = {}, per_switch = {}}
[problem]
source = "generate"
preset = "datacenter"
k = 4
tenants = 5
largest_tenant = 10
groups = 40
table_size = 20
""",
    "circuits": """
system = "circuits"
problem = {source = "generate", preset = "skewed", racks = 8, large = 2, small = 2}
designs = {solstice = {}, bvn = {}, hotspot = {}, packet_only = {}}
""",
}
"""Eleven designs; one of them fails, which is a result too (a fat tree has no costs)."""


@dataclass(eq=False)
class Trial:
    """A sweep in a folder, as a process that can be killed.

    cluster  address of the scheduler, if it runs on a cluster
    """

    folder: Path
    seeds: int
    store: str
    cluster: str | None = None
    starts: int = 0
    process: subprocess.Popen[str] | None = None
    messages: list[str] = field(default_factory=list)

    def command(self) -> list[str]:
        names = [f"{name}.toml" for name in SCENARIOS]
        where = ["--cluster", self.cluster] if self.cluster else ["--workers", "2"]
        values = ",".join(str(seed) for seed in range(1, self.seeds + 1))
        words = ["sweep", *names, "--out", self.store, "--set", f"problem.seed={values}", *where]
        return [sys.executable, "-m", "planner.cli", *words]

    def start(self) -> subprocess.Popen[str]:
        for name, text in SCENARIOS.items():
            (self.folder / f"{name}.toml").write_text(text)
        self.starts += 1
        self.process = subprocess.Popen(
            self.command(),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self.process

    def wait(self) -> int:
        assert self.process is not None
        _, messages = self.process.communicate()
        self.messages.append(messages)
        return self.process.returncode

    def descendants(self) -> list[psutil.Process]:
        """Return the sweep's descendant processes: its workers, and their children."""
        assert self.process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            processes: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
            return processes
        return []


def kill(process: psutil.Process | subprocess.Popen[str]) -> None:
    """Send SIGKILL to a process, if it still runs."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process.send_signal(signal.SIGKILL)


def wait_randomly(trial: Trial, rng: random.Random) -> None:
    """Wait until a random moment: during the start in one case of four, else while runs are stored."""
    if rng.random() < 0.25:
        time.sleep(rng.uniform(0.2, 4.0))
        return
    before = stored_runs(trial)
    until = time.monotonic() + 60
    while stored_runs(trial) == before and time.monotonic() < until:
        if trial.process is not None and trial.process.poll() is not None:
            return
        time.sleep(0.05)
    time.sleep(rng.uniform(0.0, 1.0))


def stored_runs(trial: Trial) -> int:
    """Return the number of runs in the store; 0 while there is none."""
    with contextlib.suppress(Exception), Store(trial.folder / trial.store) as store:
        return len(store)
    return 0


def run_with_kills(trial: Trial, kills: int, rng: random.Random) -> list[str]:
    """Run a trial to its end with so many kills; return the killed processes."""
    log: list[str] = []
    process = trial.start()
    while len(log) < kills:
        wait_randomly(trial, rng)
        if process.poll() is not None:  # done before it could be killed
            break
        descendants = trial.descendants()
        if descendants and rng.random() < 0.6:
            victim = rng.choice(descendants)
            log.append(f"worker's process {victim.pid}")
            kill(victim)
            continue
        log.append("sweep")
        kill(process)
        trial.wait()
        process = trial.start()
    trial.wait()
    return log


@dataclass(eq=False)
class Cluster:
    """A Dask cluster by the documented commands: a scheduler and two workers, processes of their own."""

    port: int
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, name: str) -> None:
        if name == "scheduler":
            words = ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        else:
            words = ["worker", self.address, "--nthreads", "1", "--no-dashboard"]
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Cluster:
        for name in ("scheduler", "worker 1", "worker 2"):
            self.start(name)
        wait_for_port(self.port)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.kill(name)

    def kill(self, name: str) -> None:
        """Send SIGKILL to a process and all its descendants."""
        process = self.processes.pop(name)
        family: list[Any] = [process]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += psutil.Process(process.pid).children(recursive=True)
        for item in family:
            kill(item)
        process.wait()


def wait_for_port(port: int, limit_s: float = 30.0) -> None:
    """Wait until something listens on a port."""
    until = time.monotonic() + limit_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def run_with_kills_on_cluster(trial: Trial, cluster: Cluster, kills: int, rng: random.Random) -> list[str]:
    """Run as `run_with_kills`, but on a cluster; kill and restart its scheduler and workers too."""
    log: list[str] = []
    process = trial.start()
    while len(log) < kills:
        wait_randomly(trial, rng)
        if process.poll() is not None:
            trial.wait()
            if process.returncode in (0, 1) and is_complete(trial):
                break
            process = trial.start()
            continue
        victim = rng.choice(["sweep", *cluster.processes])
        log.append(victim)
        if victim == "sweep":
            kill(process)
            trial.wait()
            process = trial.start()
            continue
        cluster.kill(victim)
        if victim == "scheduler":  # its workers leave with it; a person starts all three again
            trial.wait()
            for name in list(cluster.processes):
                cluster.kill(name)
            cluster.__enter__()
            process = trial.start()
        else:
            cluster.start(victim)
    while not is_complete(trial):
        if process.poll() is not None:
            process = trial.start()
        trial.wait()
    return log


def is_complete(trial: Trial) -> bool:
    """Return whether the store has all runs of a trial."""
    return stored_runs(trial) == 11 * trial.seeds


def contents(store: Path) -> dict[str, Any]:
    """Return everything in a store except times, in an order independent of that of the runs."""
    with Store(store) as opened:
        frame = opened.runs().drop(columns=[*TIMES, "machine"]).sort_values("digest", ignore_index=True)
        frame = frame[sorted(frame.columns)]
        rows = {
            name: {"messages": opened.messages(name), "request": opened.request(name)}
            for name in frame["digest"]
        }
        named = frame["plan"].dropna().unique()
        plans = {name: digest(opened.plan(name)) for name in named}
    assert plans == {name: name for name in named}, "a plan differs from its digest"
    return {"frame": frame, "rows": rows, "plans": plans}


def require_equal(first: Path, other: Path) -> int:
    """Return the number of runs; raise AssertionError where the stores differ."""
    ours, theirs = contents(first), contents(other)
    columns = [set(each["frame"].columns) for each in (ours, theirs)]
    assert columns[0] == columns[1], f"only in one of them: {sorted(columns[0] ^ columns[1])}"
    pd.testing.assert_frame_equal(ours["frame"], theirs["frame"], check_exact=True)
    assert ours["rows"] == theirs["rows"]
    assert ours["plans"] == theirs["plans"]
    return len(ours["frame"])


def main() -> None:
    """Compare a killed sweep with an undisturbed one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=19, help="eleven runs each")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and victims")
    parser.add_argument("--cluster", action="store_true")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="sweep-kills-") as name:
        folder = Path(name)
        undisturbed = Trial(folder=folder, seeds=arguments.seeds, store="undisturbed")
        started = time.perf_counter()
        undisturbed.start()
        code = undisturbed.wait()
        print(f"undisturbed: exit code {code}, {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        if arguments.cluster:
            with Cluster(free_port()) as cluster:
                killed = Trial(folder=folder, seeds=arguments.seeds, store="killed", cluster=cluster.address)
                log = run_with_kills_on_cluster(killed, cluster, arguments.kills, rng)
        else:
            killed = Trial(folder=folder, seeds=arguments.seeds, store="killed")
            log = run_with_kills(killed, arguments.kills, rng)
        print(
            f"killed {len(log)} times ({', '.join(log)}), started {killed.starts} times, "
            f"{time.perf_counter() - started:.1f} s"
        )
        for text in killed.messages:
            if text.strip():
                print("   last line: " + text.strip().splitlines()[-1])
        count = require_equal(folder / "undisturbed", folder / "killed")
        print(f"{count} runs are the same in both stores, except for times")


if __name__ == "__main__":
    main()
