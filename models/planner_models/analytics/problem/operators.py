"""Operators that make data smaller, applied to records, with their true and their proven errors.

Errors are computed, never assumed: each function takes the counts or values of sites and returns what a
datacenter would answer.

sources  Cao, Wang 2004 (TPUT, top-k in three rounds); Cormode, Muthukrishnan 2005 (count-min sketch);
         Rabkin et al. 2013, section 4 (coarsening, samples, histograms)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints

ENTRY_BYTES: Final = 16.0
"""Of a name with its count, or of a cell of a cube."""
COUNTER_BYTES: Final = 4.0
NORMAL_95: Final = 1.959964
PRIME: Final = 2_147_483_647  # of the hash functions of sketches


class TopK(NamedTuple):
    """Answer to a query for the k largest cells over all sites.

    cells         (k,) cells, the largest count first
    counts        (k,) their counts as the datacenter knows them
    bytes_sent    bytes that sites send together
    recall        part of the true k largest cells that are in the answer
    count_error   mean relative error of the counts of the true k largest cells; a missing one is 1
    proven_error  bound on the error of a count, relative to the k-th count, that the datacenter can prove
    """

    cells: Ints
    counts: Floats
    bytes_sent: float
    recall: float
    count_error: float
    proven_error: float


def largest(counts: Floats, k: int) -> Ints:
    """Return the k largest cells with a count above 0, the largest first, ties by number."""
    order = np.argsort(-counts, kind="stable")[:k]
    return np.asarray(order[counts[order] > 0], dtype=np.int64)


def merge_lists(counts: Floats, k: int, listed: int) -> TopK:
    """Return the answer from lists of the largest cells of each site, (S, D) counts.

    A cell that a site does not list counts 0 there. Its count may be short by the last count that each site
    lists: the sum of these is proven.

    listed  entries of each list, at least k
    """
    listed_counts = np.zeros_like(counts)
    last = 0.0
    sent = 0
    for site, site_counts in enumerate(counts):
        cells = largest(site_counts, listed)
        listed_counts[site, cells] = site_counts[cells]
        sent += len(cells)
        if len(cells) == listed and (site_counts > 0).sum() > listed:
            last += float(site_counts[cells[-1]])
    total = listed_counts.sum(axis=0)
    cells = largest(total, k)
    return _judge(counts, total, cells, k, sent * ENTRY_BYTES, last)


def find_top_k(counts: Floats, k: int) -> TopK:
    """Return the exact answer by three rounds with thresholds, (S, D) counts.

    Sites list k cells; the k-th partial sum over the number of sites is the threshold above which they list
    cells in the second round; the third asks for the counts of cells that may still be among the k largest.

    source  Cao, Wang 2004 (TPUT)
    """
    sites = len(counts)
    listed = np.zeros(counts.shape, dtype=bool)
    for site, site_counts in enumerate(counts):
        listed[site, largest(site_counts, k)] = True
    sent = int(listed.sum())
    threshold = _kth(np.where(listed, counts, 0.0).sum(axis=0), k) / sites
    second = (counts >= threshold) & (counts > 0) & ~listed if threshold > 0 else (counts > 0) & ~listed
    sent += int(second.sum())
    listed |= second
    partial = np.where(listed, counts, 0.0).sum(axis=0)
    upper = partial + threshold * (~listed).sum(axis=0)
    candidates = (upper >= _kth(partial, k)) & listed.any(axis=0)
    missing: Bools = candidates[None] & ~listed
    sent += int(missing.sum()) + int(candidates.sum())  # the datacenter asks for each candidate by name
    total = np.where(candidates, counts.sum(axis=0), 0.0)
    return _judge(counts, total, largest(total, k), k, sent * ENTRY_BYTES, 0.0)


def _kth(counts: Floats, k: int) -> float:
    return float(np.partition(counts, -k)[-k]) if len(counts) >= k else 0.0


def _judge(counts: Floats, listed_counts: Floats, cells: Ints, k: int, sent: float, short: float) -> TopK:
    true = counts.sum(axis=0)
    top = largest(true, k)
    if not len(top):
        return TopK(cells, listed_counts[cells], sent, 1.0, 0.0, 0.0)
    is_found = np.isin(top, cells)
    error = judge_counts(true, listed_counts, cells, k)
    smallest = float(true[top[-1]])
    return TopK(cells, listed_counts[cells], sent, float(is_found.mean()), error, short / smallest)


def judge_counts(true: Floats, counts: Floats, cells: Ints, k: int) -> float:
    """Return the mean relative error of the counts of the true k largest cells; one not in the answer is 1.

    true, counts  (D,) of each cell, as they are and as the datacenter knows them
    cells         of the answer
    """
    top = largest(true, k)
    if not len(top):
        return 0.0
    error = np.where(np.isin(top, cells), np.abs(true[top] - counts[top]) / true[top], 1.0)
    return float(error.mean())


class Sketch(NamedTuple):
    """Count-min sketch: sketches of sites with the same places merge by the sum of their rows.

    rows   (depth, width) counts
    place  (depth, D) column of each cell
    """

    rows: Floats
    place: Ints

    def estimate(self) -> Floats:
        """Return the count of each cell, (D,); never below the true one."""
        return np.asarray(np.take_along_axis(self.rows, self.place, axis=1).min(axis=0))


def make_sketch(counts: Floats, width: int, depth: int, rng: np.random.Generator) -> Sketch:
    """Return the sketch of the counts (D,), with hash functions that are drawn.

    source  Cormode, Muthukrishnan 2005
    """
    cells = np.arange(1, len(counts) + 1, dtype=np.int64)
    factor, shift = rng.integers(1, PRIME, size=(depth, 2)).T[:, :, None]
    bucket = (factor * cells + shift) % PRIME % width
    rows = np.stack([np.bincount(buckets, weights=counts, minlength=width) for buckets in bucket]).astype(
        float
    )
    return Sketch(rows, bucket)


def sketch_counts(counts: Floats, width: int, depth: int, rng: np.random.Generator) -> Floats:
    """Return the counts (D,) that a count-min sketch of the counts (D,) gives; never below the true ones.

    By more than e/width of all counts with a probability of exp(-depth) at most.

    source  Cormode, Muthukrishnan 2005
    """
    return make_sketch(counts, width, depth, rng).estimate()


def sample_count(count: float, records: float, rate: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return an estimate of a count from a sample of records, and half the width of its 95% interval.

    rate  part of the records that is sent, each drawn by itself
    """
    hits = float(rng.binomial(round(count), rate))
    estimate = hits / rate
    likely = np.clip(max(hits, 1.0) / max(records * rate, 1.0), 0.0, 1.0)
    return estimate, float(NORMAL_95 * np.sqrt(records * likely * (1 - rate) / rate + 1e-12))


def histogram_quantile(values: Floats, edges: Floats, fraction: float) -> float:
    """Return a quantile as a histogram gives it: the middle of the bucket that it falls in."""
    counts, _ = np.histogram(values, bins=edges)
    bucket = int(np.searchsorted(np.cumsum(counts), fraction * counts.sum()))
    bucket = min(bucket, len(counts) - 1)
    return float((edges[bucket] + edges[bucket + 1]) / 2)


def coarsen_time(values: Floats, steps: int) -> Floats:
    """Return the mean of each `steps` consecutive values in place of them; the last part may be shorter."""
    starts = np.arange(0, len(values), steps)
    sizes = np.diff(np.append(starts, len(values)))
    return np.repeat(np.add.reduceat(values, starts) / sizes, sizes)


def draw_zipf_counts(
    rng: np.random.Generator, *, sites: int, cells: int, records: int, skew: float, local_part: float = 0.0
) -> Floats:
    """Draw the counts of each site and cell, (S, D), of records with popularity by Zipf's law.

    local_part  part of a site's records whose popularity has an order of its own
    """
    weight = np.arange(1, cells + 1, dtype=float) ** -skew
    weight /= weight.sum()
    counts = np.zeros((sites, cells))
    for site in range(sites):
        drawn = rng.multinomial(round(records * (1 - local_part)), weight)
        counts[site] = drawn
        if local_part > 0:
            counts[site, rng.permutation(cells)] += rng.multinomial(round(records * local_part), weight)
    return counts
