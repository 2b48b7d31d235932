"""Write the generated pages of the documentation: systems, command line, Python and reproduction.

    python docs/generate.py

The pages are made from the code: docstrings, the descriptions that `planner list` shows, the help of the
commands, and the values that ship. They are Markdown, so that building the site needs Sphinx but not planner.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from planner.cli import application
from planner.contract import end_columns
from planner.runs.reproduction import Verdict
from planner.runs.shipped_verdicts import load_shipped
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.description import describe

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PICTURES = DOCS / "pictures"
"""A picture of each system's example; `python docs/pictures.py` draws them."""
EXAMPLES = {
    "analytics": "own_data",
    "brokering": "own_data",
    "capacity": "backbone",
    "cdnrouting": "abilene",
    "membership": "regions_etcd",
    "circuitflows": "one_ring",
    "circuits": "hotspots",
    "coflows": "mapreduce",
    "consolidation": "own_data",
    "fairshare": "own_data",
    "flowtables": "own_data",
    "geostore": "own_data",
    "livevideo": "session_window",
    "multicast": "own_data",
    "queries": "own_data",
    "rotors": "crossover",
    "contracts": "own_data",
    "topology": "jupiter",
    "traffic": "abilene",
    "updates": "diamond",
}
"""The scenario that a system's page shows: small, and without a study around it."""
API = {
    "planner": "Run designs",
    "planner.contract.system": "Declare a system",
    "planner.contract.problem": "Declare a system: problems",
    "planner.contract.tables": "Declare a system: tables",
    "planner.contract.plan": "Declare a system: plans",
    "planner.contract.metrics": "Declare a system: metrics",
    "planner.contract.drawing": "Declare a system: pictures",
    "planner.contract.design": "Declare a system: designs",
    "planner.contract.proof": "Declare a system: proofs",
    "planner.contract.signalling": "Declare a system: messages of control planes",
    "planner.contract.degradation": "Declare a system: old, noisy and coarse information",
    "planner.contract.control_loop": "Declare a system: control in time",
    "planner.contract.simulation": "Declare a system: simulations",
    "planner.contract.studies": "Declare a system: studies",
    "planner.contract.what_if": "Declare a system: explanations",
    "planner.backends.program_builder": "Models from named variables and constraints",
    "planner.backends.linear_program": "Models in sparse arrays",
    "planner.backends.backend": "Declare a backend",
    "planner.testing": "Test a system or a backend",
}


def main() -> None:
    """Write all generated pages."""
    for folder in ("systems", "reference"):
        shutil.rmtree(DOCS / folder, ignore_errors=True)
        (DOCS / folder).mkdir()
    for name in system_names():
        (DOCS / "systems" / f"{name}.md").write_text(system_page(name), encoding="utf-8")
    (DOCS / "systems" / "index.md").write_text(systems_page(), encoding="utf-8")
    (DOCS / "reference" / "inputs.md").write_text(inputs_page(), encoding="utf-8")
    (DOCS / "reference" / "cli.md").write_text(command_page(), encoding="utf-8")
    (DOCS / "reference" / "api.md").write_text(python_page(), encoding="utf-8")
    (DOCS / "reproduced.md").write_text(reproduction_page(), encoding="utf-8")


# systems


def systems_page() -> str:
    """Return the page that lists all systems."""
    rows = [
        (f"[{name}]({name}.md)", find_system(name).question, find_system(name).source)
        for name in system_names()
    ]
    return "\n".join(
        [
            "# Systems",
            "",
            "A system is one planning domain. All systems have the same commands and the same parts.",
            "",
            *table(("system", "question", "source"), rows),
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *system_names(),
            "```",
            "",
        ]
    )


def system_page(name: str) -> str:
    """Return the page of a system: its docstring, then its tables, designs, parameters and metrics."""
    system = describe(find_system(name))
    scenarios = sorted((ROOT / "data" / "scenarios" / name).glob("*.toml"))
    title, _, text = markdown(inspect.getdoc(import_module(f"planner_models.{name}")) or "").partition("\n")
    lines = [f"# {title.split(':')[0]}", "", f"**{system['question']}** Source: {system['source']}.", ""]
    if (PICTURES / f"{name}.png").exists():
        lines += [f"![Verdict and metrics of designs on {name}/{EXAMPLES[name]}](../pictures/{name}.png)", ""]
    if not title.rstrip(".").endswith("?"):
        lines += [title, ""]
    lines += [text.strip(), "", "## Example scenario", ""]
    example = ROOT / "data" / "scenarios" / name / f"{EXAMPLES[name]}.toml"
    lines += [f"`{name}/{example.stem}` ships with planner:", "", "```toml"]
    lines += [example.read_text(encoding="utf-8").strip(), "```", "", "```sh"]
    lines += [f"planner compare {name}/{example.stem}", "```", ""]
    lines += [
        "All scenarios that ship: " + ", ".join(f"`{name}/{path.stem}`" for path in scenarios) + ".",
        "",
    ]
    lines += ["## Tables of a problem", "", *tables(system["tables"])]
    lines += ["## Tables of a plan", "", *tables(system["plan_tables"])]
    lines += [
        "## Designs",
        "",
        "The first is the default. `from planner_models import " + name + "` imports the functions.",
        "",
    ]
    designs = [
        (
            f"`{design['design']}`",
            design["mechanism"],
            design["about"],
            f"`{design['function'].removeprefix('planner_models.')}`",
            design.get("messages") or "",
            design["source"],
        )
        for design in system["designs"]
    ]
    lines += [*table(("design", "mechanism", "algorithm", "function", "signalling", "source"), designs), ""]
    lines += ["## Metrics", ""]
    metrics = [
        (f"`{metric['metric']}`", metric["unit"], metric["better"], metric["about"])
        for metric in system["metrics"]
    ]
    lines += [*table(("metric", "unit", "better", "meaning"), metrics), ""]
    lines += ["## Parameters", "", "Tables of a scenario file, and what each accepts.", ""]
    for section, parameters in system["parameters"].items():
        if not parameters:
            continue
        rows = [
            (
                f"`{parameter}`",
                rule["values"],
                "required" if rule["required"] else f"`{rule.get('default')}`",
                rule["about"],
            )
            for parameter, rule in parameters.items()
        ]
        lines += [f"### `{section}`", "", *table(("parameter", "values", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def tables(descriptions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a section for each table, with its columns."""
    for description in descriptions:
        optional = " (optional)" if description["optional"] else ""
        yield from (f"### `{description['table']}`{optional}", "", sentence(description["about"]), "")
        rows = [
            (f"`{name}`", "yes" if column["required"] else "no", column["about"])
            for name, column in description["columns"].items()
        ]
        yield from (*table(("column", "required", "content"), rows), "")


# inputs


def inputs_page() -> str:
    """Return the page of all tables and readers: names and units of columns, and the defaults."""
    lines = [
        "# Tables and readers",
        "",
        "What each table and each reader takes, in which unit, under which names, and what holds where it is",
        "absent. What is assumed of a file is also said beside the verdict and in `--json`.",
        "[](../howto/own_data.md) has the rules by which columns are found: without regard to case and",
        "punctuation, and in any unit of the same kind. Where a column may be another one, the file is",
        "refused with both readings. The ends of links and demands have more names: "
        + "; ".join(
            f"{' or '.join(f'`{name}`' for name in sorted(first))} with "
            f"{' or '.join(f'`{name}`' for name in sorted(second))}"
            for first, second in end_columns.OTHER_NAMES
        )
        + ".",
        "",
    ]
    for name in system_names():
        system = describe(find_system(name))
        lines += [f"## {name}", ""]
        rows = [
            (f"`{item['table']}.{column}`", *input_cells(rules))
            for item in system["tables"]
            for column, rules in item["columns"].items()
        ]
        lines += [*table(("column", "unit", "other names", "where it is absent", "content"), rows), ""]
        optional = [f"`{item['table']}`" for item in system["tables"] if item["optional"]]
        if optional:
            lines += [f"Tables that may be absent: {', '.join(optional)}.", ""]
        readers = [
            (f"`{owner}`", f"`{parameter}`", absent_parameter(rule), rule["about"])
            for owner, parameters in system["parameters"].items()
            if owner.partition(" ")[0] in ("source", "series")
            for parameter, rule in parameters.items()
        ]
        if readers:
            lines += [*table(("reader", "parameter", "where it is absent", "content"), readers), ""]
    return "\n".join(lines)


def input_cells(rules: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return unit, other names, the default if absent, and content of a column."""
    names = ", ".join(f"`{name}`" for name in rules.get("other_names", ()))
    if rules["required"]:
        absent = "refused"
    elif "when_absent" in rules:
        absent = f"{rules['when_absent']}, which is said"
    elif "default" in rules:
        absent = f"{rules['default']:.15g}"
    else:
        said = re.search(
            r"(?:blank:|absent:|empty:|default:|without it) ([^;]+)|(\w+) \(also where absent\)",
            rules["about"],
        )
        absent = "none" if said is None else next(filter(None, said.groups()))
    if "may_be" in rules:
        names = f"asked about: may be `{rules['may_be']}`" + (f"; {names}" if names else "")
    return rules.get("unit", ""), names, absent, rules["about"]


def absent_parameter(rules: Mapping[str, Any]) -> str:
    """Return the default of a parameter of a reader."""
    return "refused" if rules["required"] else f"`{rules['default']}`"


# the command line


def command_page() -> str:
    """Return the reference of all commands, as each command's `--help` prints it."""
    lines = ["# Command line", "", "The text of each section is the command's own `--help`.", ""]
    for words, command in commands():
        lines += [f"## {' '.join(words)}", "", "```text", help_text(words, command), "```", ""]
    return "\n".join(lines)


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that call it, groups before their commands."""
    pending: list[tuple[tuple[str, ...], Any]] = [(("planner",), application.commands())]
    while pending:
        words, command = pending.pop(0)
        yield words, command
        pending[:0] = [
            ((*words, name), subcommand) for name, subcommand in getattr(command, "commands", {}).items()
        ]


def help_text(words: Sequence[str], command: Any) -> str:
    """Return the help of a command."""
    context = command.context_class(
        command, info_name=" ".join(words), terminal_width=84, max_content_width=84
    )
    return str(command.get_help(context)).strip()


# Python


def python_page() -> str:
    """Return the reference of the public names."""
    lines = ["# Python", "", "Public names, by module. A name is imported as `from MODULE import NAME`.", ""]
    shown: set[int] = set()  # a name that two modules export stands at the first
    for module, title in API.items():
        loaded = import_module(module)
        lines += [f"## {title}: `{module}`", "", markdown(inspect.getdoc(loaded) or ""), ""]
        for name in public_names(loaded):
            value = getattr(loaded, name)
            if id(value) not in shown:
                lines += [*described(module, name, value), ""]
            shown.add(id(value))
    return "\n".join(lines)


def public_names(module: Any) -> list[str]:
    """Return the public names of a module: those of `__all__`, else the classes and functions made in it."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


def described(module: str, name: str, value: Any) -> Iterator[str]:
    """Yield the directive that documents a class with its methods, or a function."""
    kind = "class" if inspect.isclass(value) else "function"
    yield f"::::{{py:{kind}}} {name}{signature(value)}"
    yield f":module: {module}"
    yield ""
    yield markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        for member, function in vars(value).items():
            is_property = isinstance(function, property) or hasattr(function, "attrname")
            if member.startswith("_") or not (inspect.isfunction(function) or is_property):
                continue
            documented = markdown(inspect.getdoc(function) or "")
            if not documented:
                continue
            yield ""
            yield f":::{{py:{'property' if is_property else 'method'}}} {member}" + (
                "" if is_property else signature(function, drop_first=True)
            )
            yield ""
            yield documented
            yield ":::"
    yield "::::"


class Plain(str):
    """An annotation that a signature shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(value: Any, *, drop_first: bool = False) -> str:
    """Return the signature of a callable as text, without `self`; empty where it has none."""
    try:
        found_signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(annotation=Plain(parameter.annotation))
        if isinstance(parameter.annotation, str)
        else parameter
        for parameter in list(found_signature.parameters.values())[1 if drop_first else 0 :]
    ]
    if isinstance(found_signature.return_annotation, str):
        found_signature = found_signature.replace(return_annotation=Plain(found_signature.return_annotation))
    if inspect.isclass(value):
        found_signature = found_signature.replace(return_annotation=inspect.Signature.empty)
    text = str(found_signature.replace(parameters=parameters)).replace("\n", " ")
    return re.sub(r"<([^<>]*)>", r"...", text)


# what is reproduced


def reproduction_page() -> str:
    """Return the page with the counts of verdicts for each target of a paper."""
    shipped = load_shipped()
    rows = [
        {"target": name, **{kind: str(count) for kind, count in shipped_run.reproduction.counts().items()}}
        for name, shipped_run in shipped.items()
    ]
    kinds = [name for name in rows[0] if name not in ("target", str(Verdict.SHORTENED))]
    full = ", ".join(f"`{name}`" for name, shipped_run in shipped.items() if shipped_run.run == "full")
    versions = sorted(
        {f"planner {shipped_run.version} on {shipped_run.measured}" for shipped_run in shipped.values()}
    )
    lines = [
        "# What is reproduced",
        "",
        "`planner reproduce` lists the tables and figures of the papers that planner can run again.",
        "`planner reproduce TARGET` prints each published value beside ours, with a verdict:",
        "",
        "- *reproduced*: the same value within a stated tolerance;",
        "- *calibrated*: an open parameter was fitted to the published value;",
        "- *order only*: only the order of several values agrees;",
        "- *not reproduced*: our value differs;",
        "- *not covered*: no model here computes the value; its note says why;",
        "- *not available*: the source does not give the value or its input any more;",
        "- *no number to compare*: a setting of the paper, or a claim without a figure;",
        "- *shortened*: the run was quick (`--quick`), which is too short for the value.",
        "",
        f"The counts below are those of quick runs of {' and '.join(versions)},",
        f"and of full runs where a quick one is too short: {full}.",
        "`python -m benchmarks.verdicts TARGET` makes the values of a full run again.",
        "A test compares the counts with new quick runs.",
        "",
    ]
    systems = sorted({row["target"].split("/")[0] for row in rows})
    totals = [
        (
            f"[{system}](systems/{system}.md)",
            *counts([row for row in rows if row["target"].startswith(f"{system}/")], kinds),
        )
        for system in systems
    ]
    lines += ["## By system", "", *table(("system", *kinds), [*totals, ("all", *counts(rows, kinds))]), ""]
    for system in systems:
        system_rows = [row for row in rows if row["target"].startswith(f"{system}/")]
        lines += [f"## {system}", ""]
        lines += [
            *table(
                ("target", *kinds),
                [(f"`{row['target']}`", *(row[kind] for kind in kinds)) for row in system_rows],
            )
        ]
        lines += [""]
    return "\n".join(lines)


def counts(rows: Iterable[Mapping[str, str]], kinds: Sequence[str]) -> list[str]:
    """Return the sum of each kind of verdict."""
    listed = list(rows)
    return [str(sum(int(row[kind]) for row in listed)) for kind in kinds]


# Markdown


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]


def cell(value: Any) -> str:
    """Return a value as the text of a table's cell: patterns such as `*` stay as they are."""
    text = " ".join(str("" if value is None else value).split())
    parts = re.split(r"(`[^`]*`|\[[\w-]+\]\([^)]*\))", text)
    return "".join(
        piece.replace("|", "\\|") if index % 2 else re.sub(r"([\\*_<>|\[\]$#])", r"\\\1", piece)
        for index, piece in enumerate(parts)
    )


def sentence(text: str) -> str:
    """Return a description as a sentence."""
    return cell(text[:1].upper() + text[1:].rstrip(".") + ".")


def markdown(text: str) -> str:
    """Return a docstring as Markdown.

    Examples become blocks of code, indented blocks too; sections of numpydoc, and lines of a name and its
    meaning, apart by two spaces or more, become lists; displayed formulas get a line for each constraint.
    """
    text = re.sub(r"\$\$\n\$\$(?=\\text\{s\.t\.\})", "\n", text)  # one formula in two displays
    blocks = re.split(r"\n\s*\n", re.sub(r"\$\$(.*?)\$\$", _lines_of_formula, text, flags=re.DOTALL))
    return "\n\n".join(map(_block, blocks))


def _lines_of_formula(match: re.Match[str]) -> str:
    """Return a displayed formula with a line for its objective and for each constraint."""
    objective, _, constraints = match.group(1).partition(r"\text{s.t.}\quad")
    rows = [re.sub(r"^\\max", r"\\max &", objective.strip().removesuffix(r"\quad").strip())]
    if constraints:
        first, *others = (piece.strip() for piece in re.split(r",\\quad", constraints))
        rows += [rf"\text{{s.t.}} & {first}", *(f"& {line}" for line in others)]
    return "$$\n" + " \\\\\n".join(rows) + "\n$$"


def _block(text: str) -> str:
    """Return one paragraph of a docstring as Markdown."""
    lines = text.splitlines()
    if lines and lines[0].lstrip().startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if lines and all(line.startswith("    ") for line in lines):
        code = [line[4:] for line in lines]
        try:
            compile("\n".join(code), "docstring", "exec")
            language = "python"
        except SyntaxError:
            language = "text"
        return "\n".join([f"```{language}", *code, "```"])
    if len(lines) > 2 and re.fullmatch("-{3,}", lines[1]):
        items = [f"**{lines[0]}**", ""]
        for line in lines[2:]:
            is_name = not line.startswith(" ")
            items.append(f"- `{line}`:" if is_name else "  " + line.strip())
        return "\n".join(items)
    entry = re.compile(r"(?P<name>[\w*,` \[\].]*[\w\]`]) {2,}(?P<meaning>\S.*)")
    if len(lines) > 0 and not lines[0].startswith((" ", "|", "-")) and entry.fullmatch(lines[0]):
        items = []
        for line in lines:
            match = None if line.startswith(" ") else entry.fullmatch(line)
            if match:
                name = match["name"].strip().strip("`")
                items.append(f"- `{name}`: {match['meaning']}")
            else:
                items.append("  " + line.strip())
        return "\n".join(items)
    return text


if __name__ == "__main__":
    main()
