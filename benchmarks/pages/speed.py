"""Pages on time and memory."""

from collections.abc import Callable
from typing import Any

from benchmarks import peer_table, scale, serving
from benchmarks.ledger import Run, summaries
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Result, chosen, listed, page, quality
from benchmarks.peers import TITLES
from benchmarks.run import DISTURBED

WIDE, KDD_PART = "simulated-1000000x40-1000", "kdd-50000"
HUNDRED_THOUSAND = "simulated-100000x5-1000-test40000"


def disturbed(result: Result) -> str:
    """How fits were run, and in how many runs other programs were busy."""
    others = [run.get("cores_of_others") or 0.0 for run in result["runs"]]
    threads = sorted({run["threads"] for run in result["runs"] if "threads" in run})
    used = f"Threads: {', '.join(map(str, threads))}. " if threads else ""
    return (
        "Each fit has its own process, and methods take turns. Seconds are of the fit alone, after "
        "a tiny fit that loads and compiles the code. The speed of the machine varies from day to "
        f"day: compare figures of one page only. {used}Other programs kept more than {DISTURBED} "
        f"cores busy in {sum(one > DISTURBED for one in others)} of {len(others)} runs."
    )


def of_runs(render: Callable[[list[Run]], str]) -> Callable[[Result], str]:
    """Return the page of a benchmark whose runs `render` shows, after how they were run."""
    return lambda result: f"{disturbed(result)}\n\n{render(result['runs'])}"


def one(result: Result, **about: Any) -> Run:
    """The finished cell that has these values."""
    return chosen(summaries(result["runs"]), status="ok", **about)[0]


def _scale_chart(result: Result) -> Any:
    panel: dict[str, tuple[list[float], list[float]]] = {}
    done = chosen(summaries(result["runs"]), status="ok", series="fixed")
    for run in sorted(done, key=lambda run: run["rows"]):
        if run["what"] != "folds":
            what = "one fit" if run["what"] == "fit" else "16 lams"
            x, y = panel.setdefault(f"{what}, memory {run['memory']}", ([], []))
            x.append(run["rows"])
            y.append(run["seconds"])
    return charts.lines({"": panel}, "rows", "seconds", log_x=10, log_y=True)


@page(
    "scale",
    "Growth with rows",
    "speed",
    "run scale",
    "Time and memory of RankRC are measured from 125,000 to 4,000,000 rows, with room for the "
    "whole kernel and with less.",
    of_runs(scale.render),
    _scale_chart,
    is_headline=True,
)
def _scale(result: Result) -> Finding:
    about = {"series": "fixed", "what": "fit", "memory": "256MiB"}
    most, least = (one(result, rows=rows, **about) for rows in (4_000_000, 1_000_000))
    return Finding(
        'One fit of RankRC with 1,000 rare rows, 40 columns, `memory="256MiB"`',
        f"{most['rows']:,} rows in {most['seconds']:.1f} s and "
        f"{most['peak_beyond_input'] / 2**20:,.0f} MiB beyond the rows",
        f"1,000,000 rows in {least['seconds']:.1f} s",
    )


@page(
    "peers",
    "RankRC beside other libraries",
    "speed",
    "run peers",
    "RankRC is compared with LightGBM, XGBoost, a linear SVM, a Nyström map with SGD and a "
    "balanced forest on the same standardised rows, all with the same threads.",
    of_runs(peer_table.render),
    is_headline=True,
)
def _peers(result: Result) -> Finding:
    def shown(method: str) -> str:
        run = one(result, data=WIDE, method=method)
        return f"{run['seconds']:.1f} s ({quality(run)})"

    return Finding(
        "A fit on 1,000,000 x 40 generated rows, 1,000 rare",
        f"RankRC, one lam, {shown('rankrc')}",
        f"LightGBM's defaults {shown('lightgbm')}, XGBoost's {shown('xgboost')}, Nyström map with "
        f"SGD {shown('nystroem_sgd')}",
    )


def _libsvm_body(result: Result) -> str:
    """LIBSVM's growth, and real rows on which it finishes."""
    runs = summaries(result["runs"])
    real = [
        run | {"title": TITLES[run["method"]], "rows_of": run["data"].removesuffix("-50000")}
        for run in chosen(runs, status="ok")
        if run["data"].endswith("-50000") and run["method"] in peer_table.BESIDE_LIBSVM
    ]
    columns = {
        "50,000 rows of": "{rows_of}",
        "method": "{title}",
        "fit s": "{seconds:.2f}",
        "AUC": "{auc:.3f}",
        "average precision": "{average_precision:.3f}",
    }
    return "\n\n".join(
        [disturbed(result), *peer_table.libsvm_growth_table(runs), listed(real, columns)]
    )


def _libsvm_chart(result: Result) -> Any:
    """Draw seconds by rows, as far as each finished."""
    found = peer_table.libsvm_growth(summaries(result["runs"]))
    panel = {}
    for name, key in (("LIBSVM", "libsvm"), ("RankRC", "rankrc")):
        own = {rows: seconds[key] for rows, seconds in found.items() if key in seconds}
        panel[name] = [*own], [*own.values()]
    return charts.lines({"": panel}, "rows", "seconds", log_x=10, log_y=True)


@page(
    "libsvm",
    "RankRC beside an SVM with the same kernel",
    "speed",
    "run peers --methods rankrc rankrc_matched rankrc_least rankrc_part lightgbm libsvm",
    "RankRC is compared with LIBSVM, an SVM with the same kernel and balanced weights, on rows of "
    "growing number and on 50,000 rows of real sets.",
    _libsvm_body,
    _libsvm_chart,
    sources=("peers",),
    is_headline=True,
)
def _libsvm(result: Result) -> Finding:
    ours, libsvm = (
        one(result, data=HUNDRED_THOUSAND, method=method) for method in ("rankrc", "libsvm")
    )
    return Finding(
        "A fit with the Gaussian kernel on 100,000 x 5 rows",
        f"RankRC {ours['seconds']:.1f} s, AUC {ours['auc']:.3f}",
        f"LIBSVM {libsvm['seconds']:.0f} s, AUC {libsvm['auc']:.3f}",
    )


def _serving_chart(result: Result) -> Any:
    runs = chosen(summaries(result["runs"]), what="single rows")
    names = {"rankrc": "RankRC", "auto": "RareClassifier", "lightgbm": "LightGBM"}
    series = {q: [run["milliseconds"][q] for run in runs] for q in ("p50", "p90", "p99")}
    return charts.bars([names[run["model"]] for run in runs], series, "ms until the answer")


@page(
    "serving",
    "Answers over HTTP",
    "speed",
    "run serving",
    "RareClassifier and RankRC behind `rareclass serve` are compared with LightGBM behind the same "
    "service, for single rows and for batches.",
    of_runs(serving.render),
    _serving_chart,
    is_headline=True,
)
def _serving(result: Result) -> Finding:
    def shown(model: str) -> str:
        ms = one(result, what="single rows", model=model)["milliseconds"]
        return f"{ms['p50']:.1f} ms in the median, {ms['p99']:.0f} ms at the 99th percentile"

    return Finding(
        "An answer of `rareclass serve` at 500 single rows a second",
        f"RareClassifier {shown('auto')}; RankRC {shown('rankrc')}",
        f"LightGBM behind the same service {shown('lightgbm')}",
    )
