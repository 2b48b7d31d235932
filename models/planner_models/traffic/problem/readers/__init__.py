"""Readers of network files: each returns the tables of system `traffic`.

```
nodes    node, latitude?, longitude?
links    tail, head, capacity_mbps, weight?, cost?, latency_ms?
demands  source, target, rate_mbps
```
Labels are text and numbers float64. Links are directed; parallel links are allowed. `weight` is
the routing metric, 1 where it is absent.

Each module reads one format: `read(path, *, ...) -> Tables`, and `write(tables, path, *, ...)`
where the format is a file. A reader reports every fault of a file's syntax, units and structure at
once; the values are validated later, with the tables.
"""

from __future__ import annotations

import pandas as pd

Tables = dict[str, pd.DataFrame]
"""Tables by name: "nodes", "links" and "demands"."""
