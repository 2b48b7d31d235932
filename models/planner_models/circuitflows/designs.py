"""The designs of system `circuitflows`: what is seen, who decides, and what is exchanged."""

from __future__ import annotations

from typing import Final

from planner.exchange import nothing
from planner.system import Design, Mechanism
from planner_models.circuitflows import exchange, operate, tune
from planner_models.circuitflows.sees import reported

QUEUES: Final = (
    "racks' switches report queue lengths to the scheduler every week; it tells both switches its days"
)
TOLD: Final = (
    "hosts report what applications hand over, racks' switches every week what they saw of it; the scheduler "
    "tells both switches its days"
)
SOURCE: Final = "Mukerjee 2018, "
DESIGNS: Final = (
    Design(
        name="queues",
        decide=operate.operate_queues,
        sees=reported,
        exchange=exchange.queues,
        mechanism=Mechanism.REACTION,
        messages=QUEUES,
        source=SOURCE + "2.5.1",
    ),
    Design(
        name="told",
        decide=operate.operate_told,
        sees=reported,
        exchange=exchange.told,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source=SOURCE + "2.5.2",
    ),
    Design(
        name="fixed",
        decide=operate.operate_fixed,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="the week is set once",
        source=SOURCE + "2.5.3",
    ),
    Design(
        name="resize_tuned",
        decide=tune.operate_tuned,
        exchange=nothing,
        mechanism=Mechanism.TRANSPARENCY,
        messages="the week is set once; racks' switches know it, and resize their queues by it",
        source=SOURCE + "2.4.2",
    ),
    Design(
        name="packet_only",
        decide=operate.operate_packet_only,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="none",
        source=SOURCE + "2.5.4",
    ),
    Design(
        name="hdfs_random",
        decide=operate.operate_hdfs_random,
        sees=reported,
        exchange=exchange.queues,
        mechanism=Mechanism.REACTION,
        messages=QUEUES,
        source=SOURCE + "2.6.1 (HDFS)",
    ),
    Design(
        name="rehdfs",
        decide=operate.operate_rehdfs,
        sees=reported,
        exchange=exchange.queues,
        mechanism=Mechanism.TRANSPARENCY,
        messages=QUEUES + "; the file system knows which hosts are in a rack",
        source=SOURCE + "2.6.1 (reHDFS)",
    ),
    Design(
        name="placement_optimum",
        decide=operate.operate_placement,
        sees=reported,
        exchange=exchange.queues,
        mechanism=Mechanism.TRANSPARENCY,
        messages=QUEUES + "; the file system knows which hosts are in a rack",
        source=SOURCE + "2.6.1, as an optimization",
    ),
)
