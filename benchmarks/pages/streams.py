"""Pages on online learners and streams."""

from benchmarks import (
    cbr_forms,
    cbr_selection,
    cbr_speed,
    cbr_steps,
    stream_forests,
    stream_mixture,
)
from benchmarks.markdown import table
from benchmarks.pages import stream_findings as found_in
from benchmarks.pages.page import Page, Result
from benchmarks.paper_tables import cbr_figures, cbr_tables
from benchmarks.paper_tables.cbr_protocol import grid


def cbr(result: Result) -> str:
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
    for measure in ("auc", "accuracy"):
        found = cbr_figures.cells(fits, study, measure)
        parts.append(table(*cbr_tables.compared(found, study, measure)))
        parts.append(
            "\n".join(f"- {x.strip()}" for x in cbr_tables.verdicts(found, study, measure))
        )
    for scaling in cbr_tables.SCALINGS:
        others = cbr_figures.best(result["fits"], scaling)
        if scaling != cbr_tables.SCALING and others:
            found = cbr_figures.cells(others, study, "auc")
            parts.append(f"The same sets with `--scaling {scaling}`, not the paper's.")
            parts.append(table(*cbr_tables.compared(found, study, "auc")))
            lines = cbr_tables.verdicts(found, study, "auc")
            parts.append("\n".join(f"- {line.strip()}" for line in lines))
    return "\n\n".join(parts)


def forms(result: Result) -> str:
    """CBR's two ways through a row, by width and difficulty."""
    rows = []
    for cell in result["cells"]:
        rates = cell["rows_per_second"]
        figures = [f"{rates[form]:,.0f}" for form in cbr_forms.FORMS]
        ratio = f"{rates['switching'] / rates['all pairs']:.2f}"
        rows.append(
            [f"d = {cell['features']}, {cell['stream']}", f"{cell['auc']:.3f}", *figures, ratio]
        )
    header = ["stream", "AUC", *(f"{form}, rows/s" for form in cbr_forms.FORMS)]
    return table([*header, "switching : all pairs"], rows)


def speed(result: Result) -> str:
    """Milliseconds of one pass of each learner, and where CBR is faster than OAM."""
    parts = [
        "Training rows of a fold, C or eta as chosen there; the learners in turns in one run on "
        "one thread, the median of the processor's time. The paper has CBR faster than OAM."
    ]
    for study in cbr_speed.STUDIES:
        if any(cell["study"] == study for cell in result["cells"]):
            parts.append(table(*cbr_speed.table_of(result["cells"], study)))
            parts.append("\n".join(f"- {x}" for x in cbr_speed.ahead(result["cells"], study)))
    return "\n\n".join(parts)


def steps(result: Result) -> str:
    """The exact and the printed step of diagonal CBR."""
    many = len({cell["set"] for cell in result["cells"]})
    text = f"Means over {many} streams, each row scored before it is learned.\n\n"
    return text + table(cbr_steps.HEADER, cbr_steps.lines(result["cells"]))


def selection(result: Result) -> str:
    """CBR that ranks by some of the features."""
    text = (
        f"Streams of {cbr_selection.ROWS:,} rows of {cbr_selection.N_FEATURES} normal features, of "
        f"which {cbr_selection.N_TELLING} count; means over {result['made'][0]['streams']}.\n\n"
    )
    parts = [text + table(cbr_selection.MADE_HEADER, cbr_selection.made_lines(result["made"]))]
    if result["text"]:
        lines = cbr_selection.text_lines(result["text"])
        parts.append("farm_ads, 54,877 words, five folds; the median time of a fit.")
        parts.append(table(cbr_selection.TEXT_HEADER, lines))
    return "\n\n".join(parts)


def river(result: Result) -> str:
    """CBR beside River on the stream of payments."""
    rows = [
        [
            name,
            f"{found['rows_per_s']:,.0f}",
            *(f"{found[key]:.4f}" for key in ("auc", "average_precision")),
            f"{found['precision_at_100_a_day']:.4f}",
        ]
        for name, found in result["results"].items()
    ]
    header = ["", "rows/s", "AUC", "average precision", "precision at 100 a day"]
    parts = [
        f"{result['rows']:,} payments in time order, each scored before it is learned from. Chosen "
        f"on the first {result['tried_rows']:,}: {result['chosen']['rareclass']} and "
        f"{result['chosen']['river']}.",
        table(header, rows),
    ]
    for name, figures in result["against"].items():
        parts.append(
            f"- Against {name}: {figures['times_the_rows_per_s']:.1f} times the rows a second "
            f"(goal 20), AUC {figures['auc']:+.4f}, average precision "
            f"{figures['average_precision']:+.4f}, precision at 100 a day "
            f"{figures['precision_at_100_a_day']:+.4f} (standard error over days "
            f"{figures['its_standard_error_over_days']:.4f})."
        )
    return "\n\n".join(parts)


def mixture(result: Result) -> str:
    """Several learners in one pass beside the best single one, known only afterwards."""
    text = (
        "Each row scored before it is learned. Of single ways the best in each measure is shown: "
        "a user does not know it beforehand.\n\n"
    )
    return text + table(stream_mixture.HEADER, stream_mixture.lines(result["cells"]))


def forests(result: Result) -> str:
    """The mixture beside River's trees, its forests and Vowpal Wabbit."""
    text = (
        f"The first {result['most_rows']:,} rows of each stream, as they are and with a drift put "
        "in: every column has the cells of another one, from the middle on (abrupt), or in a share "
        "of the rows that rises over the middle third (gradual). All ways with their defaults; "
        "each row scored before it is learned. Mean rank among the ways of a stream, 1 being the "
        "best, and mean; the last column is the mixture's rows a second over the way's, other "
        "programs running.\n\n"
    )
    return text + table(stream_forests.HEADER, stream_forests.lines(result["cells"]))


PAGES = {
    "cbr_benchmark": Page(
        "Online learners (CBR paper, Tables 3 and 4)",
        "streams",
        "paper_tables cbr3 --full",
        "CBR and five other online learners for the AUC learn the dense sets of the CBR paper in "
        "one pass, beside the paper's own figures.",
        found_in.cbr,
        cbr,
        is_headline=True,
    ),
    "cbr_text": Page(
        "Online learners on text (CBR paper, Tables 5 and 6)",
        "streams",
        "paper_tables cbr5 --full",
        "CBR with a diagonal covariance and three other online learners learn the paper's texts in "
        "one pass, beside the paper's own figures.",
        found_in.cbr,
        cbr,
    ),
    "cbr_speed": Page(
        "Time of one pass (CBR paper, Figures 1 and 2)",
        "streams",
        "cbr_speed",
        "The time of one pass of each online learner is measured on the sets of the CBR paper, on "
        "one thread and in turns.",
        found_in.cbr_speed,
        speed,
    ),
    "stream_river": Page(
        "CBR beside River",
        "streams",
        "stream_river",
        "CBR and River's logistic regression score each payment of a simulated stream before they "
        "learn it; settings were chosen on the first third.",
        found_in.river,
        river,
        is_headline=True,
    ),
    "stream_mixture": Page(
        "Several learners in one pass",
        "streams",
        "stream_mixture",
        "The mixture of learners that `rareclass stream` begins with is compared with each of them "
        "alone and with River's logistic regression under eight optimisers, on nine streams.",
        found_in.mixture,
        mixture,
        found_in.mixture_chart,
        is_headline=True,
    ),
    "stream_forests": Page(
        "The mixture beside stream forests, under drift",
        "streams",
        "stream_forests --rows 10000",
        "The mixture is compared with River's trees and forests and with Vowpal Wabbit, all with "
        "their defaults, on nine streams without drift, with abrupt and with gradual drift.",
        found_in.forests,
        forests,
        found_in.forests_chart,
        is_headline=True,
    ),
    "cbr_steps": Page(
        "CBR with a diagonal: the exact and the printed step",
        "streams",
        "cbr_steps",
        "CBR with a diagonal covariance learns nine streams with the step as the paper prints it "
        "and with the exact one.",
        found_in.steps,
        steps,
    ),
    "cbr_selection": Page(
        "CBR that ranks by few features",
        "streams",
        "cbr_selection",
        "CBR that keeps the features with the largest weights is compared with CBR that keeps all.",
        found_in.selection,
        selection,
    ),
    "cbr_forms": Page(
        "CBR: skipping pairs by bounds",
        "streams",
        "cbr_forms",
        "CBR computes all pairs of a row with the kept rows, skips pairs by bounds, or switches "
        "between the two as it runs.",
        found_in.forms,
        forms,
    ),
}
