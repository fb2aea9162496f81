"""What the benchmarks are meant to reach, beside what they measured."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import growth, peer_table
from benchmarks.data_sets import simulated_name
from benchmarks.ledger import Run, summaries
from benchmarks.simulated_fits import kernel_bytes

Runs = Mapping[str, list[Run]]
Figure = Callable[[Runs], float | None]  # None where it was not measured
MIB = 2**20
PATH_LAMS = 16
WIDE, NARROW = simulated_name(1_000_000, 40, 1000), simulated_name(1_000_000, 5, 1000)
KDD = "kdd-50000"


def lines(runs: Runs) -> list[list[str]]:
    """Goal, bound, measured, reached: one line for each goal that was measured."""
    found = []
    for text, (sign, bound), figure in GOALS:
        value = figure(runs)
        if value is not None:
            reached = value <= bound if sign == "<=" else value >= bound
            verdict = "yes" if reached else "**no**"
            found.append([text, f"{sign} {bound:,g}", f"{value:,.3g}", verdict])
    return found


def _done(runs: Runs, benchmark: str, **about: Any) -> list[Run]:
    """The finished cells of a benchmark that have these values."""
    return [
        run
        for run in summaries(runs.get(benchmark, []))
        if run["status"] == "ok" and all(run.get(k) == v for k, v in about.items())
    ]


def _of(benchmark: str, field: str | Callable[[Run], float], **about: Any) -> Figure:
    """A figure of one cell."""

    def found(runs: Runs) -> float | None:
        done = _done(runs, benchmark, **about)
        return None if not done else done[0][field] if isinstance(field, str) else field(done[0])

    return found


def _ratio(top: Figure, bottom: Figure) -> Figure:
    def found(runs: Runs) -> float | None:
        above, below = top(runs), bottom(runs)
        return None if above is None or below is None else above / below

    return found


def _peers(data: str, top: str, bottom: str, field: str = "seconds") -> Figure:
    """A method over another one on the same data."""
    return _ratio(*(_of("peers", field, data=data, method=method) for method in (top, bottom)))


def _boosters(field: str) -> Figure:
    """RankRCCV, chosen on a part, over LightGBM at its best setting, both by average precision."""

    def found(runs: Runs) -> float | None:
        own = summaries(runs.get("boosters", []))
        ours = peer_table.best(own, WIDE, ("rankrc_part",))
        peer = peer_table.best(own, WIDE, peer_table.LIGHTGBM)
        return ours[field] / peer[field] if ours and peer else None

    return found


def _uncached(what: str) -> Figure:
    """Seconds with 256 MiB over those with memory for all."""
    kind = {"series": "fixed", "what": what, "rows": 1_000_000}
    return _ratio(*(_of("scale", "seconds", **kind, memory=m) for m in ("256MiB", "all")))


def _exponent(memory: str) -> Figure:
    def found(runs: Runs) -> float | None:
        own = _done(runs, "scale", series="fixed", what="fit", memory=memory)
        return growth.exponent([run["rows"] for run in own], [run["seconds"] for run in own])

    return found


def _most_beyond_budget(runs: Runs) -> float | None:
    bounded = [run for run in _done(runs, "scale") if run["memory"] != "all"]
    beyond = [(run["peak_beyond_input"] - run["budget"]) / MIB for run in bounded]
    return max(beyond, default=None)


def _spread_of_peak(runs: Runs) -> float | None:
    peaks = [
        run["peak_beyond_input"]
        for run in _done(runs, "scale", series="fixed", what="fit", memory="256MiB")
        if run["budget"] < kernel_bytes(run["rows"], run["details"]["landmarks"])
    ]
    return max(peaks) / min(peaks) if len(peaks) > 1 else None


def _libsvm(runs: Runs) -> float | None:
    found = peer_table.libsvm_growth(summaries(runs.get("peers", [])))
    return next((one["ratio"] for one in found if one["rows"] == 150_000), None)


def _passes(data: str) -> Figure:
    return _of(
        "peers",
        lambda run: run["details"]["passes"] / PATH_LAMS,
        data=data,
        method="rankrc_path",
    )


# Text, bound, figure.
GOALS: tuple[tuple[str, tuple[str, float], Figure], ...] = (
    ("exponent of fit time in rows, memory for all", ("<=", 1.05), _exponent("all")),
    ("exponent of fit time in rows, 256 MiB", ("<=", 1.05), _exponent("256MiB")),
    ("MiB beyond the memory budget, at most", ("<=", 200), _most_beyond_budget),
    ("largest / smallest peak over rows at 256 MiB", ("<=", 1.2), _spread_of_peak),
    ("fit / LightGBM's, 1M x 40", ("<=", 0.4), _peers(WIDE, "rankrc", "lightgbm")),
    ("fit seconds, 1M x 5", ("<=", 8), _of("peers", "seconds", data=NARROW, method="rankrc")),
    ("chosen on a part / the best LightGBM, AUC, 1M x 40", (">=", 1), _boosters("auc")),
    (
        "chosen on a part / the best LightGBM, average precision, 1M x 40",
        (">=", 1),
        _boosters("average_precision"),
    ),
    ("chosen on a part / the best LightGBM, seconds, 1M x 40", ("<=", 1), _boosters("seconds")),
    (
        "AUC with them / Nystroem + SGD's",
        (">=", 1),
        _peers(WIDE, "rankrc_part", "nystroem_sgd", "auc"),
    ),
    (
        "average precision with them / XGBoost's",
        (">=", 1),
        _peers(WIDE, "rankrc_part", "xgboost", "average_precision"),
    ),
    (
        "fit seconds, 50,000 rare rows of 1M x 40, 2,000 landmarks",
        ("<=", 60),
        _of("scale", "seconds", series="many_rare"),
    ),
    ("16 lams / LightGBM, 1M x 40", ("<=", 2.5), _peers(WIDE, "rankrc_path", "lightgbm")),
    ("16 lams / LightGBM, 1M x 5", ("<=", 5), _peers(NARROW, "rankrc_path", "lightgbm")),
    ("passes for each lam, 1M x 40", ("<=", 10), _passes(WIDE)),
    ("passes for each lam, 1M x 5", ("<=", 10), _passes(NARROW)),
    ("fit with 256 MiB / memory for all, 1M x 40", ("<=", 3), _uncached("fit")),
    ("16 lams with 256 MiB / memory for all, 1M x 40", ("<=", 3), _uncached("path")),
    ("LIBSVM / fit at 150,000 x 5, 1 % rare", (">=", 50), _libsvm),
    (
        "LIBSVM / fit with lam = 1 / rows, KDD Cup 99 at 50,000",
        (">=", 5),
        _peers(KDD, "libsvm", "rankrc_matched"),
    ),
    ("AUC / LIBSVM's there", (">=", 1), _peers(KDD, "rankrc_matched", "libsvm", "auc")),
    (
        "LIBSVM / fit with lam = 2^-20, KDD Cup 99 at 50,000",
        (">=", 5),
        _peers(KDD, "libsvm", "rankrc_least"),
    ),
    (
        "AUC / LIBSVM's there, lam = 2^-20",
        (">=", 1),
        _peers(KDD, "rankrc_least", "libsvm", "auc"),
    ),
    (
        "LIBSVM / fit with width and lam chosen on a part, KDD Cup 99 at 50,000",
        (">=", 5),
        _peers(KDD, "libsvm", "rankrc_part"),
    ),
    (
        "AUC / LIBSVM's there, chosen on a part",
        (">=", 1),
        _peers(KDD, "rankrc_part", "libsvm", "auc"),
    ),
    (
        "rows scored a second, 1,000 landmarks, 1M x 40",
        (">=", 1e6),
        _of("peers", lambda run: run["score_rows"] / run["score_seconds"], data=WIDE,
            method="rankrc"),
    ),
)  # fmt: skip
