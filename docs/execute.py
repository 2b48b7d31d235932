"""Execute the notebooks of the documentation, and write each as a page with output and as a notebook file.

    python docs/execute.py [NAME...] [--out FOLDER] [--without-outputs]
    python docs/execute.py --files    write docs/notebooks/NAME.ipynb, for those who open them in a clone

Sources are docs/notebooks/NAME.md, in the notebook format of MyST. The pages docs/examples/NAME.md, or those
in FOLDER, need no Jupyter to be built, and load plotly.js from the site itself.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import jupytext
import plotly
from nbclient import NotebookClient
from plotly import io as plotly_io
from traitlets.config import Config

DOCS: Final = Path(__file__).parent
SOURCES: Final = DOCS / "notebooks"
PAGES: Final = DOCS / "examples"
TIMEOUT_S: Final = 600
FIGURE: Final = "application/vnd.plotly.v1+json"
LIBRARY: Final = re.compile(r"<script[^>]*src=\"https://cdn\.plot\.ly/[^\"]*\"[^>]*></script>")


def main() -> None:
    """Write the pages of the named notebooks, or of all."""
    parser = argparse.ArgumentParser(description="Execute the notebooks, and write them as pages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--out", type=Path, default=PAGES, metavar="FOLDER")
    parser.add_argument("--without-outputs", action="store_true", help="write them without executing them")
    parser.add_argument("--files", action="store_true", help="write notebook files beside the sources")
    arguments = parser.parse_args()
    if arguments.files:
        for path in sorted(SOURCES.glob("*.md")):
            path.with_suffix(".ipynb").write_text(notebook_file(path), encoding="utf-8")
        return
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"
    folder: Path = arguments.out
    folder.mkdir(exist_ok=True)
    names_found = sorted(path.stem for path in SOURCES.glob("*.md"))
    for name in arguments.names or names_found:
        started = time.perf_counter()
        source = SOURCES / f"{name}.md"
        notebook = jupytext.read(source, fmt="md:myst") if arguments.without_outputs else execute(source)
        jupytext.write(notebook, folder / f"{name}.ipynb")
        (folder / f"{name}.md").write_text(page(notebook, name), encoding="utf-8")
        sys.stderr.write(f"{name}: {time.perf_counter() - started:.1f} s\n")
    (folder / "index.md").write_text(contents(names_found), encoding="utf-8")
    library = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    shutil.copy(library, DOCS / "static" / "plotly.min.js")


def notebook_file(path: Path) -> str:
    """Return the notebook of a source as a file without outputs, the same at each call."""
    notebook = jupytext.read(path, fmt="md:myst")
    for index, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{index}"
    return f"{jupytext.writes(notebook, fmt='ipynb').rstrip()}\n"


def execute(path: Path) -> Any:
    """Return the notebook with the output of its cells, which run in a folder of their own.

    The kernel listens on a socket in that folder, and on no port that others could reach.
    """
    notebook = jupytext.read(path, fmt="md:myst")
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            config=Config({"KernelManager": {"transport": "ipc", "ip": str(Path(folder, "kernel"))}}),
        )
        return client.execute()


def page(notebook: Any, name: str) -> str:
    """Return the page of an executed notebook."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [text for output in cell.outputs for text in shown(output)]
    title, _, body = "\n\n".join(parts).partition("\n")
    download = f"{{download}}`The notebook <{name}.ipynb>` runs anywhere with planner installed."
    return "\n".join(
        [
            title,
            "",
            "```{raw} html",
            '<script src="../_static/plotly.min.js"></script>',
            "```",
            body,
            "",
            download,
            "",
        ]
    )


def shown(output: Any) -> Iterator[str]:
    """Yield an output of a cell as Markdown."""
    if output.output_type == "stream":
        yield f"```text\n{output.text.rstrip()}\n```"
        return
    data = output.data
    if FIGURE in data:
        figure = plotly_io.from_json(plotly_io.json.to_json_plotly(data[FIGURE]))
        yield raw(figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False}))
    elif "text/html" in data:
        yield raw(LIBRARY.sub("", data["text/html"]))
    else:
        yield f"```text\n{data['text/plain'].rstrip()}\n```"


def raw(html: str) -> str:
    """Return HTML as a block of Markdown, which its blank lines do not end."""
    return f'````{{raw}} html\n<div class="output">\n{html.strip()}\n</div>\n````'


def contents(names: Sequence[str]) -> str:
    """Return the page that lists all notebooks."""
    titles = {}
    for name in names:
        titles[name] = (
            (SOURCES / f"{name}.md").read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
        )
    return "\n".join(
        [
            "# Notebooks",
            "",
            "Each page is a notebook that runs when this site is built, on small data.",
            "",
            *(f"- [{title}]({name}.md)" for name, title in titles.items()),
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *names,
            "```",
            "",
        ]
    )


if __name__ == "__main__":
    main()
