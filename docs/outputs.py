"""Run the commands of the written pages, and bring the outputs that the pages show up to date.

    python docs/outputs.py [PAGE...]            rewrite the outputs; default: all written pages and the README
    python docs/outputs.py --check [PAGE...]    say which lines differ, and end with 1

A page's commands run in order in an empty folder. A fenced block is an output where it follows its ```sh
block, or has the comment `<!-- output -->` in front; after `<!-- output varies -->` its numbers are not
compared. It may be an excerpt: it then begins at the line that its first line shows, whatever the numbers
are, and `...` stands for lines that are left out. A paragraph that names a file, such as `mine/links.csv`,
in front of a block means that the block is that file. A ```sh block after `<!-- not run -->` is not run.
Lines that show times are not compared, and those about compiling, which a slow machine prints, are left out.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).parents[1]
WIDTH: Final = 84
"""Letters of a line of output."""
os.environ["COLUMNS"] = str(WIDTH)  # before planner is imported
run_planner = import_module("planner.cli").main
for _module in (
    "planner.cli.application",
    "planner.cli.running",
    "planner.runs.evaluation",
    "planner.reports.terminal",
):
    import_module(_module)
FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE: Final = re.compile(r"`([\w./-]+\.(?:toml|csv))`[^`]*$")
MARKS: Final = ("<!-- output -->", "<!-- output varies -->")
NOT_RUN_MARK: Final = "<!-- not run -->"
VARYING: Final = re.compile(r"\s*(Time|estimated time)\b")
NOT_RUN: Final = ("dashboard", "--cluster", "doctor", "reproduce", "--measure", "simulate")
"""Commands that serve until they are stopped, need other machines, or take minutes."""


@dataclass(frozen=True)
class Shown:
    """An output that a page shows: where, its text, and the command that prints it."""

    start: int
    end: int
    text: str
    command: str
    varies: bool


class Differs(Exception):
    """An output of a page that its command no longer prints."""


def main(arguments: list[str]) -> int:
    """Bring pages up to date, or check them; return the exit code."""
    check = "--check" in arguments
    named = [Path(argument).resolve() for argument in arguments if argument != "--check"]
    code = 0
    for page in named or written_pages():
        text = page.read_text(encoding="utf-8")
        renewed, differences = renew(text)
        if differences and (check or any("prints no line" in difference for difference in differences)):
            sys.stderr.write(
                "".join(f"{page.relative_to(ROOT)}: {difference}\n" for difference in differences[:10])
            )
            code = 1
        if not check:
            page.write_text(renewed, encoding="utf-8")
    return code


def written_pages() -> list[Path]:
    """Return the pages that people write and that run commands."""
    docs = ROOT / "docs"
    return [ROOT / "README.md", docs / "start.md", *sorted((docs / "howto").glob("*.md"))]


def renew(text: str) -> tuple[str, list[str]]:
    """Return a page with the present outputs of its commands, and their differences from the shown ones."""
    differences: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        printed: dict[str, str] = {}
        pieces, last = [], 0
        for item in steps(text):
            if isinstance(item, tuple):
                path = Path(name) / item[0]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(item[1], encoding="utf-8")
            elif isinstance(item, str):
                printed[item] = run(item, Path(name))
            else:
                try:
                    now = excerpt(item, printed[item.command])
                except Differs as error:
                    differences.append(str(error))
                    continue
                differences += compare(item, now)
                pieces += [text[last : item.start], now]
                last = item.end
        return "".join([*pieces, text[last:]]), differences


def compare(shown: Shown, now: str) -> list[str]:
    """Return the lines of an output that differ from those that a page shows, times aside."""
    before, after = shown.text.splitlines(), now.splitlines()
    if len(before) != len(after):
        return [f"{shown.command}: prints {len(after)} lines, {len(before)} are shown"]
    return [
        f"{shown.command}: prints '{new.strip()}', not '{old.strip()}'"
        for old, new in zip(before, after, strict=True)
        if _words(old) != _words(new)
        and not VARYING.match(new)
        and not (shown.varies and _shape(old) == _shape(new))
    ]


def steps(text: str) -> Iterator[tuple[str, str] | str | Shown]:
    """Yield files (name, content), commands, and outputs of a page in order."""
    end, command = 0, ""
    for match in FENCE.finditer(text):
        between = text[end : match.start()].strip()
        language, body = match[1], match[2]
        file = FILE.search(between.split("\n\n")[-1])
        if language == "sh" and between.endswith(NOT_RUN_MARK):
            command = ""
        elif language == "sh":
            for line in body.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["planner"] and not any(word in words for word in NOT_RUN):
                    command = shlex.join(words)
                    yield command
                else:
                    command = ""
        elif file is not None and language in ("toml", "csv", "text"):
            yield file[1], body
        elif language == "text" and command and (not between or between.endswith(MARKS)):
            yield Shown(match.start(2), match.end(2), body, command, between.endswith(MARKS[1]))
        end = match.end()


def run(command: str, folder: Path) -> str:
    """Return the output of a command, messages and answer, as on a terminal of WIDTH letters.

    The command runs in a fork of this process, which has imported planner: an import takes a second.
    """
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _run_in_fork(shlex.split(command)[1:], folder, output.fileno())
        os.waitpid(child, 0)
        output.seek(0)
        text = output.read().decode("utf-8")
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip().lower().startswith("compiling"):
            lines += textwrap.wrap(line, WIDTH) if len(line) > WIDTH else [line.rstrip()]
    return "\n".join(lines).strip("\n") + "\n"


def _run_in_fork(words: list[str], folder: Path, output: int) -> NoReturn:
    """Run a command with its output, without buffers, in an open file; end this process."""
    code = 1
    try:
        os.chdir(folder)
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(stream, "wb", 0), encoding="utf-8", write_through=True)
            for stream in (1, 2)
        )
        sys.argv = ["planner", *words]
        run_planner()
        code = 0
    except SystemExit:
        code = 0
    finally:
        os._exit(code)


def excerpt(shown: Shown, output: str) -> str:
    """Return the part of an output that corresponds to the excerpt on a page."""
    lines, parts, position = output.splitlines(), [], 0
    for piece in re.split(r"^\.\.\.\n", shown.text, flags=re.MULTILINE):
        expected = piece.rstrip("\n").splitlines()
        if not expected:  # lines are left out at the beginning or the end
            parts.append("")
            continue
        begin = _find(expected[0], lines, position, shown.command)
        stop = _find(expected[-1], lines, begin, shown.command) + 1
        parts.append("\n".join(lines[begin:stop]) + "\n")
        position = stop
    return "...\n".join(parts)


def _find(line: str, lines: list[str], start: int, command: str) -> int:
    shape = _shape(line)
    for index in range(start, len(lines)):
        if _shape(lines[index]) == shape:
            return index
    raise Differs(f"{command}: prints no line like '{line.strip()}'")


def _shape(line: str) -> str:
    """Return a line without its numbers and the width of its gaps."""
    return _words(re.sub(r"[\d][\d.,e+-]*", "#", line))


def _words(line: str) -> str:
    """Return a line without the width of its gaps and rules, which follows the times in a table."""
    return re.sub(r"\s+|─+", " ", line).strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
