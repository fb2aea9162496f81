"""What a fitted estimator shows of itself in a notebook, beside scikit-learn's diagram."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

_MOST_MEMBERS, _MOST_COLUMNS = 6, 5


class ShowsFittedFacts:
    """Below scikit-learn's diagram of an estimator a table of what was learned.

    Such as how the solver ended, the threshold, the members with their measures: what one would
    look up first. Nothing before it is fitted, and nothing inside of a pipeline, where
    scikit-learn's own list of fitted attributes is.
    """

    def _html_repr(self) -> str:
        return str(estimator_html_repr(self)) + facts_as_html(fitted_facts(self))


def fitted_facts(estimator: Any) -> list[tuple[str, str]]:
    """Names and values of what an estimator has learned; none before it is fitted.

    >>> from types import SimpleNamespace
    >>> fitted_facts(SimpleNamespace(status_="converged", n_iter_=7, offset_=0.25))
    [('Solver', 'converged after 7 steps'), ('Threshold', 'score > 0.25')]
    """
    found: list[tuple[str, str]] = []
    for name, fact in _FACTS.items():
        told = fact(estimator)
        if told is not None:
            found.append((name, told))
    return found


def facts_as_html(facts: list[tuple[str, str]]) -> str:
    """A table; nothing for no facts."""
    if not facts:
        return ""
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left;padding:.15em 1.2em .15em 0;'
        f'font-weight:600;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left;padding:.15em 0">{"<br>".join(map(escape, told.splitlines()))}'
        "</td></tr>"
        for name, told in facts
    )
    return (
        '<table class="rareclass-facts" style="margin:.5em 0;border-collapse:collapse">'
        f"<tbody>{rows}</tbody></table>"
    )


def _of(estimator: Any, name: str) -> Any:
    """A fitted attribute, None where there is none yet."""
    try:
        return getattr(estimator, name, None)
    except ValueError:  # what is solved for when asked, and cannot be
        return None


def _rare_class(estimator: Any) -> str | None:
    label = _of(estimator, "pos_label_")
    if label is not None:
        return str(label)
    labels = _of(estimator, "pos_labels_")
    return None if labels is None else ", ".join(str(each) for each in labels)


def _solver(estimator: Any) -> str | None:
    status = _of(estimator, "status_")
    if not isinstance(status, str):
        return None
    steps = _of(estimator, "n_iter_")
    gap = _of(estimator, "duality_gap_")
    after = f" after {steps:,} steps" if isinstance(steps, int | np.integer) else ""
    shown = f", duality gap {gap:.1e}" if isinstance(gap, float | np.floating) else ""
    return f"{status}{after}{shown}"


def _chosen(estimator: Any) -> str | None:
    names = ("lam", "loss", "cost", "ridge", "c1", "c2", "width", "kernel", "C")
    found = []
    for name in names:
        value = _of(estimator, f"best_{name}_")
        if value is not None:
            found.append(f"{name} {_number(value)}")
    score = _of(estimator, "best_score_")
    if isinstance(score, float | np.floating) and found:
        found.append(f"mean score of the folds {score:.3f}")
    return ", ".join(found) or None


def _landmarks(estimator: Any) -> str | None:
    model = _of(estimator, "best_estimator_") or estimator
    number, width = _of(model, "n_landmarks_"), _of(model, "width_")
    if number is None:
        return None
    at = f", kernel width {width:.4g}" if isinstance(width, float | np.floating) else ""
    return f"{number:,}{at}"


def _threshold(estimator: Any) -> str | None:
    offset = _of(estimator, "offset_")
    known = isinstance(offset, float | np.floating) and np.isfinite(offset)
    return f"score > {offset:.4g}" if known else None


def _held_out(estimator: Any) -> str | None:
    score = _of(estimator, "held_out_score_")
    if not isinstance(score, float | np.floating) or not np.isfinite(score):
        return None
    objective = getattr(estimator, "objective", "score")
    return f"{str(objective).replace('_', ' ')} {score:.3f}"


def _members(estimator: Any) -> str | None:
    board = _of(estimator, "leaderboard_")
    if not isinstance(board, Mapping) or "member" not in board:
        return None
    lines = []
    for k in np.flatnonzero(np.asarray(board["weight"]) > 0)[:_MOST_MEMBERS]:
        setting = f" ({board['setting'][k]})" if board["setting"][k] else ""
        lines.append(
            f"{board['member'][k]}{setting}: weight {board['weight'][k]:.2f}, average precision "
            f"{board['average_precision'][k]:.3f}, AUC {board['roc_auc'][k]:.3f}"
        )
    return "\n".join(lines) or None


def _columns(estimator: Any) -> str | None:
    given = _of(estimator, "feature_importances_")
    if given is None:
        return None
    values = np.nan_to_num(np.asarray(given, dtype=float))
    names = _of(estimator, "feature_names_in_")
    order = np.argsort(-values, kind="stable")[:_MOST_COLUMNS]
    told = [f"{k if names is None else names[k]} ({values[k]:.3f})" for k in order if values[k] > 0]
    return ", ".join(told) or None


def _stopped(estimator: Any) -> str | None:
    return "by Ctrl-C" if _of(estimator, "interrupted_") is True else None


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


_FACTS: dict[str, Callable[[Any], str | None]] = {
    "Rare class": _rare_class,
    "Solver": _solver,
    "Chosen": _chosen,
    "Landmarks in use": _landmarks,
    "Threshold": _threshold,
    "On held-out rows": _held_out,
    "Members": _members,
    "Columns that count most": _columns,
    "Ended early": _stopped,
}
