"""The methods of the RACH table. Each gets all rows and the known labels and guesses the others.

Grids, with r majority labels to a rare one and widths as multiples of RankRC's gamma, 1 over the
mean squared distance of all rows; the first candidate of each is what one rare label is left with.

- RACHCV: `RACHCV(kernel="gaussian")` with its own grids; it has a margin, a border by share and a
  learned radius, which the paper has not.
- RACH (paper's form): none of these, with its C1, C2 and width (`rach_paper`).
- KNN: 1, 3, 5, 9 or 15 neighbours, majority vote.
- Manifold ranking: as the paper cites it (`manifold_ranking`), sigma of 1, 0.5, 2 typical
  distances, alpha 0.99 or 0.9; the threshold is the one with the best F1 on left-out rows, with one
  rare label the one that the share of rare labels lies above.
- Label spreading (kin of manifold ranking, with the majority's labels): scikit-learn's, on the
  graph of the 5, 10 or 20 nearest rows, Gaussian weights as wide as the typical distance to the
  last of them; alpha 0.9, 0.5 or 0.99.
- Undersampling: SVM with the Gaussian kernel on all rare labels and as many random majority ones;
  C of 1, 10, 100 and widths 1, 1/4, 4, 16, 64, 256.
- TSVM: `transductive_svm` with the Gaussian kernel and balanced prices of labels, C and width those
  of the SVM with the best left-out F1, from the grids just named; then all unlabelled rows together
  weigh 0.1, 0.01 or 1 times the labels. 200 landmarks; 500 random unlabelled rows take part.
- Self-training (another way to use unlabelled rows): SVM with the Gaussian kernel and balanced
  weights, C and width from the grids just named; then rows that lie further than a margin of 1 or
  0.5 from the border join in twice, or none do, as cross-validation says.
- SVM-Perf: the linear structural SVM of the F1 loss (`svm_perf`), C of 100, 10, 1,000.
- Linear F1 (another way to a linear rule with the best F1): linear SVM, weights balanced or not, C
  of 1, 0.01, 0.1, 10, 100; the threshold is the one with the best F1 on left-out rows.
- One-class: one-class SVM of the rare labels; nu of 0.1, 0.02, 0.3, 0.5, widths as above.
- LightGBM: 60 trees of up to 7 leaves of at least 2 or 10 rows; a rare row weighs r, sqrt(r) or 1.
"""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, LinearSVC, OneClassSVM

from benchmarks.paper_tables import neighbours, rach_paper, svm_perf, transductive_svm
from benchmarks.paper_tables.manifold_ranking import ranking
from benchmarks.paper_tables.protocol import gaussian_gamma
from benchmarks.paper_tables.rach_choice import (
    MAJORITY,
    RARE,
    Scores,
    Task,
    best_threshold,
    choose,
    left_out_scores,
)

RACH, PAPER, PERF = "RACHCV", "RACH (paper's form)", "SVM-Perf"
# 1 for every row that is taken for rare, and what was chosen. Labelled rows do not matter.
Guess = tuple[np.ndarray, Any]
Method = Callable[[Task, int], Guess]

NEIGHBOURS = (1, 3, 5, 9, 15)
MANIFOLDS = tuple(product((1.0, 0.5, 2.0), (0.99, 0.9)))
GRAPHS = tuple(product((10, 5, 20), (0.9, 0.5, 0.99)))
WIDTHS = (1.0, 0.25, 4.0, 16.0, 64.0, 256.0)
PRICES = (1.0, 10.0, 100.0)
UNLABELLED_WEIGHTS, LANDMARKS, MOST_UNLABELLED = (0.1, 0.01, 1.0), 200, 500
MARGINS = (None, 1.0, 0.5)
ROUNDS = 2
PERF_PRICES = (100.0, 10.0, 1000.0)
LINEAR = tuple(product((1.0, 0.01, 0.1, 10.0, 100.0), ("balanced", None)))
NUS = (0.1, 0.02, 0.3, 0.5)
LEAVES, TREES = (2, 10), 60
WEIGHTS = ("r", "sqrt r", "1")
SPREADING_STEPS = 200


def rach(task: Task, seed: int) -> Guess:
    """RACHCV on all rows, the unlabelled ones included."""
    from rareclass import RACHCV  # the others need none of it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few labels: that is what is measured
        model = RACHCV(kernel="gaussian", random_state=seed, n_jobs=1).fit(task.X, task.y)
    chosen = (model.best_C1_, model.best_C2_, model.best_width_)
    return (model.transduction_ == RARE).astype(np.int8), chosen


def knn(task: Task, seed: int) -> Guess:
    """The vote of the nearest labelled rows."""

    def scores(k: int, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        counts = [min(k, len(train))]
        path = neighbours.fit(task.X[train], task.y[train], counts, seed)
        return path.scores(task.X[rows], [0])[:, 0] - 0.5

    return _chosen_by(task, seed, NEIGHBOURS, scores)


def manifold_ranking(task: Task, seed: int) -> Guess:
    """Nearness to the rare labels along the manifold, cut at the threshold of the best F1."""

    def scores(one: tuple[float, float], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return ranking(task.X, train[task.y[train] == RARE], *one)[rows]

    def by_share(found: np.ndarray) -> float:
        return float(np.quantile(found, 1.0 - np.mean(task.y[task.known] == RARE)))

    return _thresholded(task, seed, MANIFOLDS, scores, by_share)


def label_spreading(task: Task, seed: int) -> Guess:
    """Labels spread over a graph of all rows."""
    graphs = {k: graph(task.X, k) for k in dict(GRAPHS)}

    def scores(candidate: tuple[int, float], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        k, alpha = candidate
        model = LabelSpreading(
            kernel=lambda _, __: graphs[k], alpha=alpha, max_iter=SPREADING_STEPS
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(task.X, task.labels_of(train))
        return np.where(model.transduction_[rows] == RARE, 1.0, -1.0)

    return _chosen_by(task, seed, GRAPHS, scores)


def undersampling(task: Task, seed: int) -> Guess:
    """SVM on as many majority labels as rare ones."""

    def scores(candidate: tuple[float, float], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        kept = balanced(train, task.y, seed)
        return _svm(task, candidate, None).fit(task.X[kept], task.y[kept]).decision_function(
            task.X[rows]
        )  # fmt: skip

    return _chosen_by(task, seed, tuple(product(PRICES, WIDTHS)), scores)


def tsvm(task: Task, seed: int) -> Guess:
    """Transductive SVM on the features of a Gaussian kernel."""
    C, width = choose(task, seed, tuple(product(PRICES, WIDTHS)), _plain_svm(task))
    rare = task.known[task.y[task.known] == RARE]
    gamma = gaussian_gamma(task.X) * width
    Z = transductive_svm.gaussian_features(task.X, gamma, LANDMARKS, seed, rare)

    def scores(weight: float, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        others = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(Z)), train))
        unlabelled = others[:MOST_UNLABELLED]
        y = np.where(task.y[train] == RARE, 1.0, -1.0)
        price = C * 0.5 * len(y) / np.where(y > 0.0, (y > 0.0).sum(), (y < 0.0).sum())
        each = weight * price.sum() / len(unlabelled)
        problem = transductive_svm.Problem(Z[train], y, price, Z[unlabelled], each, float(y.mean()))
        return transductive_svm.fit(problem).scores(Z[rows])

    guess, weight = _chosen_by(task, seed, UNLABELLED_WEIGHTS, scores)
    return guess, (C, width, weight)


def self_training(task: Task, seed: int) -> Guess:
    """SVM that takes far unlabelled rows at its own word."""

    plain = _plain_svm(task)
    best = choose(task, seed, tuple(product(PRICES, WIDTHS)), plain)

    def scores(margin: float | None, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if margin is None:
            return plain(best, train, rows)
        model = SelfTrainingClassifier(
            Squashed(_svm(task, best, "balanced")), threshold=expit(margin), max_iter=ROUNDS
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no unlabelled row is far enough
            model.fit(task.X, task.labels_of(train))
        return np.where(model.predict(task.X[rows]) == RARE, 1.0, -1.0)

    guess, margin = _chosen_by(task, seed, MARGINS, scores)
    return guess, (*best, margin)


def svm_perf_f1(task: Task, seed: int) -> Guess:
    """SVM-Perf with the loss of F1, at its own threshold."""

    def scores(C: float, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return svm_perf.fit(task.X[train], task.y[train], C)(task.X[rows])

    return _chosen_by(task, seed, PERF_PRICES, scores)


def linear_f1(task: Task, seed: int) -> Guess:
    """Linear SVM with the threshold of the best F1."""

    def scores(candidate: tuple[float, Any], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        C, weight = candidate
        model = LinearSVC(C=C, class_weight=weight, dual=False, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(task.X[train], task.y[train]).decision_function(task.X[rows])

    return _thresholded(task, seed, LINEAR, scores, lambda _: 0.0)


def one_class(task: Task, seed: int) -> Guess:
    """One-class SVM of the rare labels; the majority ones help to choose."""
    gamma = gaussian_gamma(task.X)

    def scores(candidate: tuple[float, float], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        nu, width = candidate
        rare = train[task.y[train] == RARE]
        return OneClassSVM(nu=nu, gamma=gamma * width).fit(task.X[rare]).decision_function(
            task.X[rows]
        )  # fmt: skip

    return _chosen_by(task, seed, tuple(product(NUS, WIDTHS)), scores)


def lightgbm(task: Task, seed: int) -> Guess:
    """Small boosted trees."""

    def scores(candidate: tuple[int, str], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        leaf, weight = candidate
        y = task.y[train]
        ratio = (y == MAJORITY).sum() / (y == RARE).sum()
        model = LGBMClassifier(
            n_estimators=TREES, num_leaves=7, min_child_samples=leaf, n_jobs=1, verbose=-1,
            scale_pos_weight={"r": ratio, "sqrt r": np.sqrt(ratio), "1": 1.0}[weight],
            random_state=seed,
        ).fit(task.X[train], y)  # fmt: skip
        return model.booster_.predict(task.X[rows], raw_score=True)

    return _chosen_by(task, seed, tuple(product(LEAVES, WEIGHTS)), scores)


METHODS: dict[str, Method] = {
    RACH: rach,
    PAPER: rach_paper.guess,
    "KNN": knn,
    "Manifold ranking": manifold_ranking,
    "Label spreading": label_spreading,
    "Undersampling": undersampling,
    "TSVM": tsvm,
    "Self-training": self_training,
    PERF: svm_perf_f1,
    "Linear F1": linear_f1,
    "One-class": one_class,
    "LightGBM": lightgbm,
}


class Squashed(ClassifierMixin, BaseEstimator):
    """Gives a decision function's values as probabilities 1 / (1 + exp(-value)).

    Self-training asks for probabilities; those of libsvm need folds of their own and many more
    rare labels. Squashed, a margin of m is a probability of expit(m).
    """

    def __init__(self, machine: Any = None):
        self.machine = machine

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Squashed":
        """Fit the machine itself."""
        self.machine.fit(X, y)
        self.classes_ = self.machine.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """One column a class."""
        rare = expit(self.machine.decision_function(X))
        return np.column_stack([1.0 - rare, rare])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """As the machine does."""
        return self.machine.predict(X)


def graph(X: np.ndarray, k: int) -> sparse.csr_array:
    """Each row and its k nearest, exp(-d^2 / (2 s^2)), s the median distance to the k-th."""
    k = min(k, len(X) - 1)
    distances = NearestNeighbors(n_neighbors=k).fit(X).kneighbors_graph(mode="distance")
    typical = np.median(np.max(distances.data.reshape(len(X), k), axis=1))
    weights = sparse.csr_array(distances)
    weights.data = np.exp(-0.5 * (weights.data / max(typical, 1e-12)) ** 2)
    return weights.maximum(weights.T).tocsr()


def balanced(rows: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """All rare rows and as many random ones of the majority."""
    rare, majority = rows[y[rows] == RARE], rows[y[rows] == MAJORITY]
    drawn = np.random.default_rng(seed).permutation(majority)[: len(rare)]
    return np.concatenate([rare, drawn])


def _svm(task: Task, candidate: tuple[float, float], weight: str | None) -> SVC:
    C, width = candidate
    return SVC(C=C, gamma=gaussian_gamma(task.X) * width, class_weight=weight, cache_size=500)


def _plain_svm(task: Task) -> Scores:
    def scores(candidate: tuple[float, float], train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        model = _svm(task, candidate, "balanced").fit(task.X[train], task.y[train])
        return model.decision_function(task.X[rows])

    return scores


def _thresholded(
    task: Task, seed: int, candidates: Any, scores: Scores, otherwise: Callable[[np.ndarray], float]
) -> Guess:
    """Cut scores at the threshold of the best F1 on left-out rows, or `otherwise` with none."""
    truth, found = left_out_scores(task, seed, candidates, scores)
    bests = [best_threshold(truth, one) for one in found]
    which = int(np.argmax([value for value, _ in bests])) if bests else 0
    final = scores(candidates[which], task.known, task.unknown)
    threshold = bests[which][1] if bests else otherwise(final)
    return _all_rows(task, final > threshold), (*candidates[which], float(f"{threshold:.4g}"))


def _chosen_by(task: Task, seed: int, candidates: Any, scores: Scores) -> Guess:
    best = choose(task, seed, candidates, scores)
    return _all_rows(task, scores(best, task.known, task.unknown) > 0.0), best


def _all_rows(task: Task, rare: np.ndarray) -> np.ndarray:
    """Guesses of the unlabelled rows beside the known labels."""
    guess = (task.y == RARE).astype(np.int8)
    guess[task.unknown] = rare
    return guess
