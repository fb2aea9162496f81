"""How a fit on workers grows: a model of its time, beside what was measured.

The constants come from benchmarks/results/distributed.json. The model predicts sizes that
nobody has measured here.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table
from benchmarks.pages.page import Finding, Result

FEATURES, LANDMARKS, PASSES = 40, 1000, 5
MILLION, BILLION = 10**6, 10**9


class Constants(NamedTuple):
    """Seconds, from measurements on this machine."""

    entry: float  # of one thread, for a kernel entry in a pass
    fixed: float  # of the process of the user, whatever the rows
    row: float  # of the process of the user, for each row
    a_pass: float  # of a pass besides work
    a_worker: float  # of each worker in it
    cell: float  # of reading a feature of a row, by one worker

    def fit(self, rows: float, landmarks: int, passes: float, workers: int) -> float:
        """Seconds of a fit of RankRC for one lam, from rows that are on their workers."""
        work = passes * rows * landmarks * self.entry / workers
        return self.fixed + self.row * rows + work + passes * self.overhead(workers)

    def overhead(self, workers: int) -> float:
        """Seconds of a pass in which nobody waits for work."""
        return self.a_pass + self.a_worker * workers


def constants(runs: list[Run]) -> Constants:
    """From the fits of two sizes in memory, those of Dask, and the passes of nothing."""
    known = {run["key"]: run for run in summaries(runs) if run["status"] == "ok"}
    empty = [run for key, run in known.items() if key.startswith("pass / ")]
    workers = np.array([int(run["place"].split()[1]) for run in empty])
    slope, start = np.polyfit(workers, [run["seconds"] for run in empty], 1)
    small, large = sorted(
        (run for run in known.values() if run["what"] == "fit" and "2 workers" in run["place"]),
        key=lambda run: run["rows"],
    )
    one = next(
        run
        for run in known.values()
        if run["what"] == "fit" and "1 worker" in run["place"] and run["rows"] == large["rows"]
    )
    entry = one["work_seconds"] / (one["passes"] * one["rows"] * LANDMARKS)
    here = [run["seconds"] - run["asked_seconds"] for run in (small, large)]
    row = max((here[1] - here[0]) / (large["rows"] - small["rows"]), 0.0)
    cell = one["load_seconds"] / (one["rows"] * FEATURES)
    fixed = max(here[0] - row * small["rows"], 0.0)
    return Constants(entry, fixed, row, float(start), max(float(slope), 0.0), cell)


def finding(result: Result) -> Finding:
    """Return what the model says of ten billion rows."""
    c = constants(result["runs"])
    minutes = c.fit(10 * BILLION, LANDMARKS, PASSES, 100) / 60.0
    return Finding(
        "Predicted time of one fit on 10 billion x 40 rows and 100 workers",
        f"{minutes:.0f} minutes, nothing of it measured",
    )


def page(result: Result) -> str:
    """The whole page."""
    runs = result["runs"]
    c = constants(runs)
    return TEXT.format(
        cores=result["cores"],
        features_count=FEATURES,
        passes=PASSES,
        entry=f"{c.entry * 1e9:.2f}",
        fixed=f"{c.fixed:.1f}",
        row=f"{c.row * 1e6:.2f}",
        a_pass=f"{c.a_pass * 1e3:.0f}",
        a_worker=f"{c.a_worker * 1e3:.1f}",
        cell=f"{c.cell * 1e9:.0f}",
        checked=_checked(runs, c),
        ahead=_ahead(c),
        hundred=f"{c.row * 10 * BILLION / 60:.0f}",
        work=f"{PASSES * 10 * BILLION * LANDMARKS * c.entry / 100 / 60:.0f}",
        kernel=f"{4 * 10 * BILLION * LANDMARKS / 100 / 2**30:,.0f}",
        features=f"{4 * 10 * BILLION * FEATURES / 100 / 2**30:,.0f}",
    )


def _checked(runs: list[Run], c: Constants) -> str:
    body = []
    for run in summaries(runs):
        if run["status"] != "ok" or run["what"] != "fit" or "dask" not in run["place"]:
            continue
        n_workers = int(run["place"].split()[1])
        told = c.fit(run["rows"], LANDMARKS, run["passes"], n_workers)
        ratio = f"{told / run['seconds']:.2f}"
        name = [f"{run['rows']:,}", str(n_workers), f"{run['passes']:.0f}"]
        body.append([*name, f"{run['seconds']:.1f}", f"{told:.1f}", ratio])
    return table(["rows", "workers", "passes", "measured s", "by the model s", "ratio"], body)


def _ahead(c: Constants) -> str:
    body = []
    for rows, n_workers in (
        (100 * MILLION, 10), (BILLION, 10), (BILLION, 100), (10 * BILLION, 100),
    ):  # fmt: skip
        whole = c.fit(rows, LANDMARKS, PASSES, n_workers)
        here = c.fixed + c.row * rows
        work = PASSES * rows * LANDMARKS * c.entry / n_workers
        read = rows * FEATURES * c.cell / n_workers
        body.append(
            [
                f"{rows:,}",
                str(n_workers),
                f"{read:,.0f}",
                f"{whole:,.0f}",
                f"{work:,.0f}",
                f"{PASSES * c.overhead(n_workers):.1f}",
                f"{here:,.0f}",
            ]
        )
    header = [
        "rows", "workers", "reading s", "fit s", "of it work s", "overhead s",
        "user's process s",
    ]  # fmt: skip
    return table(header, body)


TEXT = """For n rows, d features, l landmarks, w workers of one thread, and p passes (four to six
for a single lam on many rows, since most of the solution comes from a part of the rows in the
memory of the user's process), the seconds of a fit of RankRC are the sum of

- work: p n l / w times {entry} ns, for a kernel entry in a pass at {features_count} features
- each pass besides its work: {a_pass} ms, and {a_worker} ms a worker (all on {cores} cores)
- the user's process: {fixed} s for landmarks, their factorisation and the part of the rows, and
  {row} µs a row for labels and the threshold

Reading takes n d / w times {cell} ns before that, from binary files on the same disk. The constants
come from these measured fits:

{checked}

Predicted for {features_count} features, 1,000 landmarks and {passes} passes, none of it measured:

{ahead}

## 10 billion rows on 100 workers

The work of a fit is {work} minutes. A kernel of {kernel} GiB a worker is not kept but computed
again in each pass, and features of {features} GiB a worker are read from its disk each time, which
the model does not count. The user's process is the limit: it holds the labels, and works {hundred}
minutes on them, which no worker shares.
"""
