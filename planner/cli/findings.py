"""Commands that show what is known: of the papers, and of coordination."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import HtmlOption, JsonOption, PicturesOption
from planner.cli.output import print_json, say, write_pages
from planner.errors import InputError


def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="Such as multicast/figure_5a, or multicast for all its."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every target of every system.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller or shorter runs: seconds each.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Save verdicts.csv and each curve in this folder."),
    ] = None,
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a paper's table or figure again: each published value beside ours. Without a target, list them."""
    from planner import report
    from planner import reproduce as reproduction

    chosen = reproduction.find_targets(None if everything or not targets else targets)
    if not targets and not everything:
        if as_json:
            names = [
                {"target": f"{system.name}/{target.name}", "place": target.place, "about": target.about}
                for system, target in chosen
            ]
            print_json(names)
        else:
            report.show_targets(chosen)
            say("planner reproduce TARGET... runs some, --all runs all")
        return
    done = []
    with report.progress("targets", len(chosen)) as advance:
        for system, target in chosen:
            done.append(reproduction.reproduce(system, target, quick=quick))
            if not as_json:
                report.show_reproduction(done[-1])
            advance()
    if out is not None:
        reproduction.save(done, out)
        say(f"saved verdicts and curves in {out}")
    write_pages(lambda html: html.reproduction_page(done), html, pictures)
    if as_json:
        print_json([one.to_dict() for one in done])
    else:
        report.show_verdicts(done)
    raise typer.Exit(next((one.error.exit_code for one in done if one.error is not None), 0))


def recipes(
    resources: Annotated[
        str | None,
        typer.Option("--resources", help="Do they decide over the same devices? disjoint, partial or full."),
    ] = None,
    information: Annotated[
        str | None, typer.Option("--information", help="What can be told: none, incomplete or complete.")
    ] = None,
    separation: Annotated[
        str | None,
        typer.Option(
            "--separation",
            help="Why control is split: layering, companies, departments, timescale, granularity, line-rate.",
        ),
    ] = None,
    decide_s: Annotated[
        float | None, typer.Option("--decide-s", metavar="S", help="Seconds that a good decision takes.")
    ] = None,
    react_s: Annotated[
        float | None, typer.Option("--react-s", metavar="S", help="Seconds that events leave for an answer.")
    ] = None,
    measured: Annotated[
        bool, typer.Option("--measure", help="Measure what coordination is worth, in every system.")
    ] = False,
    curves: Annotated[
        bool,
        typer.Option(
            "--curves", help="Measure too how that falls with the age, noise and grain of what is told."
        ),
    ] = False,
    systems: Annotated[
        list[str] | None, typer.Option("--system", help="With --measure: only this system. Repeatable.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="STORE", help="With --measure: keep the runs in this store."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="With --measure: processes; default: one a core.")
    ] = None,
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how control planes can coordinate, and which way suits yours: give what constrains them."""
    from planner import recipes as design_space
    from planner import recipes_report as report

    if measured or curves:
        _measure(systems, curves, out, workers, html, pictures, as_json)
        return
    given = (resources, information, separation, decide_s, react_s)
    if all(one is None for one in given):
        reviews = design_space.review()
        if as_json:
            print_json([one.to_dict() for one in reviews])
        else:
            report.show_design_space(reviews)
            say("planner recipes --resources ... --separation ... recommends one for your constraints")
        return
    if resources is None:
        raise InputError("--resources: is missing; one of disjoint, partial, full")
    advice = design_space.recommend(
        resources=resources,
        information=information,
        separation=separation,
        decide_s=decide_s,
        react_s=react_s,
    )
    if as_json:
        print_json(advice.to_dict())
    else:
        report.show_advice(advice)


def _measure(
    systems: list[str] | None,
    with_curves: bool,
    out: Path | None,
    workers: int | None,
    html: Path | None,
    pictures: Path | None,
    as_json: bool,
) -> None:
    """Measure systems, with the curves if they are wanted, and show what came of it."""
    from planner import coordination, recipes_report, sweep_report

    drawn: list[coordination.Curves] = []
    with sweep_report.progress() as advance:
        if with_curves:
            drawn = coordination.curves(systems, out=out, workers=workers, advance=advance)
            found = [one.measured for one in drawn]
        else:
            found = coordination.measure(systems, out=out, workers=workers, advance=advance)
    write_pages(lambda pages: pages.coordination_page(found, drawn), html, pictures)
    if as_json:
        designs = [row for one in found for row in one.frame.to_dict(orient="records")]
        if with_curves:
            rows = [row for one in drawn for row in one.frame.to_dict(orient="records")]
            said = [sentence for one in found for sentence in one.sentences()]
            said += [sentence for one in drawn for sentence in one.sentences()]
            print_json({"designs": designs, "curves": rows, "sentences": said})
        else:
            print_json(designs)
        return
    recipes_report.show_coordination(found)
    if with_curves:
        recipes_report.show_curves(drawn)
