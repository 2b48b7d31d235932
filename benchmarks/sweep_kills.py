"""A sweep over three systems that is killed again and again, beside one that nobody disturbs.

    python -m benchmarks.sweep_kills [--kills 10] [--seeds 18] [--cluster] [--seed 1]

Kills (SIGKILL) fall at random moments on a worker, on the process that minds it, or on the sweep
itself; with --cluster, on a Dask scheduler and workers that were started as the documentation says, and
on the sweep. Whoever ends is started again with the same command. In the end both stores must hold the
same runs, metrics, settings, messages and plans, but for times.
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

from planner.record import TIMES
from planner.store import Store
from planner.tables import digest

SCENARIOS = {
    "traffic": """
system = "traffic"
[problem]
source = "generate"
preset = "fat_tree"
k = 4
[designs.optimum]
[designs.ecmp]
[designs.two]
design = "optimum"
paths = 2
objective = "utilization"
[designs.impossible]
design = "optimum"
objective = "cost"
""",
    "multicast": """
system = "multicast"
[problem]
source = "generate"
preset = "datacenter"
k = 4
tenants = 5
largest_tenant = 10
groups = 40
table_size = 20
[designs.partitioned_aggregated]
[designs.partitioned]
[designs.per_switch]
""",
    "circuits": """
system = "circuits"
[problem]
source = "generate"
preset = "skewed"
racks = 8
large = 2
small = 2
[designs.solstice]
[designs.bvn]
[designs.hotspot]
[designs.packet_only]
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
    said: list[str] = field(default_factory=list)

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
        _, said = self.process.communicate()
        self.said.append(said)
        return self.process.returncode

    def kin(self) -> list[psutil.Process]:
        """The sweep's own descendants: for each worker the process that minds it, and the worker."""
        assert self.process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
            return found
        return []


def kill(process: psutil.Process | subprocess.Popen[str]) -> None:
    """SIGKILL, if it is still there."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process.send_signal(signal.SIGKILL)


def wait_a_while(trial: Trial, rng: random.Random) -> None:
    """Until a random moment: while it starts, in one case of four, else while runs come in."""
    if rng.random() < 0.25:
        time.sleep(rng.uniform(0.2, 4.0))
        return
    before = kept(trial)
    until = time.monotonic() + 60
    while kept(trial) == before and time.monotonic() < until:
        if trial.process is not None and trial.process.poll() is not None:
            return
        time.sleep(0.05)
    time.sleep(rng.uniform(0.0, 1.0))


def kept(trial: Trial) -> int:
    """How many runs the store has."""
    with contextlib.suppress(Exception), Store(trial.folder / trial.store) as store:
        return len(store)
    return 0


def disturbed(trial: Trial, kills: int, rng: random.Random) -> list[str]:
    """Run a trial to its end through so many kills; says what was killed."""
    log: list[str] = []
    process = trial.start()
    while len(log) < kills:
        wait_a_while(trial, rng)
        if process.poll() is not None:  # done before it was killed: nothing is left to disturb
            break
        kin = trial.kin()
        if kin and rng.random() < 0.6:
            victim = rng.choice(kin)
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
        wait_for(self.port)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.kill(name)

    def kill(self, name: str) -> None:
        """SIGKILL to a process with all that it started."""
        process = self.processes.pop(name)
        family: list[Any] = [process]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += psutil.Process(process.pid).children(recursive=True)
        for one in family:
            kill(one)
        process.wait()


def wait_for(port: int, patience_s: float = 30.0) -> None:
    """Until something listens there."""
    until = time.monotonic() + patience_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def disturbed_cluster(trial: Trial, cluster: Cluster, kills: int, rng: random.Random) -> list[str]:
    """As `disturbed`, on a cluster: its scheduler and workers are killed and started again too."""
    log: list[str] = []
    process = trial.start()
    while len(log) < kills:
        wait_a_while(trial, rng)
        if process.poll() is not None:
            trial.wait()
            if process.returncode in (0, 1) and complete(trial):
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
    while not complete(trial):
        if process.poll() is not None:
            process = trial.start()
        trial.wait()
    return log


def complete(trial: Trial) -> bool:
    """Whether all of its runs are in the store."""
    return kept(trial) == 11 * trial.seeds


def contents(store: Path) -> dict[str, Any]:
    """All that a store holds but times, in an order that does not depend on when runs came."""
    with Store(store) as opened:
        frame = opened.runs().drop(columns=[*TIMES, "machine"]).sort_values("digest", ignore_index=True)
        frame = frame[sorted(frame.columns)]
        rows = {
            name: {"messages": opened.messages(name), "request": opened.request(name)}
            for name in frame["digest"]
        }
        named = frame["plan"].dropna().unique()
        plans = {name: digest(opened.plan(name)) for name in named}
    assert plans == {name: name for name in named}, "a plan does not hold what its name says"
    return {"frame": frame, "rows": rows, "plans": plans}


def require_equal(one: Path, other: Path) -> int:
    """The number of runs; AssertionError where the stores differ."""
    ours, theirs = contents(one), contents(other)
    columns = [set(each["frame"].columns) for each in (ours, theirs)]
    assert columns[0] == columns[1], f"only in one of them: {sorted(columns[0] ^ columns[1])}"
    pd.testing.assert_frame_equal(ours["frame"], theirs["frame"], check_exact=True)
    assert ours["rows"] == theirs["rows"]
    assert ours["plans"] == theirs["plans"]
    return len(ours["frame"])


def main() -> None:
    """Compare a killed sweep with one that was left alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=19, help="eleven runs each")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and victims")
    parser.add_argument("--cluster", action="store_true")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="sweep-kills-") as name:
        folder = Path(name)
        calm = Trial(folder=folder, seeds=given.seeds, store="calm")
        started = time.perf_counter()
        calm.start()
        code = calm.wait()
        print(f"undisturbed: exit code {code}, {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        if given.cluster:
            with Cluster(free_port()) as cluster:
                killed = Trial(folder=folder, seeds=given.seeds, store="killed", cluster=cluster.address)
                log = disturbed_cluster(killed, cluster, given.kills, rng)
        else:
            killed = Trial(folder=folder, seeds=given.seeds, store="killed")
            log = disturbed(killed, given.kills, rng)
        print(
            f"killed {len(log)} times ({', '.join(log)}), started {killed.starts} times, "
            f"{time.perf_counter() - started:.1f} s"
        )
        for text in killed.said:
            if text.strip():
                print("   it said: " + text.strip().splitlines()[-1])
        count = require_equal(folder / "calm", folder / "killed")
        print(f"{count} runs are the same in both stores, but for times")


if __name__ == "__main__":
    main()
