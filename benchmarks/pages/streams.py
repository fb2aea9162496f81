"""Pages on online learners and streams."""

import numpy as np

from benchmarks import cbr_speed
from benchmarks.markdown import table
from benchmarks.pages.page import Finding, Result, chosen, listed, page, quality
from benchmarks.paper_tables import cbr_figures, cbr_tables
from benchmarks.paper_tables.cbr_protocol import grid


def _cbr_body(result: Result) -> str:
    """Online learners beside the paper: AUC, accuracy at OPTROC."""
    study = result["benchmark"].removeprefix("cbr_")
    fits = cbr_figures.best(result["fits"], cbr_tables.SCALING)
    powers = {name: len(grid(step)) for name, step in {f["set"]: f["step"] for f in fits}.items()}
    counts = sorted(set(powers.values()), reverse=True)
    parts = [
        "Test figures of five folds a run, mean ± standard deviation over folds and runs, C or eta "
        f"by 3-fold cross-validation among {' or '.join(map(str, counts))} powers of two. In "
        "brackets: sets that are two-class in another way than in the paper.\n"
        + "".join(
            f"{many} powers only: {', '.join(n for n in powers if powers[n] == many)}.\n"
            for many in counts[1:]
        )
    ]
    parts += _beside_paper(fits, study, "auc") + _beside_paper(fits, study, "accuracy")
    for scaling in cbr_tables.SCALINGS:
        others = cbr_figures.best(result["fits"], scaling)
        if scaling != cbr_tables.SCALING and others:
            parts.append(f"The same sets with `--scaling {scaling}`, not the paper's.")
            parts += _beside_paper(others, study, "auc")
    return "\n\n".join(parts)


def _beside_paper(fits: list[Result], study: str, measure: str) -> list[str]:
    found = cbr_figures.cells(fits, study, measure)
    verdicts = [f"- {line.strip()}" for line in cbr_tables.verdicts(found, study, measure)]
    return [table(*cbr_tables.compared(found, study, measure)), "\n".join(verdicts)]


def reached_counts(found: cbr_figures.Cells, study: str) -> str:
    """Return on how many sets each form of CBR reaches the paper, in words."""
    held = cbr_figures.reached(found, study)
    return ", ".join(
        f"{learner} {sum(own)} of {len(own)}"
        for learner in dict.fromkeys(learner for _, learner in held)
        for own in [[value for (_, other), value in held.items() if other == learner]]
    )


def in_order(fits: list[Result], study: str, measure: str = "auc", scaling: str = "unit") -> str:
    """Count the pairs in which CBR is above as in the paper, of those in which the paper has it."""
    found = cbr_figures.cells(cbr_figures.best(fits, scaling), study, measure)
    above = cbr_figures.ordered(found, True)
    return f"{sum(above)} of {len(above)}"


def _other_scaling(fits: list[Result], study: str) -> str:
    own = cbr_figures.best(fits, "range")
    if not own:
        return ""
    runs = len({fit["run"] for fit in own})
    return (
        f", {in_order(fits, study, scaling='range')} with columns scaled to a range ({runs} runs)"
    )


@page(
    "cbr_text",
    "Online learners on text (CBR paper, Tables 5 and 6)",
    "streams",
    "paper_tables cbr5 --full",
    "CBR with a diagonal covariance and three other online learners learn the paper's texts in one "
    "pass, beside the paper's own figures.",
    _cbr_body,
)
@page(
    "cbr_benchmark",
    "Online learners (CBR paper, Tables 3 and 4)",
    "streams",
    "paper_tables cbr3 --full",
    "CBR and five other online learners for the AUC learn the dense sets of the CBR paper in one "
    "pass, beside the paper's own figures.",
    _cbr_body,
    is_headline=True,
)
def _cbr(result: Result) -> Finding:
    study = result["benchmark"].removeprefix("cbr_")
    fits = cbr_figures.best(result["fits"], cbr_tables.SCALING)
    found = cbr_figures.cells(fits, study, "auc")
    above = in_order(result["fits"], study)
    return Finding(
        "Mean distance of the AUC from the CBR paper's figures, on the sets with its classes",
        f"{cbr_figures.distance(found):.3f}; sets at the paper's AUC less two standard errors: "
        f"{reached_counts(found, study)}",
        f"CBR above the other learner in {above} pairs in which the paper has it above (not "
        "tested), rows scaled to unit length as the printed AUC suggests"
        f"{_other_scaling(result['fits'], study)}",
    )


def _speed_body(result: Result) -> str:
    """Milliseconds of one pass of each learner, and where CBR is faster than OAM."""
    parts = [
        "Training rows of a fold, C or eta as chosen there; the learners in turns in one run on "
        "one thread, the median of the processor's time. The paper has CBR faster than OAM."
    ]
    for study in cbr_speed.STUDIES:
        if chosen(result["cells"], study=study):
            parts.append(table(*cbr_speed.table_of(result["cells"], study)))
            parts.append("\n".join(f"- {x}" for x in cbr_speed.ahead(result["cells"], study)))
    return "\n\n".join(parts)


@page(
    "cbr_speed",
    "Time of one pass (CBR paper, Figures 1 and 2)",
    "streams",
    "cbr_speed",
    "The time of one pass of each online learner is measured on the sets of the CBR paper, on one "
    "thread and in turns.",
    _speed_body,
)
def _cbr_speed(result: Result) -> Finding:
    ratios = {
        method: [c["ms"]["OAM"] / c["ms"][method] for c in result["cells"] if method in c["ms"]]
        for method in ("CBR reservoir", "CBR diagonal printed")
    }
    return Finding(
        "Sets of the CBR paper on which CBR is faster than OAM",
        *(
            f"{name} on {sum(r > 1.0 for r in own)} of {len(own)}, {np.median(own):.2f} times as "
            "fast in the median"
            for name, own in ratios.items()
        ),
    )


RIVER_COLUMNS = {
    "": "{name}",
    "rows/s": "{rows_per_s:,.0f}",
    "AUC": "{auc:.4f}",
    "average precision": "{average_precision:.4f}",
    "precision at 100 a day": "{precision_at_100_a_day:.4f}",
}


def _river_body(result: Result) -> str:
    """CBR beside River on the stream of payments."""
    runs = [{"name": name, **found} for name, found in result["results"].items()]
    parts = [
        f"{result['rows']:,} payments in time order, each scored before it is learned from. Chosen "
        f"on the first {result['tried_rows']:,}: {result['chosen']['rareclass']} and "
        f"{result['chosen']['river']}.",
        listed(runs, RIVER_COLUMNS),
    ]
    for name, figures in result["against"].items():
        parts.append(
            f"- Against {name}: {figures['times_the_rows_per_s']:.1f} times the rows a second"
            f", AUC {figures['auc']:+.4f}, average precision "
            f"{figures['average_precision']:+.4f}, precision at 100 a day "
            f"{figures['precision_at_100_a_day']:+.4f} (standard error over days "
            f"{figures['its_standard_error_over_days']:.4f})."
        )
    return "\n\n".join(parts)


@page(
    "stream_river",
    "CBR beside River",
    "streams",
    "stream_river",
    "CBR and River's logistic regression score each payment of a simulated stream before they "
    "learn it; settings were chosen on the first third.",
    _river_body,
    is_headline=True,
)
def _river(result: Result) -> Finding:
    def shown(name: str) -> str:
        run = result["results"][name]
        return f"{run['rows_per_s']:,.0f} rows a second, {quality(run)}"

    against = result["against"][result["chosen"]["river"]]
    return Finding(
        f"Scoring and learning {result['rows']:,} simulated payments in one pass, one stream",
        f"CBR {shown(result['chosen']['rareclass'])}",
        f"River's logistic regression with its defaults {shown('River, its defaults')}; with the "
        f"optimiser chosen on the first third {shown(result['chosen']['river'])}; CBR minus it in "
        f"precision at 100 alerts a day {against['precision_at_100_a_day']:+.3f} ± "
        f"{against['its_standard_error_over_days']:.3f}",
    )
