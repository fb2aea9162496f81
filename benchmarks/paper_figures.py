"""Named figures of the five papers' experiments, for the pages on the papers and on the methods.

`benchmarks.figures` fills them in. Each function returns a figure in words; a method, a set or a
measure that its name ends with comes before the results.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks import mibc_real_speed, mibc_speed
from benchmarks.ordinal import page as ordinal_page
from benchmarks.ordinal.figures import Line
from benchmarks.pages import few_labels, mibc, rankrc, streams
from benchmarks.pages.page import Results, chosen
from benchmarks.paper_tables import (
    cbr_figures,
    cbr_tables,
    mibc_figures,
    mibc_roc,
    rach_figures,
    real_cells,
    table2,
)
from benchmarks.paper_tables.mibc_methods import CS
from benchmarks.paper_tables.rach_methods import PERF

Figure = Callable[[Results], str]


def _cells2(results: Results, method: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """RankRC and a method in each cell of the simulated data."""
    return [(c["methods"]["RankRC"], c["methods"][method]) for c in results["table2"]["cells"]]


def _reached(results: Results) -> str:
    cells = results["table2"]["cells"]
    return f"{sum(cell['reached'] for cell in cells)} of {len(cells)} cells"


def _apart(method: str, results: Results) -> str:
    """Greatest distance of a method's mean AUC from RankRC's."""
    pairs = _cells2(results, method)
    return f"{max(abs(ours['mean'] - other['mean']) for ours, other in pairs):.1f} points"


def _lead_of_table2(method: str, results: Results) -> str:
    """RankRC minus a method over the cells, and the cells in which it is above."""
    pairs = _cells2(results, method)
    above = sum(ours["mean"] > other["mean"] for ours, other in pairs)
    test = table2.leads(results["table2"]["cells"])[method]
    return f"in {above} of {len(pairs)} cells, {test.words(decimals=2)}"


def _above_printed(method: str, results: Results) -> str:
    """Range of a method's mean AUC minus the paper's."""
    gains = [own["mean"] - own["paper"][0] for _, own in _cells2(results, method)]
    return f"{min(gains):.1f} to {max(gains):.1f} points"


def _below_paper(results: Results) -> str:
    cells = real_cells.cells_of(results["table4"]["runs"])
    return f"{len(real_cells.significantly_below_paper(cells))} of {len(cells)} sets"


def _lead_of_table4(method: str, results: Results) -> str:
    """RankRC minus a method over the real sets, and the sets on which it is above."""
    cells = real_cells.cells_of(results["table4"]["runs"])
    tests = [row[method].ahead for row in cells.values() if method in row]
    known = [test for test in tests if test is not None]
    above = sum(test.difference > 0.0 for test in known)
    significant = real_cells.counts(cells, method)["above"]
    return (
        f"{real_cells.over_sets(cells)[method].words()}, above on {above} of {len(known)} sets, "
        f"significantly on {significant}"
    )


def _precision_of_table4(method: str, results: Results) -> str:
    """RankRC minus a method in average precision over the real sets."""
    cells = real_cells.cells_of(results["table4"]["runs"], "ap")
    n_sets = len(real_cells.sets_with_both(cells, method))
    return f"{real_cells.over_sets(cells)[method].words()}, {n_sets} sets"


def _near_printed(method: str, results: Results) -> str:
    """Sets on which a method is within two combined standard errors of the paper's KNN."""
    cells = real_cells.cells_of(results["table4"]["runs"])
    distances = [row[method].z for row in cells.values() if method in row]
    known = [abs(z) for z in distances if z is not None]
    return f"{sum(z <= 2.0 for z in known)} of {len(known)} sets"


def _fewer(method: str, results: Results) -> str:
    """Sets on which a method has fewer kernel functions than RankRC."""
    cells = real_cells.cells_of(results["table4"]["runs"])
    both = [row for row in cells.values() if method in row]
    fewer = sum(row[method].mean("size") < row["RankRC"].mean("size") for row in both)
    return f"{fewer} of {len(both)} sets"


def _all_rows(results: Results) -> str:
    """AUC on KDD Cup 99 with all training rows."""
    methods = ("RankRC", "RANK-RND", "SVM-RUS", "SVM")
    return ", ".join(
        f"{name} {rankrc.of_part(results['fig6'], name, 100.0, 'auc'):.1f} %" for name in methods
    )


def _cost_of_part(percent: float, results: Results) -> str:
    """Seconds of a fit and kernel functions on a part of KDD Cup 99."""
    of = partial(rankrc.of_part, results["fig6"], percent=percent)
    done = {run["method"] for run in chosen(results["fig6"]["runs"], status="ok", percent=percent)}
    return "; ".join(
        f"{m} {of(m, key='fit_seconds'):.2g} s, {of(m, key='landmarks'):,.0f}" for m in sorted(done)
    )


def _ordered(power: str, results: Results) -> str:
    """Points of Figure 3 at which bound (31) is below bound (46)."""
    below = []
    for one in results["fig3"]["sets"]:
        bound = dict(zip(one["subset"]["landmarks"], one["subset"]["bound"], strict=True))
        below += [bound[p["landmarks"]] < p[power]["mean"] for p in one["perturbation"]]
    return f"{sum(below)} of {len(below)} points"


def _days(results: Results, method: str, percent: float) -> Line:
    lines = ordinal_page.lines_of(results["ordinal"]["sets"]["days"], percent)
    return next(line for line in lines if line.method == method)


def _days_against(method: str, percent: float, results: Results) -> str:
    """A method minus OrdinalRankRC on a part of the generated days."""
    test = _days(results, method, percent).against
    assert test is not None
    return test.words("points of MAUC", 2)


def _small_sets(method: str, results: Results) -> str:
    """Sets of splits on which a method is behind OrdinalRankRC, level with it and ahead."""
    sets = {name: each for name, each in results["ordinal"]["sets"].items() if name != "days"}
    lines = [line for each in sets.values() for line in ordinal_page.lines_of(each, None)]
    tests = [line.against for line in lines if line.method == method and line.against is not None]
    words = {"below": "significantly behind", "level": "level", "above": "significantly ahead"}
    counts = {verdict: sum(test.verdict() == verdict for test in tests) for verdict in words}
    named = ", ".join(f"{words[verdict]} on {n}" for verdict, n in counts.items() if n)
    return f"{named} of {len(tests)}"


def _random_ahead(results: Results) -> str:
    """Parts of KDD Cup 99 on which random landmarks have the higher mean AUC, and the seeds."""
    runs = [run for run in results["fig6"]["runs"] if run["method"] == "RankRC"]
    shares = sorted({run["percent"] for run in runs})
    auc = partial(rankrc.of_part, results["fig6"], key="auc")
    ahead = [s for s in shares if auc("RANK-RND", s) > auc("RankRC", s)]
    shown = ", ".join(f"{share:g}" for share in ahead)
    return f"{shown} % of the rows (mean of {len(runs) // len(shares)} seeds, not tested)"


def _fig6_stopped(results: Results) -> str:
    """The least part of KDD Cup 99 on which SVM-W was stopped, and after how long."""
    runs = [run for run in results["fig6"]["runs"] if run["status"] == "stopped"]
    least = min(run["percent"] for run in runs)
    seeds = len({run["repeat"] for run in runs if run["percent"] == least})
    limit = results["fig6"]["parameters"]["limit"]
    return f"{limit:.0f} s on {least:g} % of the rows ({seeds} seed{'s'[: seeds > 1]})"


# The paper's methods at each percent of the generated days.
_DAYS = {
    5: ("ordinal RankSVM", "RANK-RND", "KNN", "SVR"),
    10: ("ordinal RankSVM", "RANK-RND", "KNN", "SVR"),
    25: ("RANK-RND", "KNN"),
}


def _days_means(percent: float, results: Results) -> str:
    methods = ("OrdinalRankRC", "ridge", "LightGBM regression")
    return ", ".join(f"{name} {_days(results, name, percent).mauc[0]:.1f} %" for name in methods)


def _days_cost(results: Results) -> str:
    """Seconds with the choice of lam, and kernel functions, on the smallest part of the days."""
    methods = ("OrdinalRankRC", "RANK-RND", "SVR", "ordinal RankSVM")
    return "; ".join(
        f"{name} {one.choice_seconds + one.fit_seconds:.0f} s, {one.size:,.0f}"
        for name, one in zip(methods, (_days(results, m, 5.0) for m in methods), strict=True)
    )


def _days_volume(results: Results) -> str:
    """MAUC and VUS of nearest neighbours and of OrdinalRankRC, and where VUS prefers the former."""
    lines = [_days(results, name, 5.0) for name in ("KNN", "OrdinalRankRC")]
    named = zip(("nearest neighbours", "OrdinalRankRC"), lines, strict=True)
    words = [f"{name} MAUC {one.mauc[0]:.1f} % and VUS {one.vus:.2g}" for name, one in named]
    vus: dict[int, dict[str, float]] = {}
    for fit in results["ordinal"]["sets"]["days"]["fits"]:
        if fit["percent"] == 5.0:
            vus.setdefault(fit["split"], {})[fit["method"]] = fit["vus"]
    preferred = sum(of_split["KNN"] > of_split["OrdinalRankRC"] for of_split in vus.values())
    of_splits = f"VUS is greater for nearest neighbours in {preferred} of {len(vus)} splits"
    return f"{', '.join(words)}; {of_splits}"


def _of_cbr(results: Results, study: str, measure: str) -> cbr_figures.Cells:
    fits = cbr_figures.best(results[f"cbr_{study}"]["fits"], cbr_tables.SCALING)
    return cbr_figures.cells(fits, study, measure)


def _cbr_distance(measure: str, results: Results) -> str:
    return f"{cbr_figures.distance(_of_cbr(results, 'benchmark', measure)):.3f}"


def _cbr_order(measure: str, results: Results) -> str:
    return streams.in_order(results["cbr_benchmark"]["fits"], "benchmark", measure) + " cells"


def _cbr_range(results: Results) -> str:
    fits = results["cbr_benchmark"]["fits"]
    return streams.in_order(fits, "benchmark", scaling="range") + " cells"


def _cbr_reached(results: Results) -> str:
    return streams.reached_counts(_of_cbr(results, "benchmark", "auc"), "benchmark")


def _cbr_text(results: Results) -> str:
    cell = _of_cbr(results, "text", "auc")["farm_ads"]["CBR diagonal printed"]
    assert cell.paper is not None
    return f"AUC {cell.mean:.3f}, the paper's {cell.paper[0]:.3f}"


def _cbr_steps(study: str, results: Results) -> str:
    """Mean AUC of CBR with a diagonal, by the step."""
    found = _of_cbr(results, study, "auc").values()
    names = ("CBR diagonal", "CBR diagonal printed")
    both = [row for row in found if all(name in row for name in names)]
    exact, printed = (np.mean([row[name].mean for row in both]) for name in names)
    return f"{exact:.3f} with the exact step, {printed:.3f} with the printed one ({len(both)} sets)"


def _rach_cells(results: Results, with_perf: bool) -> dict[rach_figures.Key, rach_figures.Cell]:
    """Problems with a share of labels that all methods have, on the same splits."""
    fits = results["rach"]["fits"]
    kept = [fit for fit in fits if with_perf or fit["method"] != PERF]
    return rach_figures.by_cell(few_labels.on_shared_splits(kept))


@cache
def _rach_standings(results: Results, with_perf: bool) -> dict[str, rach_figures.Standing]:
    return rach_figures.standings(_rach_cells(results, with_perf))


def _rach_form(results: Results) -> str:
    own = _rach_standings(results, False)["RACH (paper's form)"]
    splits = {len(f1) for cell in _rach_cells(results, False).values() for f1 in cell.values()}
    assert own.behind is not None
    return (
        f"the highest mean F1 of {min(splits)} splits in {own.first} of {own.cells} cells; RACHCV "
        f"minus it over data sets {own.behind.words()}"
    )


def _rach_means(results: Results) -> str:
    found = _rach_standings(results, False)
    names = ("Self-training", "TSVM", "KNN", "Manifold ranking", "RACH (paper's form)")
    peers = [f"{n} {found[n].mean:.1f} %, RACHCV minus it {_lead(found[n])}" for n in names]
    return f"mean F1: RACHCV {found['RACHCV'].mean:.1f} %; {'; '.join(peers)}"


def _rach_perf(results: Results) -> str:
    found = _rach_standings(results, True)
    names = ("RACHCV", PERF, "RACH (paper's form)")
    means = ", ".join(f"{name} {found[name].mean:.1f} %" for name in names)
    first = ", ".join(f"{name} on {found[name].first}" for name in (PERF, "RACHCV"))
    lead = f"RACHCV minus {PERF} {_lead(found[PERF])}"
    return f"mean F1 on {found[PERF].cells} cells: {means}; {lead}; highest: {first}"


def _lead(standing: rach_figures.Standing) -> str:
    assert standing.behind is not None
    return standing.behind.words()


def _rach_kind(start: str, results: Results) -> str:
    """Mean F1 of the paper's form and of RACHCV on the problems whose names begin so."""
    cells = [c for key, c in _rach_cells(results, False).items() if key.problem.startswith(start)]
    form, own = (
        np.mean([rach_figures.mean(cell, name) for cell in cells])
        for name in ("RACH (paper's form)", "RACHCV")
    )
    return f"mean F1 {form:.1f} %, RACHCV {own:.1f} %"


def _mibc(study: str, form: str, peer: str, results: Results) -> str:
    """A form of MIBC minus a peer over all problems."""
    found = mibc_figures.by_problem(results[f"mibc_{study}"]["fits"])
    return mibc.overall(found, form, peer)


def _mibc_below(results: Results) -> str:
    """Dense sets on which the paper's form is significantly below."""
    found = mibc_figures.by_problem(results["mibc_dense"]["fits"]).values()
    tests = [mibc_figures.against(each, "MIBC", mibc_figures.COST) for each in found]
    verdicts = [test.verdict(mibc_figures.P) for test in tests if test is not None]
    return f"on {verdicts.count('below')} of {len(found)} sets"


def _mibc_speed(study: str, results: Results) -> str:
    medians = mibc_real_speed.lines(results["mibc_real_speed"]["cells"], study)[-1]
    return (
        f"{medians[-1].strip()} times in the median, each at its own C, over the hinge loss; "
        f"{medians[-4]} times at MIBC's C over the faster loss"
    )


def _mibc_large(results: Results) -> str:
    text = results["mibc_speed"]["parts"]["text"]
    ways = (text, mibc_speed.FIT, mibc_speed.HINGE)
    ratio, every = mibc_speed.speed_up(*ways), [mibc_speed.speed_up(*ways, C) for C in CS]
    return (
        f"{ratio:.0f} times as fast at C = 1 on one set of {text['rows']:,} generated texts, "
        f"{min(every):.0f} to {max(every):.0f} times over the paper's C; the paper has "
        f"{PRINTED[0]} to {PRINTED[1]} times"
    )


def _mibc_full_recall(problems: Iterable[str], results: Results) -> str:
    """False-positive rates at which all positives are found."""
    rates = {(row[0], row[1]): row[-1] for row in mibc_roc.lines(results["mibc_roc"]["cells"])}
    return "; ".join(
        f"{name}: MIBC {rates[name, 'MIBC']} %, cost-sensitive SVM {rates[name, COST]} %"
        for name in problems
    )


PRINTED = (21, 36)  # Table 5 of Grave and El Ghaoui (2014)
COST, UNDER = mibc_figures.COST, mibc_figures.UNDER
DENSE_ROC = ("abalone19", "mammograph")
TEXT_ROC = ("newsgroups20 rec.sport.hockey", "sector 5", "tdt2 1")
FIGURES: dict[str, Figure] = {
    "table2.reached": _reached,
    **{f"table2.apart.{m}": partial(_apart, m) for m in ("RankSVM", "SVM-W", "RANK-RND")},
    **{f"table2.lead.{m}": partial(_lead_of_table2, m) for m in ("SVM-W", "SVM-RUS", "SVM-SMT")},
    "table2.above-printed.KNN": partial(_above_printed, "KNN"),
    "table4.below-paper": _below_paper,
    **{
        f"table4.lead.{m}": partial(_lead_of_table4, m)
        for m in ("KNN", "SVM", "SVM-W", "SVM-RUS", "SVM-SMT", "RankSVM", "RANK-RND")
    },
    **{
        f"table4.precision.{m}": partial(_precision_of_table4, m)
        for m in ("KNN", "SVM", "SVM-W", "SVM-RUS", "SVM-SMT", "SVM-Perf", "RankSVM")
    },
    **{f"table4.near-printed.{m}": partial(_near_printed, m) for m in ("KNN", "1-NN")},
    **{f"table5.fewer.{m}": partial(_fewer, m) for m in ("SVM", "SVM-RUS")},
    "fig6.all-rows": _all_rows,
    "fig6.random": _random_ahead,
    "fig6.cost": partial(_cost_of_part, 10.0),
    "fig6.cost.all": partial(_cost_of_part, 100.0),
    "fig6.stopped": _fig6_stopped,
    **{f"ordinal.{m}": partial(_small_sets, m) for m in ("KNN", "SVR", "RANK-RND")},
    "ordinal.RankSVM": partial(_small_sets, "ordinal RankSVM"),
    "ordinal.LightGBM": partial(_small_sets, "LightGBM regression"),
    "fig3.ordered": partial(_ordered, "proven"),
    "fig3.ordered-printed": partial(_ordered, "as_printed"),
    **{
        f"days.{percent}.{method.split()[-1]}": partial(_days_against, method, float(percent))
        for percent, methods in _DAYS.items()
        for method in methods
    },
    "days.50": partial(_days_means, 50.0),
    "days.75": partial(_days_means, 75.0),
    "days.cost": _days_cost,
    "days.volume": _days_volume,
    **{
        f"cbr.{measure}.distance": partial(_cbr_distance, measure)
        for measure in ("auc", "accuracy")
    },
    **{f"cbr.{measure}.order": partial(_cbr_order, measure) for measure in ("auc", "accuracy")},
    "cbr.range.order": _cbr_range,
    "cbr.reached": _cbr_reached,
    "cbr.text": _cbr_text,
    "cbr.steps": partial(_cbr_steps, "benchmark"),
    "cbr.steps.text": partial(_cbr_steps, "text"),
    "rach.form": _rach_form,
    "rach.means": _rach_means,
    "rach.perf": _rach_perf,
    "rach.made": partial(_rach_kind, "synthetic"),
    "rach.texts": partial(_rach_kind, "newsgroups20"),
    "mibc.dense.form": partial(_mibc, "dense", "MIBC", COST),
    "mibc.dense.form.under": partial(_mibc, "dense", "MIBC", UNDER),
    "mibc.dense.ridge.under": partial(_mibc, "dense", "MIBC ridge", UNDER),
    "mibc.dense.below": _mibc_below,
    "mibc.text.form": partial(_mibc, "text", "MIBC bare", COST),
    "mibc.text.form.under": partial(_mibc, "text", "MIBC bare", UNDER),
    "mibc.text.ridge": partial(_mibc, "text", "MIBC", COST),
    "mibc.text.ridge.under": partial(_mibc, "text", "MIBC", UNDER),
    "mibc.speed.dense": partial(_mibc_speed, "dense"),
    "mibc.speed.text": partial(_mibc_speed, "text"),
    "mibc.speed.large": _mibc_large,
    "mibc.full-recall.dense": partial(_mibc_full_recall, DENSE_ROC),
    "mibc.full-recall.text": partial(_mibc_full_recall, TEXT_ROC),
}
