"""Main figures of the pages on streams."""

from typing import Any

import numpy as np

from benchmarks import stream_mixture
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Result, means_by, quality
from benchmarks.paper_tables import cbr_figures, cbr_tables


def cbr(result: Result) -> Finding:
    """Return the distance from the paper, its order of the learners, and the sets reached."""
    study = result["benchmark"].removeprefix("cbr_")
    fits = cbr_figures.best(result["fits"], cbr_tables.SCALING)
    found = cbr_figures.cells(fits, study, "auc")
    above = cbr_figures.ordered(found, True)
    return Finding(
        "Mean distance of the AUC from the CBR paper's figures, on the sets with its classes",
        f"{cbr_figures.distance(found):.3f}; sets at the paper's AUC less two standard errors: "
        f"{reached_counts(found, study)}",
        f"CBR above the other learner in {sum(above)} of the {len(above)} pairs in which the paper "
        "has it above",
    )


def reached_counts(found: cbr_figures.Cells, study: str) -> str:
    """Return on how many sets each form of CBR reaches the paper, in words."""
    held = cbr_figures.reached(found, study)
    return ", ".join(
        f"{learner} {sum(own)} of {len(own)}"
        for learner in dict.fromkeys(learner for _, learner in held)
        for own in [[value for (_, other), value in held.items() if other == learner]]
    )


def cbr_speed(result: Result) -> Finding:
    """Return how CBR's time compares with OAM's, as the paper has it."""
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


def river(result: Result) -> Finding:
    """Return CBR beside River's logistic regression with its defaults."""
    runs = result["results"]
    name = next(one for one in runs if one == result["chosen"]["rareclass"])
    ours, default, best = runs[name], runs["River, its defaults"], runs[result["chosen"]["river"]]

    def shown(one: dict[str, Any]) -> str:
        return f"{one['rows_per_s']:,.0f} rows a second, {quality(one)}"

    return Finding(
        f"Scoring and learning {result['rows']:,} simulated payments in one pass",
        f"CBR {shown(ours)}",
        f"River's logistic regression with its defaults {shown(default)}; with its best optimiser "
        f"{shown(best)}",
    )


def _of_drift(result: Result, drift: str) -> dict[str, float]:
    """Mean average precision of each way under one drift."""
    return means_by([c for c in result["cells"] if c["drift"] == drift], "way", "ap")


def mixture(result: Result) -> Finding:
    """Return mean figures of the mixture and of the best single way of River, over the streams."""
    cells = result["cells"]
    ways = list(dict.fromkeys(c["way"] for c in cells))
    auc, precision = (means_by(cells, "way", key) for key in ("auc", "ap"))
    best = max((way for way in ways if way.startswith("River")), key=precision.__getitem__)

    def shown(way: str) -> str:
        return quality({"auc": auc[way], "average_precision": precision[way]})

    own = stream_mixture.MIXTURE
    firsts = 0
    sets = list(dict.fromkeys(c["set"] for c in cells))
    for name in sets:
        of_set = {c["way"]: c["ap"] for c in cells if c["set"] == name}
        firsts += of_set[own] == max(of_set.values())
    return Finding(
        f"Means over {len(sets)} streams",
        f"mixture of `rareclass stream` {shown(own)}; best average precision of {len(ways)} ways "
        f"on {firsts} of {len(sets)} streams",
        f"best optimiser of River's logistic regression {shown(best)}",
    )


def mixture_chart(result: Result) -> Any:
    """Draw average precision by stream."""
    cells = result["cells"]
    sets = list(dict.fromkeys(c["set"] for c in cells))

    def best(name: str, start: str) -> float:
        own = [c["ap"] for c in cells if c["set"] == name and c["way"].startswith(start)]
        return max(own)

    ways = {
        "mixture": stream_mixture.MIXTURE,
        "CBR": stream_mixture.BEFORE,
        "best of River (known afterwards)": "River",
    }
    series = {title: [best(name, start) for name in sets] for title, start in ways.items()}
    return charts.bars(sets, series, "average precision")


def forests(result: Result) -> Finding:
    """Return mean figures on streams with an abrupt drift."""
    means = _of_drift(result, "abrupt")
    mixture = means.pop("mixture")
    best = max(means, key=means.__getitem__)
    return Finding(
        "Mean average precision over nine streams with an abrupt drift",
        f"mixture {mixture:.3f}",
        f"best of {len(means)} peers: {best} {means[best]:.3f}",
    )


def forests_chart(result: Result) -> Any:
    """Draw mean average precision by way and drift."""
    cells = result["cells"]
    ways = list(dict.fromkeys(c["way"] for c in cells))
    drifts = list(dict.fromkeys(c["drift"] for c in cells))
    means = {drift: _of_drift(result, drift) for drift in drifts}
    series = {f"drift: {drift}": [means[drift][way] for way in ways] for drift in drifts}
    return charts.bars(ways, series, "mean average precision")


def steps(result: Result) -> Finding:
    """Return the mixture's average precision with either step."""
    means = means_by([c for c in result["cells"] if c["learner"] == "mixture"], "step", "ap")
    return Finding(
        "Mean average precision of the mixture over nine streams",
        f"exact step {means['exact']:.4f}",
        f"step as the paper prints it {means['printed']:.4f}",
    )


def selection(result: Result) -> Finding:
    """Return AUC with ten features and with all."""
    own = {
        cell["size"]: cell
        for cell in result["made"]
        if (cell["share"], cell["setting"]) == (0.1, "C = 1")
    }
    least = own[10]
    return Finding(
        "AUC of CBR on streams of 200 features of which 10 are informative, 10 % rare",
        f"10 features kept {least['auc']:.3f} ({least['found']:.1f} of the 10 found)",
        f"all kept {own[max(own, key=str)]['auc']:.3f}",
    )


def forms(result: Result) -> Finding:
    """Return the range of the speed of switching over computing all pairs."""
    ratios = [
        cell["rows_per_second"]["switching"] / cell["rows_per_second"]["all pairs"]
        for cell in result["cells"]
    ]
    return Finding(
        f"Speed of CBR when bounds skip pairs, over computing all pairs, {len(ratios)} streams",
        f"{min(ratios):.2f} to {max(ratios):.2f} times, {np.median(ratios):.2f} in the median",
    )
