"""Workbooks of hostile cases: read by forks of one process that has imported what reading takes.

The program is `planner.io.workbook_child`, with its limits, its answers and a process for each question;
only the start of an interpreter, most of the time of a small workbook, is shared.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

from planner.io import workbook_child, workbooks

LENGTH: Final = struct.Struct("<qq")
"""Exit code, and number of bytes of the answer behind it."""


def serve() -> None:
    """Answer questions from standard input until it ends: words separated by null characters, one a line."""
    import openpyxl  # noqa: F401 - imported once, for all forks
    import python_calamine  # noqa: F401

    from planner.io import workbook_formats  # noqa: F401

    for line in sys.stdin.buffer:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(writer, 1)
            workbook_child.main(os.fsdecode(bytes.fromhex(line.decode())).split("\0"))
            sys.stdout.flush()
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answer:
            content = answer.read()
        _, status = os.waitpid(child, 0)
        sys.stdout.buffer.write(LENGTH.pack(os.waitstatus_to_exitcode(status), len(content)) + content)
        sys.stdout.buffer.flush()


class WorkbookForks:
    """The process that forks, in place of the module `subprocess` within `planner.io.workbooks`."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        """Let `planner.io.workbooks` ask this process."""
        names = {"TimeoutExpired": subprocess.TimeoutExpired, "DEVNULL": subprocess.DEVNULL}
        mock.patch.object(workbooks, "subprocess", SimpleNamespace(run=self.run, **names)).start()

    def run(self, words: Sequence[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        """Return what the child program answers to the words behind its name."""
        if self._server is None or self._server.poll() is not None:
            command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
            self._server = subprocess.Popen(
                command,
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        questions, answers = self._server.stdin, self._server.stdout
        assert questions is not None
        assert answers is not None
        question = words[words.index(str(workbooks.CHILD)) + 1 :]
        if any("\0" in word for word in question):
            raise ValueError("embedded null byte")  # as a command would
        questions.write(os.fsencode("\0".join(question)).hex().encode() + b"\n")
        questions.flush()
        code, length = LENGTH.unpack(answers.read(LENGTH.size))
        return subprocess.CompletedProcess(list(words), code, answers.read(length), b"")
