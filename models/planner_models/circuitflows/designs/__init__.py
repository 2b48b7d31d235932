"""The designs of system `circuitflows`: observation, algorithm, coordination mechanism and signalling."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.circuitflows import information as signalling
from planner_models.circuitflows.designs import operation, queue_tuning
from planner_models.circuitflows.information import observe_reports

QUEUE_REPORTS: Final = (
    "racks' switches report queue lengths every week; the scheduler sends its days to both switches"
)
HOST_REPORTS: Final = (
    "hosts report what applications hand over, racks' switches every week what has passed of it; the "
    "scheduler sends its days to both switches"
)
AWARE: Final = QUEUE_REPORTS + "; the file system knows which hosts are in a rack"
SOURCE: Final = "Mukerjee 2018, "
_on_queues = partial(Design, observe=observe_reports, signalling=signalling.count_queue_reports)
_on_nothing = partial(Design, signalling=no_signalling)
DESIGNS: Final = (
    _on_queues(
        name="queues",
        title="Planned by queues",
        decide=operation.run_on_queue_lengths,
        mechanism=Mechanism.REACTION,
        messages=QUEUE_REPORTS,
        source=SOURCE + "2.5.1",
    ),
    Design(
        name="data_units",
        title="Planned by data units",
        decide=operation.run_on_application_data,
        observe=observe_reports,
        signalling=signalling.count_application_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages=HOST_REPORTS,
        source=SOURCE + "2.5.2",
    ),
    _on_nothing(
        name="fixed",
        title="Fixed schedule",
        decide=operation.run_fixed_schedule,
        mechanism=Mechanism.NONE,
        messages="the week is set once",
        source=SOURCE + "2.5.3",
    ),
    _on_nothing(
        name="resize_tuned",
        title="Queue resizing, tuned",
        decide=queue_tuning.run_tuned_queues,
        mechanism=Mechanism.TRANSPARENCY,
        messages="the week is set once; racks' switches know it, and resize their queues by it",
        source=SOURCE + "2.4.2",
    ),
    _on_nothing(
        name="packet_only",
        title="Packet switch only",
        decide=operation.run_packet_switch_only,
        mechanism=Mechanism.NONE,
        messages="none",
        source=SOURCE + "2.5.4",
    ),
    _on_queues(
        name="hdfs_random",
        title="HDFS, random placement",
        decide=operation.run_random_placement,
        mechanism=Mechanism.REACTION,
        messages=QUEUE_REPORTS,
        source=SOURCE + "2.6.1 (HDFS)",
    ),
    _on_queues(
        name="rehdfs",
        title="HDFS, placement by circuits",
        decide=operation.run_shifted_placement,
        mechanism=Mechanism.TRANSPARENCY,
        messages=AWARE,
        source=SOURCE + "2.6.1 (reHDFS)",
    ),
    _on_queues(
        name="placement_optimum",
        title="Optimal placement",
        decide=operation.run_optimal_placement,
        mechanism=Mechanism.TRANSPARENCY,
        messages=AWARE,
        source=SOURCE + "2.6.1, as an optimization",
    ),
)
