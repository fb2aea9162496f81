"""The sections of the results and performance pages on MIBC."""

from collections.abc import Callable
from typing import Any

from benchmarks import (
    mibc_features,
    mibc_one_sided,
    mibc_pairs,
    mibc_real_speed,
    mibc_ridges,
    mibc_speed,
)
from benchmarks.markdown import table
from benchmarks.paper_tables import mibc_figures, mibc_roc, mibc_tables

Result = dict[str, Any]


def study(result: Result) -> str:
    """AUC of the paper's Tables 2 or 4."""
    is_text = result["benchmark"] == "mibc_text"
    found = mibc_figures.by_problem(result["fits"])
    splits = {len(fits) for methods in found.values() for fits in methods.values()}
    what = (
        "One group of documents against the rest, 1:1000 in training; MIBC with a diagonal "
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
        "cost-sensitive and undersampling (p < 0.01).",
        table(*mibc_tables.auc_table(found)),
        "\n".join(f"- {line}" for line in mibc_figures.verdicts(found)),
        "The paper, on its own data:",
        table(*mibc_tables.printed("mibc4" if is_text else "mibc2")),
    ]
    return "\n\n".join(parts)


def speed(result: Result) -> str:
    """MIBC beside liblinear, and moments beside reading."""
    found = result["parts"]
    parts = [
        "At the same C, one thread, the fastest of the repeats, input checks included. The weight "
        "of the positives is r; liblinear's hinge loss is solved by the dual, the squared one by "
        "the primal on dense rows and by the dual on text."
    ]
    beside = [what for what in mibc_speed.COVARIANCE if what in found]
    if beside:
        lines = [line for what in beside for line in mibc_speed.lines_beside(what, found[what])]
        parts.append(table(mibc_speed.BESIDE_HEADER, lines))
    for what in beside:
        one = found[what]
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


def real_speed(result: Result) -> str:
    """Times on the sets of the tables, the ways in turn."""
    cells = result["cells"]
    parts = [
        "Processor milliseconds of one fit on one thread, input checks and moments included: "
        f"median of {result['repeats']} repeats, mean of {result['splits']} splits. C and cost "
        "ratio are what each method chose in the tables above. Speed-ups are over the faster of "
        "liblinear's two losses, and over the hinge loss, which is the paper's; at the C of MIBC, "
        "and each method at its own.",
    ]
    for study in mibc_real_speed.COVARIANCE:
        parts.append(table(mibc_real_speed.HEADER, mibc_real_speed.lines(cells, study)))
        reached = mibc_real_speed.median_speed_up(cells, study) >= mibc_real_speed.GOALS[study]
        parts.append(
            f"Goal, {study}: {mibc_real_speed.GOALS[study]:g} times in the median at the C of "
            f"MIBC. Reached: {'yes' if reached else 'NO'}."
        )
    for name in ("mibc3", "mibc5"):
        parts += ["The paper, on its own data:", table(*mibc_tables.printed(name))]
    return "\n\n".join(parts)


def features(result: Result) -> str:
    """MIBC behind a feature map."""
    return "\n\n".join(
        [
            f"Test AUC in percent, {result['splits']} random splits of 70 : 30, and seconds of a "
            "fit, the inner five folds included. Nystroem has 300 random landmarks, RankRC's "
            "features have all rare rows and 200 others.",
            table(["AUC in percent", *mibc_features.METHODS], mibc_features.lines(result["cells"])),
        ]
    )


def ridges(result: Result) -> str:
    """The ridge that texts want."""
    header = ["AUC by ridge", *(f"{ridge:.3g}" for ridge in mibc_ridges.RIDGES)]
    return "\n\n".join(
        [
            f"Test AUC in percent on the problems of mibc4, {result['splits']} splits, C = 1, by "
            "the ridge in mean variances.",
            table(header, mibc_ridges.lines(result["cells"])),
        ]
    )


def one_sided(result: Result) -> str:
    """A majority that is summed on one side of its mean."""
    liblinear = {(name, split): auc for name, split, auc in result["liblinear"]}
    return "\n\n".join(
        [
            f"Test AUC in percent, {result['splits']} splits, C and ridge by AUC on the validation "
            "part; p of a paired t-test, not corrected, against the squared-hinge SVM of mibc2.",
            table(mibc_one_sided.HEADER, mibc_one_sided.lines(result["cells"], liblinear)),
        ]
    )


def pairs(result: Result) -> str:
    """A majority of several moment pairs."""
    liblinear = {(name, split): auc for name, split, auc in result["liblinear"]}
    return "\n\n".join(
        [
            f"Test AUC in percent, {result['splits']} splits of mibc2, by the clusters of which "
            "the majority's moments are summed; C and ridge by AUC on the validation part; p of a "
            "paired t-test, not corrected, against the squared-hinge SVM. Choosing sets: "
            f"{', '.join(mibc_pairs.CHOOSING)}.",
            table(mibc_pairs.HEADER, mibc_pairs.lines(result["cells"], liblinear)),
        ]
    )


SECTIONS: dict[str, tuple[str, str, Callable[[Result], str]]] = {
    "mibc_dense": (
        "MIBC on dense sets (MIBC paper, Table 2)",
        "paper_tables mibc2 --full",
        study,
    ),
    "mibc_text": ("MIBC on text (MIBC paper, Table 4)", "paper_tables mibc4 --full", study),
    "mibc_real_speed": (
        "MIBC's speed on its sets (MIBC paper, Tables 3 and 5)",
        "mibc_real_speed",
        real_speed,
    ),
    "mibc_roc": (
        "MIBC's ROC curves (MIBC paper, Figures 2 and 3)",
        "paper_tables mibc_roc",
        mibc_roc.mibc_roc_page,
    ),
    "mibc_features": ("MIBC on kernel features", "mibc_features", features),
    "mibc_ridges": ("MIBC's ridge on text", "mibc_ridges", ridges),
    "mibc_one_sided": ("MIBC and a majority on both sides", "mibc_one_sided", one_sided),
    "mibc_pairs": ("MIBC and several moment pairs", "mibc_pairs", pairs),
}
SPEED = ("MIBC beside liblinear and beside reading", "mibc_speed", speed)
