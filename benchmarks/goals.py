"""What the benchmarks are meant to reach, beside what they measured."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks import growth, peer_table
from benchmarks.data_sets import simulated_name
from benchmarks.ledger import Run, summaries
from benchmarks.simulated_fits import kernel_bytes

Runs = Mapping[str, list[Run]]
MIB = 2**20
PATH_LAMS = 16


class Goal(NamedTuple):
    """A bound on one figure.

    Attributes
    ----------
    text : str
    bound : float
    is_most : bool
        Whether the figure must be at most the bound, else at least.
    found : callable
        The figure from the runs of all benchmarks, or None when it was not measured.
    """

    text: str
    bound: float
    is_most: bool
    found: Callable[[Runs], float | None]


def lines(runs: Runs) -> list[list[str]]:
    """Goal, bound, measured, reached: one line for each goal that was measured."""
    found = []
    for goal in GOALS:
        figure = goal.found(runs)
        if figure is None:
            continue
        reached = figure <= goal.bound if goal.is_most else figure >= goal.bound
        sign = "<=" if goal.is_most else ">="
        verdict = "yes" if reached else "**no**"
        found.append([goal.text, f"{sign} {goal.bound:,g}", f"{figure:,.3g}", verdict])
    return found


def _one(runs: Runs, benchmark: str, **about: Any) -> Run | None:
    """The finished cell of a benchmark that has these values."""
    for run in summaries(runs.get(benchmark, [])):
        if run["status"] == "ok" and all(run.get(k) == v for k, v in about.items()):
            return run
    return None


def _ratio(
    runs: Runs, benchmark: str, top: Mapping[str, Any], bottom: Mapping[str, Any], field: str
) -> float | None:
    above, below = (_one(runs, benchmark, **about) for about in (top, bottom))
    return above[field] / below[field] if above and below else None


def _exponent(memory: str) -> Callable[[Runs], float | None]:
    def found(runs: Runs) -> float | None:
        kind = ("fixed", "fit", memory)
        own = [
            run
            for run in summaries(runs.get("scale", []))
            if run["status"] == "ok" and (run["series"], run["what"], run["memory"]) == kind
        ]
        return growth.exponent([run["rows"] for run in own], [run["seconds"] for run in own])

    return found


def _most_beyond_budget(runs: Runs) -> float | None:
    beyond = [
        (run["peak_beyond_input"] - run["budget"]) / MIB
        for run in summaries(runs.get("scale", []))
        if run["status"] == "ok" and run["memory"] != "all"
    ]
    return max(beyond, default=None)


def _spread_of_peak(runs: Runs) -> float | None:
    peaks = [
        run["peak_beyond_input"]
        for run in summaries(runs.get("scale", []))
        if run["status"] == "ok"
        and (run["series"], run["what"], run["memory"]) == ("fixed", "fit", "256MiB")
        and run["budget"] < kernel_bytes(run["rows"], run["details"]["landmarks"])
    ]
    return max(peaks) / min(peaks) if len(peaks) > 1 else None


def _peer_ratio(data: str, top: str, bottom: str, field: str = "seconds") -> Any:
    return lambda runs: _ratio(
        runs, "peers", {"data": data, "method": top}, {"data": data, "method": bottom}, field
    )


def _best_ratio(field: str) -> Callable[[Runs], float | None]:
    """RankRCCV, chosen on a part, over LightGBM at its best setting, both by average precision."""

    def found(runs: Runs) -> float | None:
        lines = summaries(runs.get("boosters", []))
        ours = peer_table.best(lines, _WIDE, ("rankrc_top",))
        peer = peer_table.best(lines, _WIDE, peer_table.LIGHTGBM)
        return ours[field] / peer[field] if ours and peer else None

    return found


def _peer_field(data: str, method: str, field: Callable[[Run], float]) -> Any:
    def found(runs: Runs) -> float | None:
        run = _one(runs, "peers", data=data, method=method)
        return field(run) if run else None

    return found


def _uncached(what: str) -> Callable[[Runs], float | None]:
    kind = {"series": "fixed", "what": what, "rows": 1_000_000}
    small, whole = kind | {"memory": "256MiB"}, kind | {"memory": "all"}
    return lambda runs: _ratio(runs, "scale", small, whole, "seconds")


def _libsvm_at(rows: int) -> Callable[[Runs], float | None]:
    def found(runs: Runs) -> float | None:
        lines = peer_table.libsvm_growth(summaries(runs.get("peers", [])))
        return next((one["ratio"] for one in lines if one["rows"] == rows), None)

    return found


def _disk(field: Callable[[Run], float]) -> Callable[[Runs], float | None]:
    def found(runs: Runs) -> float | None:
        run = _one(runs, "disk", memory="512MiB")
        return field(run) if run else None

    return found


_WIDE, _NARROW = simulated_name(1_000_000, 40, 1000), simulated_name(1_000_000, 5, 1000)
GOALS = (
    Goal("exponent of fit time in rows, memory for all", 1.05, True, _exponent("all")),
    Goal("exponent of fit time in rows, 256 MiB", 1.05, True, _exponent("256MiB")),
    Goal("MiB beyond the memory budget, at most", 200, True, _most_beyond_budget),
    Goal("largest / smallest peak over rows at 256 MiB", 1.2, True, _spread_of_peak),
    Goal("fit / LightGBM's, 1M x 40", 0.4, True, _peer_ratio(_WIDE, "rankrc", "lightgbm")),
    Goal("fit seconds, 1M x 5", 8, True, _peer_field(_NARROW, "rankrc", lambda r: r["seconds"])),
    Goal("chosen on a part / the best LightGBM, AUC, 1M x 40", 1, False, _best_ratio("auc")),
    Goal(
        "chosen on a part / the best LightGBM, average precision, 1M x 40",
        1,
        False,
        _best_ratio("average_precision"),
    ),
    Goal("chosen on a part / the best LightGBM, seconds, 1M x 40", 1, True, _best_ratio("seconds")),
    Goal(
        "AUC with them / Nystroem + SGD's",
        1,
        False,
        _peer_ratio(_WIDE, "rankrc_part", "nystroem_sgd", "auc"),
    ),
    Goal(
        "average precision with them / XGBoost's",
        1,
        False,
        _peer_ratio(_WIDE, "rankrc_part", "xgboost", "average_precision"),
    ),
    Goal(
        "fit seconds, 50,000 rare rows of 1M x 40, 2,000 landmarks",
        60,
        True,
        lambda runs: (
            found["seconds"] if (found := _one(runs, "scale", series="many_rare")) else None
        ),
    ),
    Goal("16 lams / LightGBM, 1M x 40", 2.5, True, _peer_ratio(_WIDE, "rankrc_path", "lightgbm")),
    Goal("16 lams / LightGBM, 1M x 5", 5, True, _peer_ratio(_NARROW, "rankrc_path", "lightgbm")),
    Goal(
        "passes for each lam, 1M x 40",
        10,
        True,
        _peer_field(_WIDE, "rankrc_path", lambda run: run["details"]["passes"] / PATH_LAMS),
    ),
    Goal(
        "passes for each lam, 1M x 5",
        10,
        True,
        _peer_field(_NARROW, "rankrc_path", lambda run: run["details"]["passes"] / PATH_LAMS),
    ),
    Goal("fit with 256 MiB / memory for all, 1M x 40", 3, True, _uncached("fit")),
    Goal("16 lams with 256 MiB / memory for all, 1M x 40", 3, True, _uncached("path")),
    Goal("LIBSVM / fit at 150,000 x 5, 1 % rare", 50, False, _libsvm_at(150_000)),
    Goal(
        "LIBSVM / fit with lam = 1 / rows, KDD Cup 99 at 50,000",
        5,
        False,
        _peer_ratio("kdd-50000", "libsvm", "rankrc_matched"),
    ),
    Goal(
        "AUC / LIBSVM's there",
        1,
        False,
        _peer_ratio("kdd-50000", "rankrc_matched", "libsvm", "auc"),
    ),
    Goal(
        "LIBSVM / fit with lam = 2^-20, KDD Cup 99 at 50,000",
        5,
        False,
        _peer_ratio("kdd-50000", "libsvm", "rankrc_least"),
    ),
    Goal(
        "AUC / LIBSVM's there, lam = 2^-20",
        1,
        False,
        _peer_ratio("kdd-50000", "rankrc_least", "libsvm", "auc"),
    ),
    Goal(
        "LIBSVM / fit with width and lam chosen on a part, KDD Cup 99 at 50,000",
        5,
        False,
        _peer_ratio("kdd-50000", "libsvm", "rankrc_part"),
    ),
    Goal(
        "AUC / LIBSVM's there, chosen on a part",
        1,
        False,
        _peer_ratio("kdd-50000", "rankrc_part", "libsvm", "auc"),
    ),
    Goal(
        "rows scored a second, 1,000 landmarks, 1M x 40",
        1e6,
        False,
        _peer_field(_WIDE, "rankrc", lambda run: run["score_rows"] / run["score_seconds"]),
    ),
    Goal(
        "peak MiB of the process, 5M x 50 from Parquet",
        2048,
        True,
        _disk(lambda run: run["peak_bytes"] / MIB),
    ),
    Goal(
        "fit on 2 workers of Dask / in memory by 2 threads, 4M x 40",
        1.3,
        True,
        lambda runs: _ratio(
            runs,
            "distributed",
            {"what": "fit", "place": "dask, 2 workers", "rows": 4_000_000},
            {"what": "fit", "place": "memory, 2 threads", "rows": 4_000_000},
            "seconds",
        ),
    ),
)
