"""RankRCCV: the paper's selection of lam by cross-validation, and of the width with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rareclass.estimators.estimator import RankScorer, learned
from rareclass.estimators.search import SCORINGS
from rareclass.metrics import roc_auc
from rareclass.parameters import check_number
from rareclass.ranking.rankrc import RankRC
from rareclass.ranking.search import KernelSearch


@dataclass(eq=False, repr=False)
class RankRCCV(RankScorer, KernelSearch):
    """`RankRC` with lam chosen by cross-validation.

    One kernel serves all folds and lams of a width, which share the passes of the rows. In a fold
    the held-out rows have no weight and held-out rare rows are no landmarks.

    Parameters
    ----------
    lams : sequence of float or None, default=None
        Regularisations to try. None is the paper's grid, 2**10, 2**8, ..., 2**-20; with
        ``penalty="l1"`` it begins where the first landmark comes in, as the data have it:
        :math:`\\lambda_{\\max} 2^{-k/2}` for k = 1/32, 1/16, ..., 1, 2, 3, ..., 32.
    cv : int, splitter or iterable of (train, test), default=10
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare
        rows, so that every fold holds some.
    scoring : {"roc_auc", "average_precision"} or callable, default="roc_auc"
        What to maximise; a callable takes (y, scores, sample_weight) with y true for rare rows.
        Fold means decide; among equals the widest kernel, and the largest lam.
    equal_within : float, default=0.002
        With "roc_auc", areas that are no further below the best are as good as equal, and of them
        the best average precision decides: rare rows that are nearly all first tell models apart
        by little else. 0 takes the largest area, as the paper does.
    refit : bool, default=True
        Fit on all rows with the best lam afterwards, which predicting needs.
    max_landmarks : int or None, default=None
        With ``penalty="l1"``: only lams whose model of all rows uses at most so many landmarks,
        and one at least, are tried. Fewer score faster, and too few rank worse.
    widths : sequence of float or None, default=None
        Widths of the kernel to choose from together with lam, as multiples of `width`, such as
        ``[0.5, 0.7, 1, 1.4]``. Each costs a kernel and its folds and lams.
    search_rows : int or None, default=None
        At most so many rows choose, and the best model is fitted on all: the rare rows, up to
        half as many, and majority rows drawn to fill up, with weights that make up for it. None:
        all rows choose. On many rows some 20,000 are nearly as good a judge, at a small part of the
        price; with them lam comes out a little larger than all rows would have it. Their models
        are found to a `tol` of 1e-2 where that is "auto".
    kernel, width, landmarks, loss, eps, loss_params, penalty, feature_scaling, tol, max_iter, \
memory, kernel_dtype, n_jobs, random_state, pos_label, verbose
        As in `RankRC`; `random_state` also shuffles the folds. ``width="mean"`` is taken over all
        rows.

    Attributes
    ----------
    best_lam_, best_width_ : float
        The best lam, and sigma: a multiple of the width of all rows where `widths` are given.
    best_score_ : float
        Mean score over the folds of the best. It is chosen from many, so a little high.
    best_estimator_, best_index_, n_splits_
        The model of all rows, when `refit`; its position in `cv_results_`; number of folds.
    cv_results_ : dict of ndarray
        ``lam``, ``width``, ``split{k}_test_score``, ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, with "roc_auc" and `equal_within` above 0
        ``mean_test_average_precision``, ``n_stopped_short`` (folds whose solver did),
        ``mean_n_iter``, ``mean_passes``, ``mean_n_landmarks`` (in use, over the folds), and with
        `max_landmarks` ``n_landmarks`` (in use by the model of all rows), one entry for each width
        and lam.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy over all rows, each
        scored by the model of the fold that held it out; with "f1" the best F1, with "break_even"
        as many rows as are rare, with "precision_at_k" k.
    calibration_ : Calibration
        From these scores to the probabilities of `predict_proba`.
    feature_scales_ : ndarray of shape (n_features,) or None
        Learned on all rows; each fold learns scales of its own from its training rows.

    Notes
    -----
    Section 6 of the paper. Time: folds x lams solutions over one kernel of rows x landmarks; a pass
    of the rows serves up to 16 of them at once, and held-out scores of all folds and lams take one
    pass together. A fold without a rare or a majority row is an error.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> model = RankRCCV(lams=[1.0, 0.01], cv=3).fit(X, y)
    >>> model.best_lam_ in (1.0, 0.01)
    True

    The width, too, chosen on 200 of the rows:

    >>> model = RankRCCV(lams=[1.0, 0.01], widths=[0.5, 1.0], search_rows=200, cv=3).fit(X, y)
    >>> model.best_width_ == model.best_estimator_.width_
    True

    At most three landmarks:

    >>> sparse = RankRCCV(penalty="l1", max_landmarks=3, cv=3).fit(X, y)
    >>> sparse.best_estimator_.n_landmarks_ <= 3
    True
    """

    _machine = RankRC
    _scorings = SCORINGS
    _calibrates = True
    calibration_ = learned("_best.calibration_", "From held-out scores to probabilities.")
    offset_ = learned("_best.offset_", "Threshold of the score, learned on held-out scores.")

    lams: Sequence[float] | None = None
    cv: Any = 10
    scoring: Any = "roc_auc"
    equal_within: float = 0.002
    refit: bool = True
    max_landmarks: int | None = None
    widths: Sequence[float] | None = None
    search_rows: int | None = None
    kernel: Any = "gaussian"
    width: Any = "mean"
    landmarks: Any = "rare"
    pos_label: Any = field(default=None, kw_only=True)

    @property
    def _between_equals(self) -> tuple[str, float] | None:
        decides = self.equal_within > 0 and self.scoring in ("roc_auc", roc_auc)
        return ("average_precision", self.equal_within) if decides else None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("equal_within", self.equal_within, "a number of at least 0", ends="[)")
