"""Overlay Multicast: each channel takes its own best trees, as if it were alone."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import layers as arrays
from planner_models.livevideo.everywhere import KEPT, decided
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees


def distribute(
    problem: LiveVideo,
    *,
    sees_load: Annotated[
        bool, Field(description="each channel knows what room those before it have left, instead of none")
    ] = True,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """The best tree for each object alone, admitted in the order of their first requests.

    A channel looks for its best tree on what those before it have left, which starves later ones.
    Without `sees_load` it looks as if the network were empty; branches that find a link full are cut.

    raises  InputError for more than four tiers
    source  Mukerjee 2018, section 4.7.1
    """
    if len(problem.tiers) > arrays.MOST_TIERS:
        raise InputError(f"overlay_multicast: {len(problem.tiers)} tiers, at most {arrays.MOST_TIERS}")
    if not len(problem.requests):
        return decided(problem, Streams(problem).plan(), keeps=KEPT)
    layers = arrays.of(problem)
    first = np.full(len(problem.objects), np.inf)
    np.minimum.at(first, problem.object, problem.arrival_s)
    order = np.argsort(first, kind="stable")
    free = [
        np.where(opened, np.outer(layers.class_rate, problem.cost_weight * part.cost), np.inf)
        for part, opened in ((layers.a, layers.open_a), (layers.b, layers.open_b), (layers.c, layers.open_c))
    ]
    prices = (free[0], free[1], free[2])
    pricer = Pricer(layers, 1)
    dual = np.full(len(layers.group), -1.0)
    choice, _, _ = pricer.solve(prices, dual, 20, 17)
    if sees_load:
        packing = Packing(layers, pricer, 0)
        merit = np.empty(len(order))
        merit[order] = np.arange(len(order), 0, -1)
        packing.rebuild(choice, prices, dual, merit * layers.bitrate)
        return decided(problem, layers.plan(packing.choice), keeps=KEPT)
    streams = Streams(problem)
    parts = (layers.a.link, layers.b.link, layers.c.link)
    for item in order.tolist():
        for q in range(layers.object_first[item], layers.object_first[item + 1]):
            if choice[q, 2] < 0:
                continue
            links = [int(part[choice[q, column]]) for column, part in enumerate(parts)]
            path = [link for link in links if link >= 0]
            new = [link for link in path if not streams.has(item, streams.head[link])]
            if all(streams.fits(item, link) for link in new):
                streams.add_path(item, new)
    return decided(problem, streams.plan(), keeps=KEPT)
