"""Worker processes of this machine, which calls reach over pairs of connected sockets: no port is open.

Each worker is a process in a session of its own (Ctrl-C is for the sweep), which never imports the user's
own script, and ends as soon as this process does. A thread here serves it: it sends one call, waits for the
result, watches the memory of the process, and replaces it when it dies.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from planner.errors import InputError
from planner.sweeps.workers import MAX_WORKER_DEATHS, ClusterLost, WorkerDied

MEMORY_CHECK_S: Final = 0.1
END_LIMIT_S: Final = 5.0
"""Longest time to wait for a killed process to be gone."""
THREAD_VARIABLES: Final = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
)
UNITS: Final = {
    "": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate(("", "k", "m", "g", "t"))},
    **{f"{letter}ib": 1024**power for power, letter in enumerate(("k", "m", "g", "t"), start=1)},
}
"""Bytes of each unit of memory."""


@contextlib.contextmanager
def start_local_workers(workers: int, *, memory: str = "auto", threads: int = 1) -> Iterator[LocalWorkers]:
    """Start workers that live as long as this block.

    memory   limit for each worker, e.g. "4GB"; "auto": its share of the machine; "0": none
    threads  threads of each solver; a worker executes one call at a time
    raises   InputError for a memory limit that cannot be read
    """
    pool = LocalWorkers(workers, memory_limit=memory_limit(memory, workers), threads=threads)
    try:
        yield pool
    finally:
        pool.close()


def memory_limit(text: str, workers: int) -> int | None:
    """Return the memory limit of each of some workers, bytes; None for no limit."""
    plain = text.strip().lower()
    if plain == "auto":
        memory = machine_memory()
        return None if memory is None else memory // workers
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-z]*)", plain, re.ASCII)
    if match is None or match[2] not in UNITS:
        raise InputError(f"--memory {text}: must be such as 4GB, 512MiB or auto")
    return math.floor(float(match[1]) * UNITS[match[2]]) or None


def machine_memory() -> int | None:
    """Return the memory of this machine, or of its control group, bytes; None where it is unknown."""
    sizes = []
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(ValueError, OSError):
            sizes.append(int(Path("/sys/fs/cgroup", limit).read_text(encoding="ascii")))
    return min((size for size in sizes if size > 0), default=None)


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process, bytes; 0 where the system does not say."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, eq=False)
class Shared:
    """Handle of a value that each worker gets once."""

    key: int


@dataclass(eq=False)
class _Call:
    content: bytes
    shared: tuple[Shared, ...]
    future: Future[Any]
    worker: str | None
    deaths: int = 0


@dataclass(eq=False)
class LocalWorkers:
    """Worker processes of this machine; see `workers.Workers`.

    memory_limit  resident memory, bytes, above which a worker is killed; None: no limit
    threads       threads of each solver
    """

    count: int
    memory_limit: int | None = None
    threads: int = 1
    calls: deque[_Call] = field(default_factory=deque)
    shared: dict[int, bytes] = field(default_factory=dict)
    is_closing: bool = False
    failure: str | None = None

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        self._keys = itertools.count()
        self._workers = [_Worker(self, number) for number in range(self.count)]
        for worker in self._workers:
            worker.thread.start()

    def names(self) -> tuple[str, ...]:
        """Return the names of the workers; raise ClusterLost where they cannot be started."""
        if self.failure is not None:
            raise ClusterLost(self.failure)
        return tuple(worker.name for worker in self._workers)

    def share(self, value: Any) -> Shared:
        """Return a handle of a value that each worker gets once."""
        shared = Shared(next(self._keys))
        self.shared[shared.key] = pickle.dumps(value)
        return shared

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future[Any]:
        """Return the future result of a call; see `workers.Workers`."""
        call = _Call(
            content=pickle.dumps((function, arguments)),
            shared=tuple(argument for argument in arguments if isinstance(argument, Shared)),
            future=Future(),
            worker=worker,
        )
        with self.changed:
            if self.failure is None and worker in (None, *(worker_.name for worker_ in self._workers)):
                self.calls.append(call)
                self.changed.notify_all()
                return call.future
        is_gone = self.failure is None
        error = WorkerDied("the worker died before", deaths=0) if is_gone else ClusterLost(str(self.failure))
        call.future.set_exception(error)
        return call.future

    def close(self) -> None:
        """Kill the workers, whatever they do."""
        with self.changed:
            self.is_closing = True
            self.changed.notify_all()
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.thread.join(END_LIMIT_S)

    # --- for the threads of the workers -------------------------------------------------------

    def next_call(self, worker: str) -> _Call | None:
        """Return the next call for a worker, once there is one; None where the pool closes."""
        with self.changed:
            while not self.is_closing:
                call = self._take_call(worker)
                if call is None:
                    self.changed.wait()
                elif call.deaths or call.future.set_running_or_notify_cancel():
                    return call
        return None

    def _take_call(self, worker: str) -> _Call | None:
        """Take the first call that a worker may make from those that wait; None where there is none."""
        for position, call in enumerate(self.calls):
            if call.worker in (None, worker):
                del self.calls[position]
                return call
        return None

    def on_death(self, worker: _Worker, call: _Call, text: str) -> None:
        """Rename a dead worker; give its call to another, unless it is bound or has killed too many."""
        with self.changed:
            waiting = [item for item in self.calls if item.worker == worker.name]
            self.calls = deque(item for item in self.calls if item.worker != worker.name)
            worker.generation += 1
            call.deaths += 1
            is_repeated = call.worker is None and call.deaths <= MAX_WORKER_DEATHS
            if is_repeated:
                self.calls.appendleft(call)
                self.changed.notify_all()
        if not is_repeated:
            call.future.set_exception(WorkerDied(text, deaths=call.deaths))
        for item in waiting:
            if item.future.set_running_or_notify_cancel():
                item.future.set_exception(WorkerDied(text, deaths=0))

    def give_up(self, text: str) -> None:
        """Fail every call: the workers cannot be started."""
        with self.changed:
            self.failure = text
            calls, self.calls = self.calls, deque()
        for call in calls:
            if call.deaths or call.future.set_running_or_notify_cancel():
                call.future.set_exception(ClusterLost(text))


class _Worker:
    """One worker process after the other, and the thread that serves it."""

    def __init__(self, pool: LocalWorkers, number: int) -> None:
        self.pool, self.number, self.generation = pool, number, 0
        self.process: subprocess.Popen[bytes] | None = None
        self.connection: Connection | None = None
        self.sent: set[int] = set()
        self.lock = threading.Lock()  # a process is never started after the pool was closed
        self.thread = threading.Thread(target=self._serve, name=f"worker {number}", daemon=True)

    @property
    def name(self) -> str:
        return f"{self.number}.{self.generation}"

    def _serve(self) -> None:
        failed_starts = 0
        while not self.pool.is_closing:
            error = self._start()
            if self.pool.is_closing:
                return
            if error is not None:
                failed_starts += 1
                if failed_starts > MAX_WORKER_DEATHS:
                    self.pool.give_up(f"the worker processes of this machine do not start: {error}")
                    return
                continue
            failed_starts = 0
            while (call := self.pool.next_call(self.name)) is not None:
                text = self._execute(call)
                if text is not None:
                    self.kill()
                    if not self.pool.is_closing:
                        self.pool.on_death(self, call, text)
                    break

    def _start(self) -> str | None:
        """Start a process; return why that failed, or None."""
        here, there = Pipe()
        threads = str(max(self.pool.threads, 1))
        debug = bool(os.environ.get("PLANNER_DEBUG"))
        with self.lock:
            if self.pool.is_closing:
                return None
            self.connection, self.sent = here, set()
            self.process = subprocess.Popen(
                # -P: modules of the user's folder must not shadow others
                [sys.executable, "-P", "-m", "planner.sweeps.worker_process", str(there.fileno())],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if debug else subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, threads)},
            )
        there.close()
        try:
            ready = here.recv()
        except (EOFError, OSError):
            self.kill()
            return f"one ended with code {self.process.returncode}"
        return None if ready is None else str(ready)

    def _execute(self, call: _Call) -> str | None:
        """Set the result of a call; return why the worker died where it did."""
        assert self.connection is not None
        assert self.process is not None
        try:
            for shared in call.shared:
                if shared.key not in self.sent:
                    self.connection.send_bytes(pickle.dumps(shared.key))
                    self.connection.send_bytes(self.pool.shared[shared.key])
                    self.sent.add(shared.key)
            self.connection.send_bytes(call.content)
            limit = self.pool.memory_limit
            while not self.connection.poll(None if limit is None else MEMORY_CHECK_S):
                used = resident_bytes(self.process.pid)
                if limit is not None and used > limit:
                    return f"a worker used {used / 1e9:.2f} GB of memory, at most {limit / 1e9:.2f}"
            result, error = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return "a worker died"
        if error is None:
            call.future.set_result(result)
        else:
            call.future.set_exception(error)
        return None

    def kill(self) -> None:
        """Kill the process and its children, and wait until it is gone."""
        with self.lock:
            process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_LIMIT_S)
