"""RACH: balls around rare categories, from a few labels and many rows without."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import FitsRows, learned, read_features
from rareclass.findings import Status, warn
from rareclass.hyperball.ball import (
    Ball,
    ball_findings,
    fit_ball,
    sentence,
    stopped_short,
    transduced,
)
from rareclass.hyperball.description import BallPicture, Description, describe, take_picture
from rareclass.hyperball.pool import SHARE, RACHParameters, Survey, make_space, survey
from rareclass.hyperball.problem import KernelSpace
from rareclass.labels.partial_labels import PartialLabels, read_partial_labels
from rareclass.labels.spelling import plain
from rareclass.rows import ArrayRows, Block


class BallClassifier(ClassifierMixin):
    """Predictions from balls, and the attributes of the only ball.

    Subclasses have ``balls_``, ``classes_``, ``pos_labels_`` and ``majority_label_``.
    """

    refit = True  # whether fitting leaves balls

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the depth in the ball, ``R^2 - distance^2``: at or above 0 inside.

        Of several balls, the depth in the one in which a row lies deepest; shape (n_rows,).
        """
        return self._depths(X).max(axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the depth, as scikit-learn orders classes.

        With two classes ``R^2 - distance^2`` of shape (n_rows,), negated where the rare class is
        ``classes_[0]``. With more, of shape (n_rows, n_classes): the depth in the ball of each
        class, 0 for the majority.
        """
        by_class = self._by_class(X)
        if len(self.classes_) > 2:
            return by_class
        rare = int(self.classes_[1] == self.pos_labels_[0])
        return by_class[:, rare] if rare else -by_class[:, rare]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of the ball in which a row lies deepest, else the majority's."""
        by_class = self._by_class(X)
        rare = [self._position(label) for label in self.pos_labels_]
        deepest = np.array(rare)[by_class[:, rare].argmax(axis=1)]
        inside = by_class[np.arange(len(by_class)), deepest] >= 0.0
        return self.classes_[np.where(inside, deepest, self._position(self.majority_label_))]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the F1 of the rare class, the paper's measure: 2 tp / (2 tp + fp + fn), in [0, 1].

        With several rare categories the mean of theirs. Rows without a label do not count. Raises
        `ValueError` on a label that `fit` did not see.
        """
        predicted = self.predict(X)
        labels = read_partial_labels(y, sample_weight, None, len(predicted))
        known = np.flatnonzero(labels.code >= 0)
        true = labels.classes[labels.code[known]]
        new = np.flatnonzero(~np.isin(true, self.classes_))
        if len(new):
            raise ErrorKind.LABELS.error(
                f"row {known[new[0]]}: label {plain(true[new[0]])!r} is not among the classes "
                f"{self.classes_.tolist()}. Labels must be spelled as those that fit was given."
            )
        of_each = f1_score(
            true,
            predicted[known],
            labels=np.array(self.pos_labels_),
            average=None,
            sample_weight=None if labels.weight is None else labels.weight[known],
            zero_division=0.0,
        )
        return float(np.mean(of_each))

    def describe(self) -> Description:
        """Describe what is typical of the inside: figures, and a text that ``print`` shows."""
        check_is_fitted(self, "balls_")
        return describe(self)

    def picture(self, ball: int = 0) -> BallPicture:
        """Return the data of a plot of ``balls_[ball]``; see `rareclass.report.draw_ball`."""
        check_is_fitted(self, "balls_")
        return take_picture(self, ball)

    def names_of(self, columns: Any) -> list[str]:
        """Return the names of some columns: those of the table, else x0, x1, ..."""
        names = vars(self).get("feature_names_in_")
        return [f"x{k}" if names is None else str(names[k]) for k in columns]

    @property
    def pos_label_(self) -> Any:
        """The rare label, where there is one."""
        check_is_fitted(self, "pos_labels_")
        if len(self.pos_labels_) > 1:
            raise AttributeError(f"there are {len(self.pos_labels_)} rare labels: see pos_labels_.")
        return self.pos_labels_[0]

    radius_ = learned("_only_ball.radius", "R, in the units of the distances.")
    rows_ = learned("_only_ball.rows", "Numbers of the rows that entered the optimisation.")
    multipliers_ = learned(
        "_only_ball.solution.multipliers",
        "Multipliers of ``rows_``: 0 inside, their bound outside, between on the sphere.",
    )
    support_ = learned("_only_ball.support", "Numbers of the rows whose multiplier is above 0.")
    objective_path_ = learned(
        "_only_ball.solution.objective_path", "Problem 1 after each outer step; it never increases."
    )
    duality_gap_ = learned("_only_ball.solution.gap", "Relative gap of the last inner problem.")
    status_ = learned("_only_ball.solution.status", "How the solver ended.")

    @property
    def center_(self) -> np.ndarray:
        """Centre, shape (n_features,); with a kernel the landmarks' weights, (n_landmarks,)."""
        ball = self._only_ball
        if isinstance(ball.space, KernelSpace):
            return ball.space.coefficients(ball.center)
        return ball.space.input_center(ball.center)

    @property
    def landmarks_(self) -> Any:
        """Landmarks that the weights in ``center_`` belong to; only with a kernel."""
        ball = self._only_ball
        if not isinstance(ball.space, KernelSpace):
            raise AttributeError("a ball without a kernel has no landmarks.")
        return ball.space.landmarks

    @property
    def n_iter_(self) -> int:
        """Outer steps of the ball that took most."""
        check_is_fitted(self, "balls_")
        return max(ball.solution.n_outer for ball in self.balls_)

    @property
    def _only_ball(self) -> Ball:
        if len(self.balls_) > 1:
            raise AttributeError(
                f"there are {len(self.balls_)} balls, each with a center and radius of its own: "
                "see balls_."
            )
        return self.balls_[0]

    def _by_class(self, X: Any) -> np.ndarray:
        """Return the depth of every row by class, 0 for the majority: (n_rows, n_classes)."""
        depths = self._depths(X)
        by_class = np.full((len(depths), len(self.classes_)), -np.inf)
        by_class[:, self._position(self.majority_label_)] = 0.0
        for ball, depth in zip(self.balls_, depths.T, strict=True):
            column = by_class[:, self._position(ball.label)]
            np.maximum(column, depth, out=column)
        # Labels that got no ball are not predicted.
        return np.where(np.isfinite(by_class), by_class, np.finfo(np.float64).min)

    def _depths(self, X: Any) -> np.ndarray:
        """Return the depth of every row in every ball, in one pass: (n_rows, n_balls)."""
        if not self.refit:
            raise AttributeError("this RACHCV has no balls: fit it with refit=True.")
        check_is_fitted(self, "balls_")
        source = read_features(self, X, reset=False, squares=True)
        return ArrayRows(source, n_jobs=self.n_jobs).map(_block_depths, self.balls_)

    def _position(self, label: Any) -> int:
        return int(np.flatnonzero(self.classes_ == label)[0])


def _block_depths(block: Block, balls: tuple[Ball, ...]) -> np.ndarray:
    X = block.X
    return np.column_stack([ball.depth(X) for ball in balls])


class RACH(RACHParameters, BallClassifier, FitsRows, BaseEstimator):
    r"""Rare category characterisation: the smallest ball that explains a few labels.

    .. math::

        \min_{c, R, a, b \ge 0} \; R^2 + C_1 \sum_i a_i + C_2 \sum_k b_k \quad \text{with} \quad
        \|x_i - c\|^2 \ge R^2 - a_i, \;\; \|x_j - c\|^2 \le R^2, \;\; \|x_k - c\|^2 \le R^2 + b_k

    over the majority rows i, the rare rows j and the unlabelled rows k: the confirmed cases lie
    inside, the cleared rows should not, and the unlabelled ones near the cases are to lie inside
    where they are dense. Unlabelled rows far from the cases are left out before (Algorithm 1).

    Parameters
    ----------
    C1 : float, default=1.0
        Price of a majority row inside, for each unit of squared distance. Larger makes smaller,
        purer balls.
    C2 : float, default=0.0
        Price of an unlabelled row outside. 0 leaves unlabelled rows out of the optimisation, as
        `RACHCV` does by default: no rule for C2 was better (docs/decisions/0020). Larger makes
        larger balls: at the solution
        ``1 + C1 * (majority rows inside) = C2 * (unlabelled rows outside)``, about. Start with
        ``0.3 / (unlabelled rows that the filter keeps)``: a C2 that does for 100 rows swallows
        10,000.
    kernel : {"gaussian", "laplace", "polynomial"}, Kernel, callable or None, default=None
        None is a ball among the rows themselves, which can be read; standardise them first. With
        a kernel the ball lies in its feature space, and its shape among the rows is free.
    width : float or "mean", default="mean"
        Sigma of the kernel, in the units of the features; "mean" is the root mean squared distance
        between rows. Smaller is more flexible.
    n_landmarks : int, default=500
        Rows that carry the centre where a kernel meets more rows than that; more is more exact.
    margin : float, default=0.0
        Squared distance (a Gaussian kernel's are at most 2) between the ball that holds the rare
        rows and the one that the majority rows are to stay out of; the border lies half way. 0 is
        the paper's Problem 1, which puts the outermost cases on the border itself.
    radius : {"solved", "share"} or dict, default="solved"
        Where the border is; a dict names it for each rare label. "solved" is the radius of Problem
        1, half way where there is a margin. "share" is the distance within which `rare_share` of
        the unlabelled rows falls, which needs fewer labels, but right ones.
    radius_slack : float or dict, default=0.0
        Added to the squared radius, for each rare label where it is a dict; `RACHCV` learns it.
    rare_share : float or None, default=None
        Share of the unlabelled rows that is rare, in (0, 1], dealt out to several balls as their
        labelled rows are. None: that of the labelled ones, which is right where rows were labelled
        as they came, and far too large where cases were sought.
    filter : bool or float, default=True
        Leave out unlabelled rows that are farther from the rare rows' centre than 3 times (or this
        number of times) the distance within which `rare_share` of them falls. False keeps all.
    max_kept : int, default=20000
        Most unlabelled rows that the filter keeps, and most majority rows: the nearest stay.
    n_balls : int or "auto", default=1
        Balls for each rare category, one for each k-means group of its rows. "auto": as few as
        make every ball narrower than the spread of the other rows.
    tol : float, default=1e-6
        Relative duality gap to stop at.
    max_outer : int, default=50
        Most outer steps.
    max_inner : int, default=5000
        Most steps of the solver in each.
    random_state : int, RandomState or None
        For k-means and for the sample that `describe` compares with. None is 0.
    n_jobs : int or None, default=None
        Threads over rows; the result does not depend on it.
    pos_label : label, list of labels or None, default=None
        The rare categories. None: of two labels the one with fewer rows, of more than two all but
        the one with the most rows. Each gets balls of its own, to which labelled rows of the other
        categories are majority rows.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_rows,)
        The label of every training row: its own where it has one, else the rare one where its
        multiplier is below its bound (with a margin or slack, where it lies within the radius).
        Rows that the filter left out are taken for majority; `predict` may find some inside.
    balls_ : tuple of Ball
        One for each category or group of it.
    pos_labels_ : tuple
        The rare labels.
    majority_label_ : label
        What is predicted outside; -1, or a text, where no row had another label than the rare.
    findings_, messages_ : list of Finding, list of str
        What should be known of the balls, each with a remedy (`rareclass.findings`), as data and in
        sentences; they are warned of as well.
    width_ : float or None
        Sigma.

    Raises
    ------
    ValueError
        On a parameter out of range, a missing or infinite value in X (naming row and column), no
        label at all, or a `pos_label` that no row has.

    Notes
    -----
    Time: a pass over the unlabelled rows, then ``n p`` for each step of the solver, with n rows
    kept and p features or landmarks; with a kernel ``n n_landmarks^2`` before. Memory: the kept
    rows, and ``8 n n_landmarks`` bytes with a kernel.

    References
    ----------
    .. [1] He, Tong, Carbonell, "Rare category characterization", ICDM 2010.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.2], [6.0], [7.0], [2.0]]
    >>> y = [1, -1, -1, 1, 0, 0, 0, -1, -1]
    >>> RACH(C2=0.05, filter=False).fit(X, y).transduction_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0, 0]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the balls.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first where their units differ.
        y : array-like of shape (n_rows,)
            Labels; unlabelled rows hold -1, None, NaN, an empty text or a masked entry.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times, 0 leaves it out.
        """
        self._checked()
        source = read_features(self, X, squares=True)
        labels = read_partial_labels(y, sample_weight, self.pos_label, source.n_rows)
        self._check_labels_named(labels.rare)
        return self._fit_survey(labels, survey(self, source, labels))

    def _fit_survey(self, labels: PartialLabels, known: Survey) -> Self:
        """Fit the balls of a survey whose rows were gathered before."""
        self.width_ = None
        if self.kernel is not None:
            self.width_ = known.width if self.width == "mean" else float(self.width)
        balls, found = [], []
        for pool in known.pools:
            space, points = make_space(self.kernel, self.width_ or 1.0, pool, self.n_landmarks)
            of_ball = self._of_ball(pool.label)
            balls.append(fit_ball(space, points, pool, of_ball))
            by_share = of_ball.radius == SHARE
            found += ball_findings(balls[-1], pool, known.background, self.max_kept, by_share)
        self.balls_, self.findings_ = tuple(balls), found
        self.messages_ = [sentence(finding) for finding in found]
        self.classes_, self.pos_labels_ = labels.classes, labels.rare
        self.majority_label_ = labels.majority
        self.transduction_ = transduced(labels, self.balls_)
        self.background_ = known.background
        for finding in found:
            warn(sentence(finding), UserWarning, finding)
        for ball in balls:
            if ball.solution.status == Status.MAX_ITER:
                short = stopped_short(ball)
                warn(sentence(short), ConvergenceWarning, short)
        return self
