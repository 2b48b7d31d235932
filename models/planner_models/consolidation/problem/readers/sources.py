"""Sources of problems of system `consolidation`: files of clusters and hypervisors."""

from __future__ import annotations

from typing import Final

from planner_models.consolidation.problem.readers.hypervisors import openstack, virsh
from planner_models.consolidation.problem.readers.kubectl import kubectl

SOURCES: Final = {"kubectl": kubectl, "virsh": virsh, "openstack": openstack}
