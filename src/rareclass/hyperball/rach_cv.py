"""RACHCV: the parameters of RACH chosen by cross-validation over the few labelled rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, Self

import numpy as np

from rareclass.decide.rarity_scores import given_splits
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import learned, read_features
from rareclass.estimators.search import SearchCV, ranks
from rareclass.findings import FindingKind, warn
from rareclass.folds.splitters import stratified
from rareclass.hyperball.ball import finding_about, sentence
from rareclass.hyperball.choice import (
    BallCandidate,
    CandidateBalls,
    ConfusionCounts,
    HeldOutChoice,
    candidates,
    f1_interval,
    fewest_balls,
    first_of_equals,
    held_out_choices,
    mean_f1,
    pu_scores,
    read_grid,
    unlabelled_inside,
)
from rareclass.hyperball.pool import SHARE, SOLVED, BallParameters, survey, with_balls
from rareclass.hyperball.rach import RACH, BallClassifier
from rareclass.labels.partial_labels import PartialLabels, read_partial_labels
from rareclass.labels.spelling import plain
from rareclass.machine import track
from rareclass.parameters import check_whole

# Numbers of balls a category that are tried by default.
_NUMBERS = (1, 2, 3)


@dataclass(eq=False, repr=False)
class RACHCV(BallParameters, BallClassifier, SearchCV):
    """`RACH` with its prices, margin, width and radius chosen over the labelled rows.

    In each fold some labelled rows lose their label and stay as unlabelled rows. What decides over
    all rows that were held out is the F1 of the rare class or, with radius="solved", the recall
    against the unlabelled rows inside. With fewer rare labels than folds each rare row is held out
    alone (leave-one-out).

    Parameters
    ----------
    C1s, C2s : sequence of float or None, default=None
        Prices to try, as in `RACH`. None: 30, 3 and 0.3 for C1 (0.3, 0.03 and 3 without a kernel),
        0 for C2.
    widths : sequence of float or None, default=None
        Widths of the kernel to try. None: 8, 2 and 1/2 times the mean one; with radius="solved" 1,
        2, 1/2 and 4 times. Without a kernel there is none.
    margins : sequence of float or None, default=None
        Margins to try, as in `RACH`. None: 1/2, 1/5 and 1/20 of k(x, x), and none without a kernel:
        there it would push the centre out of the cases. [0] is the paper's Problem 1.
    cv : int, splitter or iterable of (train, test), default=5
        Folds over the labelled rows; an integer makes stratified, shuffled ones. An iterable holds
        numbers of rows of X, of which those of ``test`` with a label are held out.
    radius : {"share", "solved"}, default="share"
        Where the border is at first, and by what balls are judged. "share" needs labels of rows as
        they came, or a `rare_share` that is known; the first candidate is taken whose F1 is within
        half a rare row of the best. Where cases were sought out, "solved" is the safe choice. Then
        :math:`r^2 / c` decides, r the recall of the held-out rare rows and c the unlabelled rows
        inside: precision times recall among these, up to a factor that is the same for all [2]_;
        without unlabelled rows the F1.
    learn_radius : bool, default=True
        Move the border to where the F1 over the held-out rows is best; with "share", whose border
        counts for 8 rare rows, only r / (r + 8) of the way, r the rare rows held out.
    refit : bool, default=True
        Fit on all labels with the best parameters, which predicting needs.
    n_balls : int, "auto", sequence of these or None, default=None
        Balls for each category, as in `RACH`. Of a sequence, the simplest first, one is taken that
        is not worse than the best by half a held-out rare row. None: 1, 2 and 3, as far as they
        are fewer than the rare rows; 1 alone with a kernel and radius="share". In each fold the
        rare rows that keep their label are dealt out anew.
    kernel, n_landmarks, rare_share, filter, max_kept, tol, max_outer, max_inner, random_state, \
n_jobs, pos_label
        As in `RACH`; `random_state` also shuffles the folds.
    verbose : as in `RankRC`

    Attributes
    ----------
    best_C1_, best_C2_, best_margin_, best_width_, best_n_balls_
        The parameters chosen.
    best_radius_slack_ : float, or dict for several categories
        What is added to the squared radius.
    best_score_ : float
        F1 over the held-out rows, with several categories the mean of theirs, of the candidate
        that was chosen from many by these rows, so a little high. NaN where a single rare label
        allowed no fold.
    score_interval_, uncertainty_ : tuple of float, str
        95 percent interval of the F1 (Wilson's, carried over from tp / (tp + fp + fn)), for the
        chance in the few held-out rows alone, of the category with the lowest; and in a sentence.
    best_estimator_, best_index_ : RACH (when `refit`), int
    cv_results_ : dict of ndarray
        ``C1``, ``C2``, ``width``, ``margin``, ``n_balls``, ``tp``, ``fp``, ``fn`` (summed over
        folds and categories), ``f1``, ``rank``: one entry for each candidate. With
        radius="solved" ``pu_score``, :math:`r^2 / c`, by which they are then ranked; of several
        categories the geometric mean.
    held_out_rows_, held_out_depths_ : ndarray of int, ndarray
        Numbers of the rows that were held out, fold by fold and category by category, and their
        depth in the chosen kind of ball fitted without their label: at or above 0 inside.
    n_splits_ : int
        Folds; 0 where a single rare label allowed none.

    Raises
    ------
    ValueError
        Where there is no majority label: without one every larger ball is better. Use `RACH`.

    Notes
    -----
    Time: folds x candidates x balls short solutions, 27 candidates with a kernel (with
    radius="solved" 36 for each number of balls) and 3 without for each number; rows are read and
    filtered once for each ball, kernels are worked out once a width and number. The filter and the
    landmarks see the held-out rows' labels. A margin, and a radius learned, go beyond the paper:
    with its Problem 1 alone held-out cases fall just outside (docs/decisions/0020, 0059).

    References
    ----------
    .. [1] He, Tong, Carbonell, "Rare category characterization", ICDM 2010, section VI.
    .. [2] Lee, Liu, "Learning with positive and unlabeled examples using weighted logistic
       regression", ICML 2003.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X = np.vstack([rng.randn(200, 2), 2.0 + 0.1 * rng.randn(20, 2)])
    >>> y = np.where(np.arange(220) % 4, -1, np.arange(220) >= 200)
    >>> RACHCV(kernel="gaussian").fit(X, y).score(X, np.arange(220) >= 200) > 0.9
    True
    """

    C1s: Sequence[float] | None = None
    C2s: Sequence[float] | None = None
    widths: Sequence[float] | None = None
    margins: Sequence[float] | None = None
    cv: Any = 5
    radius: str = "share"
    learn_radius: bool = True
    refit: bool = True
    n_balls: Any = None
    verbose: bool | str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters, then find the balls with all labels, as `RACH.fit` does."""
        grid = read_grid(C1s=self.C1s, C2s=self.C2s, widths=self.widths, margins=self.margins)
        numbers = self._numbers_asked()
        settings, *_ = [self._model(RACH, n_balls=n)._checked() for n in numbers]
        source = read_features(self, X, squares=True)
        labels = read_partial_labels(y, sample_weight, self.pos_label, source.n_rows)
        settings._check_labels_named(labels.rare)
        for label in labels.rare:
            if not len(labels.labelled_but(label)):
                raise ErrorKind.LABELS.error(
                    f"the labelled rows are of one class, {plain(label)!r}: their score is "
                    "best for a ball around everything. Label some rows as cleared, or use RACH "
                    "with C1 and C2 given."
                )
        most = max(len(labels.rows_of(label)) for label in labels.rare)
        if self.n_balls is None:  # every fold has to leave each ball a rare row
            numbers = [n for n in numbers if n == 1 or n < most]
        known = {numbers[0]: survey(settings, source, labels)}
        for n in numbers[1:]:
            known[n] = with_balls(known[numbers[0]], n, settings, source, labels)
        radius = SHARE if self.radius == SHARE else SOLVED
        tried = {n: candidates(grid, self.kernel, radius, one) for n, one in known.items()}
        balls = {
            label: [CandidateBalls.of(label, tried[n], one, settings) for n, one in known.items()]
            for label in labels.rare
        }
        self.classes_, self.pos_labels_ = labels.classes, labels.rare
        self.majority_label_ = labels.majority
        held_out, called = self._hold_out(labels, balls), None
        if self.radius != SHARE and self.n_splits_ and len(labels.unlabelled()):
            called = np.array(
                [unlabelled_inside(balls[label], row) for label, row in held_out.items()]
            )
        chosen = self._choose_candidate([*chain(*tried.values())], held_out, called)
        if self.refit:
            self.best_estimator_ = self._model(
                RACH,
                **chosen._asdict() | {"width": "mean" if chosen.width is None else chosen.width},
                radius_slack=self.best_radius_slack_,
            )
            self.best_estimator_._fit_survey(labels, known[chosen.n_balls])
        return self

    balls_ = learned("_best.balls_", "Balls of the best model.")
    transduction_ = learned("_best.transduction_", "The label of every training row.")
    findings_ = learned("_best.findings_", "Findings about the balls, each with a remedy.")
    messages_ = learned("_best.messages_", "The findings in sentences.")
    width_ = learned("_best.width_", "Sigma of the kernel.")
    background_ = learned("_best.background_", "Sample of the rows that are not known to be rare.")

    def _numbers_asked(self) -> list[Any]:
        """Return the numbers of balls to try, the fewest first where none were given."""
        if self.n_balls is None:
            alone = self.radius == SHARE and self.kernel is not None
            return [1] if alone else list(_NUMBERS)
        if isinstance(self.n_balls, str) or not isinstance(self.n_balls, Iterable):
            return [self.n_balls]
        numbers = list(dict.fromkeys(self.n_balls))
        if not numbers:
            raise ErrorKind.SETTING.error(f"n_balls={self.n_balls!r} must be numbers, or 'auto'.")
        return numbers

    def _hold_out(
        self, labels: PartialLabels, balls: dict[Any, list[CandidateBalls]]
    ) -> dict[Any, list[HeldOutChoice]]:
        """Hold out rows, and choose the best radius, for each category and candidate."""
        splits = {label: self._splits(labels, label) for label in labels.rare}
        # A category without a fold has no say, unless none has one.
        splits = {label: folds for label, folds in splits.items() if folds} or splits
        self.n_splits_ = max(len(folds) for folds in splits.values())
        total = sum(
            len(folds) * len(one.widths) for label, folds in splits.items() for one in balls[label]
        )
        with track("Choosing prices, margin and width", total, self.verbose) as advance:
            return {
                label: [
                    choice
                    for one in balls[label]
                    for choice in held_out_choices(
                        one, folds, self.radius == SHARE, self.learn_radius, advance
                    )
                ]
                for label, folds in splits.items()
            }

    def _splits(self, labels: PartialLabels, label: Any) -> list[np.ndarray]:
        """Return the rows held out in each fold; no fold where there is a single rare label."""
        rare, others = labels.rows_of(label), labels.labelled_but(label)
        rows = np.concatenate([rare, others])
        is_rare = np.arange(len(rows)) < len(rare)
        if not isinstance(self.cv, Integral):
            tests = [test for _, test in given_splits(self.cv, np.empty((len(rows), 0)), is_rare)]
            if isinstance(self.cv, Iterable):  # numbers of rows of the table
                return [np.intersect1d(test, rows) for test in tests]
            return [rows[test] for test in tests]
        check_whole("cv", self.cv, "2 folds or more, a splitter or a list", 2)
        n_folds = min(int(self.cv), len(rare))
        if n_folds < 2:
            alone = finding_about(label, FindingKind.SINGLE_ROW)
            warn(sentence(alone), UserWarning, alone)
            return []
        seed = 0 if self.random_state is None else self.random_state
        return [rows[test] for _, test in stratified(n_folds, is_rare, seed)]

    def _choose_candidate(
        self,
        tried: list[BallCandidate],
        held_out: dict[Any, list[HeldOutChoice]],
        called: np.ndarray | None,
    ) -> BallCandidate:
        """Choose the best candidate and keep the results; see `pu_scores` for `called`."""
        choices = [[one.choice for one in row] for row in held_out.values()]
        mean = judged = mean_f1(choices)
        if called is None:
            self.best_index_ = first_of_equals(choices)
        else:
            judged = pu_scores(choices, called)
            self.best_index_ = fewest_balls(judged, [one.n_balls for one in tried], choices)
        total = np.sum([[one.counts for one in row] for row in choices], axis=0)
        chosen = tried[self.best_index_]
        self.best_C1_, self.best_C2_, self.best_width_, self.best_margin_ = chosen[:4]
        self.best_n_balls_ = chosen.n_balls
        self.best_score_ = float(mean[self.best_index_]) if self.n_splits_ else np.nan
        best = [row[self.best_index_] for row in held_out.values()]
        slacks = [one.choice.slack for one in best]
        several = len(self.pos_labels_) > 1
        self.best_radius_slack_ = dict(zip(held_out, slacks, strict=True)) if several else slacks[0]
        self.held_out_rows_ = np.concatenate([one.rows for one in best])
        self.held_out_depths_ = np.concatenate([one.depths + one.choice.slack for one in best])
        counts = [one.choice.counts for one in best]
        self.score_interval_ = min(f1_interval(one) for one in counts)
        self.uncertainty_ = _uncertainty(counts, self.score_interval_)
        self.cv_results_ = {
            "C1": np.array([candidate.C1 for candidate in tried]),
            "C2": np.array([candidate.C2 for candidate in tried]),
            "width": np.array([candidate.width or np.nan for candidate in tried]),
            "margin": np.array([candidate.margin for candidate in tried]),
            "n_balls": np.array([candidate.n_balls for candidate in tried], dtype=object),
            **{name: total[:, k] for k, name in enumerate(ConfusionCounts._fields)},
            "f1": mean,
            "rank": ranks(judged),
        } | ({} if called is None else {"pu_score": judged})
        return chosen


def _uncertainty(counts: list[ConfusionCounts], interval: tuple[float, float]) -> str:
    tp, fp, fn = (int(k) for k in np.sum(counts, axis=0))
    if not tp + fp + fn:
        return "F1 is not known: no labelled row could be held out."
    return (
        f"Of {tp + fn:,} held-out rare rows {tp:,} lay inside, with {fp:,} false alarms among the "
        f"labelled majority. 95 % interval of the F1: {interval[0]:.2f} to {interval[1]:.2f}. "
        "Among unlabelled rows the precision is lower if rare rows are rarer there."
    )
