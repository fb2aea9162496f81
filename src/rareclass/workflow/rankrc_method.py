"""RankRC as the command line runs it: landmarks, lam, memory, and how long it will take."""

from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar

from rareclass.byte_sizes import size_text
from rareclass.errors import InputError
from rareclass.ranking import RankRC, RankRCCV
from rareclass.ranking.preparation import held_whole_bytes
from rareclass.ranking.rankrc_cv import PAPER_LAMS
from rareclass.workflow.duration import LONG_SECONDS, duration_text, rankrc_seconds
from rareclass.workflow.method import EncodedRows, TableSize, Terms, how_chosen

DEFAULT_LAM = 2.0**-8
# More rare rows than this are thinned to well-spread ones; fewer are joined by some majority
# rows, which costs little and helps most where rare rows are few (docs/decisions/0006).
MOST_RARE_LANDMARKS = 1000
MAJORITY_LANDMARKS = 200


@dataclass(frozen=True)
class RankRCMethod:
    """A kernel machine on the rare rows; see `rareclass.workflow.method.Method`.

    Attributes
    ----------
    lam : float or None
        Strength of the regulariser; None chooses it by cross-validation.
    """

    name: ClassVar[str] = "rankrc"
    parameter: ClassVar[str] = "lam"

    lam: float | None = None

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Say so when it will take long: another method needs one pass of the rows."""
        n_lams = len(PAPER_LAMS) if self.lam is None else 1
        seconds = rankrc_seconds(
            size, _n_landmarks(size.n_rare), terms.folds * n_lams + terms.folds, terms.memory
        )
        if seconds < LONG_SECONDS:
            return ""
        return (
            f"RankRC is likely to take {duration_text(seconds)} on these {size.n_rows:,} rows "
            f"(a rough estimate). --method mibc needs one pass of them and one for its "
            "cross-validation: a linear model."
        )

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> RankRC:
        """Fit with cross-validation where there are rows for it."""
        n_rare = int(rows.rare.sum())
        _check_memory(n_rare, rows.X.dtype.itemsize, terms.memory)
        shared: dict[str, Any] = {
            "landmarks": _landmarks(n_rare),
            "pos_label": 1,
            "random_state": terms.seed,
            "memory": terms.memory,
        }
        if terms.folds < 2:
            notes.append("Too few rare rows for cross-validation: the threshold may be far off.")
            if self.lam is None:
                notes.append(f"For the same reason lam was not chosen: {DEFAULT_LAM:g} was taken.")
            model: RankRC = rows.fit(RankRC(lam=self.lam or DEFAULT_LAM, **shared))
            return model
        # Even one lam is cross-validated: the threshold needs scores of rows held out.
        lams = PAPER_LAMS if self.lam is None else (self.lam,)
        model = rows.fit(RankRCCV(lams, cv=terms.folds, **shared)).best_estimator_
        return model

    def as_chosen(self, model: RankRC) -> "RankRCMethod":
        """Return the method with the lam of `model`."""
        return replace(self, lam=float(model.lam))

    def facts(self, model: RankRC, terms: Terms) -> dict[str, Any]:
        """Return lam, width, landmarks and how the solver ended."""
        return {
            "lam": float(model.lam),
            "lam_chosen_by_cross_validation": self.lam is None and terms.folds >= 2,
            "width": float(model.width_),
            "n_landmarks": int(model.coef_.shape[0]),
            "solver": {"status": model.status_, "iterations": int(model.n_iter_)},
        }

    def summary(self, model: RankRC, terms: Terms) -> list[str]:
        """Return the lines on landmarks and lam."""
        return [
            f"Landmarks: {model.coef_.shape[0]:,} rows carry the model",
            f"Regulariser lam = {model.lam:.4g} (2^{log2(model.lam):.4g}), "
            f"{how_chosen(self.lam, terms)}",
        ]

    def lighten(self, model: RankRC) -> None:
        """Drop the whitener: only `transform` needs it, and it would be most of the file."""
        del model.whitener_


def _landmarks(n_rare: int) -> tuple[str, int]:
    """Return which rows carry a model of so many rare rows."""
    if n_rare > MOST_RARE_LANDMARKS:
        return "rare", MOST_RARE_LANDMARKS
    return "rare+majority", MAJORITY_LANDMARKS


def _n_landmarks(n_rare: int) -> int:
    rule, count = _landmarks(n_rare)
    return n_rare + count if rule == "rare+majority" else count


def _check_memory(n_rare: int, item: int, allowed: int) -> None:
    """Raise `InputError` when what the solver holds whole does not fit: kernel and factors."""
    needed = sum(held_whole_bytes(_n_landmarks(n_rare), n_rare, item))
    if needed > allowed:
        raise InputError(
            f"The kernel of {n_rare:,} distinct rare rows with their landmarks takes "
            f"{size_text(needed)}; {size_text(allowed)} are left for it.",
            "Raise --memory, fit on a sample of the rows, or give --method mibc, which has no "
            "kernel.",
        )
