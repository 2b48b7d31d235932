"""Commands that start processes open no port, and the dashboard opens one, on this machine only."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import exploits, sockets

pytestmark = pytest.mark.skipif(not sockets.IS_KNOWN, reason="the system does not list sockets there")

LIMIT_S = 240.0
LOOPBACK = "0100007F"
"""127.0.0.1 in /proc/net/tcp."""
MARK = "code has run"


def family(process: int) -> set[int]:
    """Return a process and its descendants."""
    members, new = {process}, [process]
    while new:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{new.pop()}/task").iterdir():
                children = {int(word) for word in (task / "children").read_text().split()} - members
                members |= children
                new += children
    return members


def watch(words: list[str], folder: Path, is_enough: Callable[[set[str]], bool]) -> tuple[set[str], int, int]:
    """Run a command until its end, or until it listens enough; return its sockets, most processes, code.

    Whatever listens is asked to run code, which makes the file MARK in the folder.
    """
    seen: set[str] = set()
    most_processes = 0
    process = subprocess.Popen(
        [sys.executable, "-m", "planner.cli", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + LIMIT_S
        while process.poll() is None and not is_enough(seen) and time.monotonic() < until:
            members = family(process.pid)
            most_processes = max(most_processes, len(members))
            new = sockets.listening_sockets(members) - seen
            for address in new:
                exploits.attack(int(address.rpartition(":")[2], 16), folder / MARK)
            seen |= new
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    return seen, most_processes, process.returncode


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (["sweep", "traffic/abilene", "--designs", "ecmp", "--set", "problem.scale=1,2,3", "--out", "st"], 3),
        (["upgrades", "traffic/abilene", "--design", "ecmp"], 3),
        (["failures", "traffic/abilene", "--design", "ecmp"], 1),
        (["compare", "traffic/abilene", "--designs", "ecmp"], 1),
        (["recipes"], 1),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_command_opens_no_port(words: list[str], processes: int, tmp_path: Path) -> None:
    inputs = [*words, "--workers", "2"] if processes == 3 else words
    seen, upper, code = watch(inputs, tmp_path, bool)
    assert code == 0, "the command did its work"
    assert not (tmp_path / MARK).exists(), "a stranger ran code"
    assert seen == set()
    if processes == 3:
        assert upper >= processes, "its workers were watched"


@pytest.mark.slow
def test_the_dashboard_listens_on_this_machine_only(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    seen, _, _ = watch(["dashboard", "--no-browser", "--port", str(port)], tmp_path, bool)
    assert seen == {f"{LOOPBACK}:{port:04X}"}
    assert not (tmp_path / MARK).exists(), "a stranger ran code"


@pytest.mark.slow
def test_the_attack_runs_code_where_a_worker_of_dask_listens(tmp_path: Path) -> None:
    """The attack is a real one: it succeeds against what Dask starts by default."""
    from distributed import LocalCluster

    start: Any = LocalCluster
    with start(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=None
    ) as cluster:
        address = next(iter(cluster.workers.values())).address
        exploits.attack(int(address.rpartition(":")[2]), tmp_path / MARK)
    assert (tmp_path / MARK).exists()
