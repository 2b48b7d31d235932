"""Supervision of commands that solve: Ctrl-C ends them within two seconds, wherever they are.

Python looks at signals between its own instructions. A compiled kernel or a solver may not return to them for
many seconds, and no other thread runs meanwhile. So a command that solves runs in a child process, and its
parent only waits: it ends a child that has not ended itself in time after the signal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

from planner.parent_process import end_with_parent

GRACE_S: Final = 1.5
"""Time of a child to end itself after Ctrl-C."""
POLL_S: Final = 0.01
MAX_WAIT_S: Final = 3600.0
AWAITED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
CRASHES: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
COMMANDS: Final = frozenset(
    {
        *("solve", "compare", "roll", "simulate", "explain", "failures", "upgrades"),
        *("generate", "export", "check", "reproduce", "doctor"),
    }
)
"""Commands that run in a child; `sweep` and `recipes` stop their workers themselves."""


def run_supervised(run: Callable[[], None]) -> None:
    """Run a command in a child process where the command line asks for one that may compute for long.

    raises  SystemExit with the child's exit code; 130 after Ctrl-C, 70 where the child crashed
    """
    words = sys.argv[1:2]
    can_wait = hasattr(os, "fork") and hasattr(signal, "sigtimedwait")
    if not (COMMANDS & set(words) and can_wait and threading.active_count() == 1):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # commands stop where they can
        run()
        return
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, _interrupt_once)
        sys.unraisablehook = _report_unraisable
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        end_with_parent(parent)
        run()
        return
    _wait(child)


def _interrupt_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Raise KeyboardInterrupt at the first Ctrl-C; the parent ends a child that does not follow."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _report_unraisable(error: sys.UnraisableHookArgs) -> None:
    """Report an exception that Python cannot raise, but for Ctrl-C in a callback of the compiler.

    The child goes on after such a Ctrl-C, and its parent ends it.
    """
    if not issubclass(error.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(error)


def _wait(child: int) -> None:
    """Wait for the child, pass signals on to it, and leave with its exit code."""
    stopped: signal.Signals | None = None
    deadline = float("inf")
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _leave(status, stopped)
        if time.monotonic() >= deadline:
            _send(child, signal.SIGKILL)
        wait_s = min(MAX_WAIT_S, max(POLL_S, deadline - time.monotonic()))
        arrived = signal.sigtimedwait(AWAITED, wait_s)
        if arrived is not None and arrived.si_signo != signal.SIGCHLD:
            if stopped is None:
                deadline = time.monotonic() + GRACE_S
            stopped = signal.Signals(arrived.si_signo)
            _send(child, stopped)


def _send(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _leave(status: int, stopped: signal.Signals | None) -> NoReturn:
    """Leave with the exit code of a child, or say by which signal it ended."""
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    if sys.stderr.isatty():  # the child may have hidden the cursor
        sys.stderr.write("\x1b[?25h")
    if stopped is signal.SIGINT:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    if stopped is None and number == signal.SIGKILL:
        sys.stderr.write("ended by the system: the problem may be too large for this machine\n")
    elif number in CRASHES:
        sys.stderr.write(f"internal error: crashed ({signal.Signals(number).name}); please report it\n")
        sys.exit(70)
    sys.exit(128 + number)
