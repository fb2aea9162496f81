"""Pages on MIBC."""

from typing import Any

import numpy as np

from benchmarks import mibc_real_speed, mibc_speed
from benchmarks.markdown import table
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Result, mean_of_each, page
from benchmarks.paper_tables import mibc_figures, mibc_roc, mibc_tables
from benchmarks.paper_tables.mibc_figures import COST, UNDER


def _study_body(result: Result) -> str:
    """AUC of the paper's Tables 2 or 4."""
    is_text = result["benchmark"] == "mibc_text"
    found = mibc_figures.by_problem(result["fits"])
    splits = {len(fits) for methods in found.values() for fits in methods.values()}
    what = (
        "One group of documents against all others, 1:1000 in training; MIBC with a diagonal "
        "covariance (plus one mean variance; MIBC bare plus a thousandth of it, as near to the "
        "paper as words that the majority never holds allow), and with 50 factors."
        if is_text
        else "Sets of RankRC's Table 3; MIBC with the full covariance of the columns, of Nyström "
        "features of the Gaussian kernel (300 landmarks), or of whichever of these two has the "
        "better AUC on the validation part (MIBC either)."
    )
    parts = [
        f"{what} Test AUC in percent, {' or '.join(map(str, sorted(splits)))} random splits of "
        "50 : 20 : 30; C, with the cost ratio or the ridge where there is one, by AUC on the "
        'validation part. "pos./rows" are of the training part. p is of a paired t-test, '
        "corrected for the rows that splits share, + where MIBC is above; † is significantly above "
        "cost-sensitive and undersampling (p < 0.01). Over all problems p is of Wilcoxon's "
        "signed-rank test.",
        table(*mibc_tables.auc_table(found)),
        "\n".join(f"- {line}" for line in mibc_figures.verdicts(found)),
        "The paper, on its own data:",
        table(*mibc_tables.printed("mibc4" if is_text else "mibc2")),
    ]
    return "\n\n".join(parts)


def overall(found: dict[str, Any], name: str, other: str) -> str:
    """A form of MIBC minus a peer over all problems, in points, with p."""
    return mibc_figures.overall(found, name)[other].words()


def _n_below(found: dict[str, Any], name: str, other: str) -> int:
    tests = [mibc_figures.against(methods, name, other) for methods in found.values()]
    return sum(test is not None and test.verdict() == "below" for test in tests)


@page(
    "mibc_text",
    "MIBC on text (MIBC paper, Table 4)",
    "mibc",
    "paper_tables mibc4 --full",
    "Forms of MIBC are compared with cost-sensitive linear SVMs and undersampling on 18 groups of "
    "documents, with 1,000 negatives to a positive.",
    _study_body,
    is_headline=True,
)
@page(
    "mibc_dense",
    "MIBC on dense sets (MIBC paper, Table 2)",
    "mibc",
    "paper_tables mibc2 --full",
    "Forms of MIBC are compared with cost-sensitive linear SVMs and undersampling on 17 dense "
    "sets, all tuned on the same validation rows.",
    _study_body,
    is_headline=True,
)
def _study(result: Result) -> Finding:
    found = mibc_figures.by_problem(result["fits"])
    own = "MIBC either" if "MIBC either" in mibc_figures.methods_of(found) else "MIBC"
    sets = {problem.split()[0] for problem in found}
    of = (
        ""
        if len(sets) == len(found)
        else f" of {len(sets)} collections (whose problems share documents, so that p is too small)"
    )
    what = {"MIBC": "MIBC with its ridge", "MIBC either": "MIBC on columns or kernel features"}
    paper_form = "MIBC bare" if own == "MIBC" else "MIBC"
    return Finding(
        f"Test AUC minus a cost-sensitive linear SVM's, mean of {len(found)} problems{of}",
        f"{what[own]} {overall(found, own, COST)}, significantly below on "
        f"{_n_below(found, own, COST)}; the paper's form {overall(found, paper_form, COST)}",
        f"against undersampling {overall(found, own, UNDER)}",
    )


def _real_speed_body(result: Result) -> str:
    """Times on the sets of the tables, the ways in turn."""
    cells = result["cells"]
    parts = [
        "Processor milliseconds of one fit on one thread, input checks and moments included: "
        f"median of {result['repeats']} repeats, mean of {result['splits']} splits. C and cost "
        "ratio are what each method chose in the paper's tables. Speed-ups are over the faster of "
        "liblinear's two losses, and over the hinge loss, which is the paper's; at the C of MIBC, "
        "and each method at its own."
    ]
    for study in mibc_real_speed.COVARIANCE:
        parts.append(table(mibc_real_speed.HEADER, mibc_real_speed.lines(cells, study)))
    for name in ("mibc3", "mibc5"):
        parts += ["The paper, on its own data:", table(*mibc_tables.printed(name))]
    return "\n\n".join(parts)


@page(
    "mibc_real_speed",
    "MIBC's speed on its sets (MIBC paper, Tables 3 and 5)",
    "mibc",
    "mibc_real_speed",
    "One fit of MIBC is timed beside liblinear on the sets of the two tables, on one thread and in "
    "turns.",
    _real_speed_body,
    is_headline=True,
)
def _real_speed(result: Result) -> Finding:
    def shown(study: str) -> str:
        ratios = mibc_real_speed.same_speed_ups(result["cells"], study)
        less = sum(ratio > 1.0 for ratio in ratios)
        return f"{study} {np.median(ratios):.1f} times (less time on {less} of {len(ratios)} sets)"

    return Finding(
        "Time of the faster of liblinear's losses over MIBC's at the same C, median of the sets "
        "(counted, not tested)",
        f"{shown('dense')}, {shown('text')}",
    )


def _speed_body(result: Result) -> str:
    """MIBC beside liblinear, and moments beside reading."""
    found = result["parts"]
    parts = [
        "At the same C, one thread, the fastest of the repeats, input checks included. The weight "
        "of the positives is r; liblinear's hinge loss is solved by the dual, the squared one by "
        "the primal on dense rows and by the dual on text."
    ]
    beside = {what: found[what] for what in mibc_speed.COVARIANCE if what in found}
    if beside:
        lines = [line for what in beside for line in mibc_speed.lines_beside(what, found[what])]
        parts.append(table(mibc_speed.BESIDE_HEADER, lines))
    for what, one in beside.items():
        made = f", made of {one['made_of']}" if "made_of" in one else ""
        parts.append(
            f"{what.capitalize()}: {one['rows']:,} x {one['features']:,}, {one['positives']:,} "
            f"positives, {one['cells']:,} cells{made} ({one['date']})."
        )
        parts.append(table(mibc_speed.PRICE_HEADER, mibc_speed.lines_by_price(one)))
    if "parquet" in found:
        one = found["parquet"]
        parts.append(
            f"Parquet: {one['rows']:,} x {one['features']} rows, {one['file_mib']:,.0f} MiB, all "
            f"cores, full covariance ({one['date']}). fit_rows keeps what it decoded in a scratch "
            "file, to be read again; partial_fit needs none."
        )
        parts.append(table(mibc_speed.READING_HEADER, mibc_speed.lines_reading(one)))
    return "\n\n".join(parts)


@page(
    "mibc_speed",
    "MIBC beside liblinear and beside reading",
    "mibc",
    "mibc_speed",
    "One fit of MIBC is timed beside liblinear on generated rows along ten values of C, and "
    "learning from a large Parquet file beside reading it.",
    _speed_body,
    is_headline=True,
)
def _speed(result: Result) -> Finding:
    text, read = result["parts"]["text"], result["parts"]["parquet"]
    ways = read["ways"]
    ratio = mibc_speed.speed_up(text, mibc_speed.FIT, mibc_speed.HINGE)
    return Finding(
        f"MIBC on {text['rows']:,} generated texts and on {read['rows']:,} x {read['features']} "
        "rows of Parquet",
        f"one fit {ratio:.0f} times as fast as liblinear's hinge loss at C = 1; the file learned "
        f"in {ways['reading and partial_fit']['seconds']:.1f} s",
        f"reading the file alone takes {ways['reading alone']['seconds']:.1f} s",
    )


def _roc_chart(result: Result) -> Any:
    """Draw the ROC curves, a panel for each problem, wide where false positives are few."""
    panels = {
        cell["problem"]: {
            name: (list(mibc_roc.GRID[1::2]), rates[1::2]) for name, rates in cell["true"].items()
        }
        for cell in result["cells"]
    }
    return charts.lines(panels, "false-positive rate", "true-positive rate", log_x=10)


@page(
    "mibc_roc",
    "MIBC's ROC curves (MIBC paper, Figures 2 and 3)",
    "mibc",
    "paper_tables mibc_roc",
    "The ROC curves of MIBC, a cost-sensitive SVM and undersampling are compared on the sets with "
    "the most negatives to a positive.",
    mibc_roc.mibc_roc_page,
    _roc_chart,
)
def _roc(result: Result) -> Finding:
    rates = mean_of_each(
        {
            name: 100.0 * float(np.interp(0.1, mibc_roc.GRID, true))
            for name, true in cell["true"].items()
        }
        for cell in result["cells"]
    )
    return Finding(
        f"True positives at 10 % false positives, mean of {len(result['cells'])} sets",
        f"MIBC {rates['MIBC']:.1f} %",
        f"cost-sensitive SVM {rates[COST]:.1f} %, undersampling {rates[UNDER]:.1f} %",
    )
