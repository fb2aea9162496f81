"""Pages on time and memory."""

from collections.abc import Callable
from typing import Any

from benchmarks import disk, distributed, goals, peer_table, scale, serving
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Page, Result, quality
from benchmarks.peers import TITLES
from benchmarks.run import DISTURBED

WIDE, KDD_PART = "simulated-1000000x40-1000", "kdd-50000"
HUNDRED_THOUSAND = "simulated-100000x5-1000-test40000"
OF_GOALS = ("scale", "peers", "disk", "distributed", "boosters")


def row_rates(result: Result) -> str:
    """Rows a second by columns and threads."""
    rows = [
        [
            str(row["columns"]),
            str(row["threads"]),
            f"{row['rows_per_second']:,.0f}",
            f"{row['processor_us_per_row']:.1f}",
            ", ".join(row["members"]),
        ]
        for row in result["rows"]
    ]
    header = ["columns", "threads", "rows a second", "processor time a row, us", "members, weight"]
    return table(header, rows)


def row_rates_finding(result: Result) -> Finding:
    """Return the rate for 20 columns in two threads."""
    rate = {(row["columns"], row["threads"]): row["rows_per_second"] for row in result["rows"]}
    return Finding(
        "Rows a second that a fitted `RareClassifier` scores from Python, 20 columns, two threads",
        f"{rate[20, 2]:,.0f}; in one thread {rate[20, 1]:,.0f}",
        "goal 200,000",
    )


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


def of_runs(render: Callable[[list[Run]], str], about: str = "") -> Callable[[Result], str]:
    """Return the page of a benchmark whose runs `render` shows, after how they were run."""
    words = f" {about}" if about else ""
    return lambda result: f"{disturbed(result)}{words}\n\n{render(result['runs'])}"


def one(result: Result, **about: Any) -> Run:
    """The finished cell that has these values."""
    return next(
        run
        for run in summaries(result["runs"])
        if run["status"] == "ok" and all(run.get(k) == v for k, v in about.items())
    )


def goals_page(results: Result) -> str:
    """The goals of speed and size, each beside what was measured."""
    lines = goals.lines({name: result["runs"] for name, result in results.items()})
    return table(["what", "goal", "measured", "reached"], lines)


def goals_finding(results: Result) -> Finding:
    """Return how many goals are reached."""
    lines = goals.lines({name: result["runs"] for name, result in results.items()})
    return Finding(
        "Goals of speed and size that are reached",
        f"{sum(line[-1] == 'yes' for line in lines)} of {len(lines)}",
    )


def scale_finding(result: Result) -> Finding:
    """Return the time and memory of four million rows."""
    most = one(result, series="fixed", what="fit", memory="256MiB", rows=4_000_000)
    least = one(result, series="fixed", what="fit", memory="256MiB", rows=1_000_000)
    return Finding(
        'One fit of RankRC with 1,000 rare rows, 40 columns, `memory="256MiB"`',
        f"{most['rows']:,} rows in {most['seconds']:.1f} s and "
        f"{most['peak_beyond_input'] / 2**20:,.0f} MiB beyond the rows",
        f"1,000,000 rows in {least['seconds']:.1f} s",
    )


def scale_chart(result: Result) -> Any:
    """Draw seconds by rows, on logarithmic axes."""
    done = [run for run in summaries(result["runs"]) if run["status"] == "ok"]
    panel: dict[str, tuple[list[float], list[float]]] = {}
    for run in sorted(done, key=lambda run: run["rows"]):
        if run["series"] == "fixed" and run["what"] != "folds":
            what = "one fit" if run["what"] == "fit" else "16 lams"
            x, y = panel.setdefault(f"{what}, memory {run['memory']}", ([], []))
            x.append(run["rows"])
            y.append(run["seconds"])
    return charts.lines({"": panel}, "rows", "seconds", log_x=10, log_y=True)


def peers_finding(result: Result) -> Finding:
    """Return time, AUC and average precision on a million generated rows."""

    def shown(method: str) -> str:
        run = one(result, data=WIDE, method=method)
        return f"{run['seconds']:.1f} s ({quality(run)})"

    return Finding(
        "A fit on 1,000,000 x 40 generated rows, 1,000 rare",
        f"RankRC, one lam, {shown('rankrc')}",
        f"LightGBM's defaults {shown('lightgbm')}, XGBoost's {shown('xgboost')}, Nyström map with "
        f"SGD {shown('nystroem_sgd')}",
    )


def libsvm_finding(result: Result) -> Finding:
    """Return the time of RankRC and of LIBSVM with the same kernel."""
    ours, libsvm = (
        one(result, data=HUNDRED_THOUSAND, method=method) for method in ("rankrc", "libsvm")
    )
    return Finding(
        "A fit with the Gaussian kernel on 100,000 x 5 rows",
        f"RankRC {ours['seconds']:.1f} s, AUC {ours['auc']:.3f}",
        f"LIBSVM {libsvm['seconds']:.0f} s, AUC {libsvm['auc']:.3f}",
    )


def libsvm_page(result: Result) -> str:
    """LIBSVM's growth, and real rows on which it finishes."""
    lines = [run for run in summaries(result["runs"]) if run["status"] == "ok"]
    rows = [
        [
            run["data"].removesuffix("-50000"),
            TITLES[run["method"]],
            f"{run['seconds']:.2f}",
            f"{run['auc']:.3f}",
            f"{run['average_precision']:.3f}",
        ]
        for run in lines
        if run["data"].endswith("-50000") and run["method"] in peer_table.BESIDE_LIBSVM
    ]
    growth = "\n\n".join(peer_table.libsvm_growth_table(summaries(result["runs"])))
    header = ["50,000 rows of", "method", "fit s", "AUC", "average precision"]
    return f"{disturbed(result)}\n\n{growth}\n\n{table(header, rows)}"


def libsvm_chart(result: Result) -> Any:
    """Draw seconds by rows; what was extrapolated is in."""
    found = peer_table.libsvm_growth(summaries(result["runs"]))
    panel = {
        name: ([f["rows"] for f in found if f[key]], [f[key] for f in found if f[key]])
        for name, key in (("LIBSVM (the last extrapolated)", "libsvm"), ("RankRC", "rankrc"))
    }
    return charts.lines({"": panel}, "rows", "seconds", log_x=10, log_y=True)


def disk_finding(result: Result) -> Finding:
    """Return seconds and peak of the process."""
    run = one(result, memory="512MiB")
    return Finding(
        'A fit on 5,000,000 x 50 rows of Parquet with `memory="512MiB"`',
        f"{run['seconds']:.0f} s, the whole process never above {run['peak_bytes'] / 2**20:,.0f} "
        "MiB",
        f"the file has {run['file_bytes'] / 1e6:,.0f} MB",
    )


def distributed_finding(result: Result) -> Finding:
    """Return the same fit in memory and on two workers."""
    memory, dask = (
        one(result, what="fit", rows=4_000_000, place=place)["seconds"]
        for place in ("memory, 2 threads", "dask, 2 workers")
    )
    return Finding(
        "One fit of RankRC on 4,000,000 x 40 rows, two cores",
        f"on two workers of Dask {dask:.1f} s",
        f"in memory {memory:.1f} s",
    )


def serving_finding(result: Result) -> Finding:
    """Return latencies of single rows."""

    def shown(model: str) -> str:
        ms = one(result, what="single rows", model=model)["milliseconds"]
        return f"{ms['p50']:.1f} ms in the median, {ms['p99']:.0f} ms at the 99th percentile"

    return Finding(
        "An answer of `rareclass serve` at 500 single rows a second",
        f"RareClassifier {shown('auto')}; RankRC {shown('rankrc')}",
        f"LightGBM behind the same service {shown('lightgbm')}",
    )


def serving_chart(result: Result) -> Any:
    """Draw latencies of single rows."""
    runs = [run for run in summaries(result["runs"]) if run["what"] == "single rows"]
    names = {"rankrc": "RankRC", "auto": "RareClassifier", "lightgbm": "LightGBM"}
    series = {q: [run["milliseconds"][q] for run in runs] for q in ("p50", "p90", "p99")}
    return charts.bars([names[run["model"]] for run in runs], series, "ms until the answer")


PAGES = {
    "goals": Page(
        "Goals of speed and size",
        "speed",
        "pages",
        "Figures of the other pages on speed and size are compared with the goals that the project "
        "has set itself.",
        goals_finding,
        goals_page,
        sources=OF_GOALS,
    ),
    "scale": Page(
        "Growth with rows",
        "speed",
        "run scale",
        "Time and memory of RankRC are measured from 125,000 to 4,000,000 rows, with room for the "
        "whole kernel and with less.",
        scale_finding,
        of_runs(scale.render),
        scale_chart,
        is_headline=True,
    ),
    "peers": Page(
        "RankRC beside other libraries",
        "speed",
        "run peers",
        "RankRC is compared with LightGBM, XGBoost, a linear SVM, a Nyström map with SGD and a "
        "balanced forest on the same standardised rows, all with the same threads.",
        peers_finding,
        of_runs(peer_table.render),
        is_headline=True,
    ),
    "libsvm": Page(
        "RankRC beside an SVM with the same kernel",
        "speed",
        "run peers --methods rankrc rankrc_matched rankrc_least rankrc_part lightgbm libsvm",
        "RankRC is compared with LIBSVM, an SVM with the same kernel and balanced weights, on rows "
        "of growing number and on 50,000 rows of real sets.",
        libsvm_finding,
        libsvm_page,
        libsvm_chart,
        sources=("peers",),
        is_headline=True,
    ),
    "disk": Page(
        "From Parquet, in bounded memory",
        "speed",
        "run disk",
        "RankRC.fit_rows learns a Parquet file that is larger than the memory it is given.",
        disk_finding,
        of_runs(disk.render),
        is_headline=True,
    ),
    "distributed": Page(
        "On workers of Dask",
        "speed",
        "run distributed",
        "The same fits and moments are computed in memory and on workers of Dask.",
        distributed_finding,
        of_runs(distributed.render),
        is_headline=True,
    ),
    "serving": Page(
        "Answers over HTTP",
        "speed",
        "run serving",
        "RareClassifier and RankRC behind `rareclass serve` are compared with LightGBM behind the "
        "same service, for single rows and for batches.",
        serving_finding,
        of_runs(serving.render),
        serving_chart,
        is_headline=True,
    ),
    "row_rates": Page(
        "Rows a second that a combined model scores",
        "speed",
        "row_rates",
        "A `RareClassifier` that was fitted on 20,000 made rows scores 200,000 new ones from "
        "Python, with 6, 20 and 40 columns, in one thread and in two.",
        row_rates_finding,
        row_rates,
    ),
}
