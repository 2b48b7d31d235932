"""Ctrl-C ends a command that solves within two seconds, and crashes are said in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, time
from planner.cli import supervision

def run():
    print("running", flush=True)
    {body}

supervision.run_supervised(run)
"""
HELD = "sum(range(10**11))"  # minutes without a look at signals, as in a compiled kernel


def start(body: str, command: str = "solve") -> subprocess.Popen[str]:
    words = [sys.executable, "-c", PROGRAM.format(body=body), command]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    return process


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="needs sigtimedwait")
def test_ctrl_c_ends_a_command_in_a_kernel() -> None:
    process = start(HELD)
    time.sleep(0.5)  # until it is in there
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)  # of minutes; two seconds on a quiet machine
    assert process.returncode == 130
    assert err == "interrupted\n"


def test_a_command_that_ends_itself_does_so_in_its_own_words() -> None:
    lines = ["try:", "    print('ready', flush=True)", "    time.sleep(30)"]
    process = start("\n    ".join([*lines, "except KeyboardInterrupt: sys.exit('ended')"]))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == "ended\n"
    assert process.returncode == 1


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="needs sigtimedwait")
def test_ctrl_c_in_a_callback_of_c_is_one_line() -> None:
    """Python cannot raise there: it would print a traceback and go on."""
    lines = [
        "import ctypes",
        "print('ready', flush=True)",
        "sleep = ctypes.CFUNCTYPE(None)(lambda: time.sleep(30))",
    ]
    process = start("\n    ".join([*lines, "sleep()", "time.sleep(30)"]))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)  # until it is in there
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == "interrupted\n"
    assert process.returncode == 130


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="needs sigtimedwait")
def test_a_crash_is_one_line() -> None:
    process = start("os.kill(os.getpid(), 11)")
    assert process.communicate(timeout=20)[1] == "internal error: crashed (SIGSEGV); please report it\n"
    assert process.returncode == 70


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_that_of_the_command(code: int) -> None:
    process = start(f"sys.exit({code})")
    process.communicate(timeout=20)
    assert process.returncode == code


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_the_child_ends_with_its_parent() -> None:
    process = start("print(os.getpid(), flush=True); time.sleep(30)")
    assert process.stdout is not None
    assert int(process.stdout.readline()) != process.pid
    process.kill()
    # the pipe ends when the last process that may write to it does
    process.communicate(timeout=20)


def test_other_commands_run_in_the_same_process() -> None:
    process = start("print(os.getpid(), flush=True)", command="sweep")
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    process.communicate(timeout=20)


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
sys.meta_path.insert(0, Interrupt())
sys.argv = ["planner", *{words!r}]
from planner.cli import main
main()
"""


@pytest.mark.parametrize(
    "module", ["typer", "planner.cli.sweeps", "pandas", "numpy", "planner.scenarios.scenario"]
)
@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_ctrl_c_while_modules_are_loaded_is_one_line(command: str, module: str, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")] if command in ("roll", "sweep") else []
    words = [command, "traffic/abilene", *out]
    program = INTERRUPTED_IMPORT.format(module=module, words=words)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr, result.stdout) == (130, "interrupted\n", "")


COMMANDS = ("compare", "failures", "roll", "sweep")
MOMENTS = (0.2, 0.5, 1.0, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        # two moments of each command, two commands at each moment; the exhaustive tests have all pairs
        pytest.param(command, seconds, marks=[] if (row + column) % 2 else pytest.mark.exhaustive)
        for row, command in enumerate(COMMANDS)
        for column, seconds in enumerate(MOMENTS)
    ],
)
def test_ctrl_c_in_the_first_seconds_is_one_line(command: str, seconds: float, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")] if command in ("roll", "sweep") else []
    scenario = "brokering/day" if command == "roll" else "traffic/germany50"
    program = "print('started', flush=True)\nfrom planner.cli import main\nmain()"
    words = [sys.executable, "-c", program, command, scenario, *out]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"  # the start of Python itself is over
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out_text, err = process.communicate(timeout=60)
    if process.returncode == 0:  # it has ended before
        return
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "nterrupted" in out_text + err
