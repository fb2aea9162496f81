"""From balls to labels: what RACH and RACHCV share."""

from typing import Any, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import f1_score
from sklearn.utils.validation import check_is_fitted

from rareclass.estimators.estimator import read_features
from rareclass.hyperball.ball import Ball
from rareclass.hyperball.description import Description, describe
from rareclass.hyperball.picture import BallPicture, take_picture
from rareclass.hyperball.spaces import InputSpace, KernelSpace
from rareclass.labels.partial_labels import read_partial_labels
from rareclass.labels.two_classes import plain
from rareclass.rows import ArrayRows, Block


class BallClassifier(ClassifierMixin):
    """Predictions from balls, and the attributes of the only one.

    Whoever inherits has ``balls_``, ``classes_``, ``pos_labels_`` and ``majority_label_``.
    """

    def score_samples(self, X: Any) -> np.ndarray:
        """Depth in the ball, ``R^2 - distance^2``: at or above 0 inside, below outside.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Of several balls, the depth in the one in which a row lies deepest.
        """
        return self._depths(X).max(axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Depth, as scikit-learn orders classes.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes ``R^2 - distance^2``, negated where the rare class is ``classes_[0]``.
            With more, a column for each class: the depth in its ball, 0 for the majority.
        """
        by_class = self._by_class(X)
        if len(self.classes_) > 2:
            return by_class
        rare = int(self.classes_[1] == self.pos_labels_[0])
        return by_class[:, rare] if rare else -by_class[:, rare]

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: of the ball in which it lies deepest, else the majority's."""
        by_class = self._by_class(X)
        rare = [self._position(label) for label in self.pos_labels_]
        deepest = np.array(rare)[by_class[:, rare].argmax(axis=1)]
        inside = by_class[np.arange(len(by_class)), deepest] >= 0.0
        return self.classes_[np.where(inside, deepest, self._position(self.majority_label_))]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F1 of the rare class, the paper's measure: 2 tp / (2 tp + fp + fn), in [0, 1].

        With several rare categories the mean of theirs. Rows without a label do not count.

        Raises
        ------
        ValueError
            On a label that `fit` did not see.
        """
        predicted = self.predict(X)
        labels = read_partial_labels(y, sample_weight, None, len(predicted))
        known = np.flatnonzero(labels.code >= 0)
        true = labels.classes[labels.code[known]]
        new = np.flatnonzero(~np.isin(true, self.classes_))
        if len(new):
            raise ValueError(
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
        """What is typical of the inside: a table to read, and the rows nearest to the centre.

        Returns
        -------
        Description
            ``print`` shows it; ``.table``, ``.nearest_labelled``, ``.nearest_unlabelled`` and
            ``.overlaps`` hold the figures.
        """
        check_is_fitted(self, "balls_")
        return describe(self)

    def picture(self, ball: int = 0) -> BallPicture:
        """What a plot of a ball shows; `rareclass.report.draw_ball` draws it.

        Parameters
        ----------
        ball : int, default=0
            Which of ``balls_``.
        """
        check_is_fitted(self, "balls_")
        return take_picture(self, ball)

    def names_of(self, columns: Any) -> list[str]:
        """Names of some columns: those of the table, else x0, x1, ..."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{k}" if names is None else str(names[k]) for k in columns]

    # -- of the only ball ----------------------------------------------------------------------

    @property
    def pos_label_(self) -> Any:
        """The rare label, where there is one."""
        check_is_fitted(self, "pos_labels_")
        if len(self.pos_labels_) > 1:
            raise AttributeError(f"there are {len(self.pos_labels_)} rare labels: see pos_labels_.")
        return self.pos_labels_[0]

    @property
    def center_(self) -> np.ndarray:
        """Centre, shape (n_features,); with a kernel the landmarks' weights, (n_landmarks,)."""
        ball = self._only_ball("center_")
        if isinstance(ball.space, KernelSpace):
            return ball.space.coefficients(ball.center)
        return cast(InputSpace, ball.space).input_center(ball.center)

    @property
    def landmarks_(self) -> Any:
        """Landmarks that the weights in ``center_`` speak of; only with a kernel."""
        ball = self._only_ball("landmarks_")
        if not isinstance(ball.space, KernelSpace):
            raise AttributeError("a ball without a kernel has no landmarks.")
        return ball.space.landmarks

    @property
    def radius_(self) -> float:
        """R, in the units of the features or of the kernel's feature space."""
        return self._only_ball("radius_").radius

    @property
    def rows_(self) -> np.ndarray:
        """Numbers of the rows that entered the optimisation."""
        return self._only_ball("rows_").rows

    @property
    def multipliers_(self) -> np.ndarray:
        """Multipliers of ``rows_``: 0 inside, their bound outside, between on the sphere."""
        return self._only_ball("multipliers_").multipliers

    @property
    def support_(self) -> np.ndarray:
        """Numbers of the rows whose multiplier is above 0."""
        return self._only_ball("support_").support

    @property
    def objective_path_(self) -> tuple:
        """Problem 1 after each outer step; it never increases."""
        return self._only_ball("objective_path_").objective_path

    @property
    def duality_gap_(self) -> float:
        """Relative gap of the last inner problem."""
        return self._only_ball("duality_gap_").gap

    @property
    def n_iter_(self) -> int:
        """Outer steps of the ball that took most."""
        check_is_fitted(self, "balls_")
        return max(ball.n_outer for ball in self.balls_)

    @property
    def status_(self) -> str:
        """How the solver ended."""
        return self._only_ball("status_").status

    def _only_ball(self, name: str) -> Ball:
        if not hasattr(self, "balls_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: no {name}.")
        if len(self.balls_) > 1:
            raise AttributeError(
                f"there are {len(self.balls_)} balls, each with a {name.rstrip('_')} of its own: "
                "see balls_."
            )
        return self.balls_[0]

    def _by_class(self, X: Any) -> np.ndarray:
        """Depth of every row by class, 0 for the majority: shape (n_rows, n_classes)."""
        depths = self._depths(X)
        by_class = np.full((len(depths), len(self.classes_)), -np.inf)
        by_class[:, self._position(self.majority_label_)] = 0.0
        for ball, depth in zip(self.balls_, depths.T, strict=True):
            column = by_class[:, self._position(ball.label)]
            np.maximum(column, depth, out=column)
        # Labels that got no ball are not predicted.
        return np.where(np.isfinite(by_class), by_class, np.finfo(np.float64).min)

    def _depths(self, X: Any) -> np.ndarray:
        """Depth of every row in every ball, in one pass: shape (n_rows, n_balls)."""
        if not getattr(self, "refit", True):
            raise AttributeError("this RACHCV has no balls: fit it with refit=True.")
        check_is_fitted(self, "balls_")
        source = read_features(self, X, reset=False, squares=True)
        return ArrayRows(source, n_jobs=self.n_jobs).map(_block_depths, self.balls_)

    def _position(self, label: Any) -> int:
        return int(np.flatnonzero(self.classes_ == label)[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _block_depths(block: Block, balls: tuple[Ball, ...]) -> np.ndarray:
    X = block.X
    return np.column_stack([ball.depth(X) for ball in balls])
