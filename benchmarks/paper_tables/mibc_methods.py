"""The methods of the MIBC tables: each fits its grid, chooses on the validation part, is timed.

- MIBC: full covariance on dense rows, diagonal on text (section 7); C chosen. "MIBC ridge": also
  the ridge among `RIDGES`, as many values as the others have cost ratios. "MIBC" on text has the
  default ridge of compressed rows, one mean variance; "MIBC bare" has a thousandth, as near to the
  paper's diagonal as words that the majority never holds allow. "MIBC factors": the
  covariance of section 5.3, on text. "MIBC features": C and ridge on dense rows that a Nyström map
  of the Gaussian kernel (RankRC's width, 300 random landmarks) made nonlinear; the map is timed
  with the moments.
- Cost-sensitive: liblinear with the hinge loss, by its dual, as the paper has it; C and the ratio
  of weights chosen. "Cost-sensitive squared": the squared hinge, liblinear's default, by the
  primal on dense rows, where that is up to 30 times faster than the dual, and by the dual on text,
  where it is the other way round.
- Undersampling: the same hinge loss on all positives and as many random negatives.

liblinear makes at most 1,000 passes, scikit-learn's default; fits that stop there are counted and
used as they are. Everything runs on one thread, input checks included in every time.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.paper_tables.mibc_sets import Parts, Rows
from benchmarks.paper_tables.protocol import gaussian_gamma
from rareclass.metrics import roc_auc
from rareclass.moments import MIBC
from rareclass.moments.covariance import make_covariance
from rareclass.moments.moments import moments_of
from rareclass.moments.solution import solve_path
from rareclass.rows import as_source

CS = 10.0 ** np.arange(-4, 6)
RIDGES: tuple[Any, ...] = (10.0, 1.0, 0.1, 0.01, 0.0)
N_FACTORS = 50
MOST_LANDMARKS = 300


class Candidate(NamedTuple):
    """Something that may be chosen.

    Attributes
    ----------
    C : float
    other : float, "auto" or None
        Ratio of weights, or ridge.
    auc : float
        On the validation part.
    ms : float
        Milliseconds that it took: a fit of liblinear, a solution of MIBC whose moments are known.
    scores : callable
        Rows to scores.
    """

    C: float
    other: Any
    auc: float
    ms: float
    scores: Callable[[Any], np.ndarray]


Method = Callable[[Parts, int], dict[str, Any]]


def chosen(candidates: list[Candidate]) -> Candidate:
    """The best on the validation part; of equals the first that was tried."""
    return candidates[int(np.argmax([candidate.auc for candidate in candidates]))]


def moments(covariance: str, ridges: Iterable[Any] = ("auto",)) -> Method:
    """MIBC: moments summed once, factorised once a ridge, solved for every C."""

    def run(parts: Parts, seed: int) -> dict[str, Any]:
        train = parts.train
        source, rare = as_source(train.X), np.flatnonzero(train.y == 1)
        wanted = make_covariance(covariance, N_FACTORS, "auto").wanted(seed)
        sums, summing = timed(
            moments_of, source, wanted, None, (train.y == 0).astype(float), n_jobs=1
        )
        candidates, factorising = [], []
        for ridge in ridges:
            model = make_covariance(covariance, N_FACTORS, ridge)
            modelled, ms = timed(_modelled, model, sums, source.is_sparse)
            if modelled is None:
                continue  # singular without a ridge
            factorising.append(ms)
            problem = (modelled, sums.mean, source.take(rare), np.ones(len(rare)))
            for C in CS:
                path, ms = timed(solve_path, *problem, [C], 1e-6, 1000, seed)
                scores = _linear(path[0].coef)
                candidates.append(Candidate(C, ridge, _auc(parts.validation, scores), ms, scores))
        best = chosen(candidates)
        own = {"covariance": covariance, "n_factors": N_FACTORS, "ridge": best.other}
        model = MIBC(best.C, **own, random_state=seed, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a ridge that was needed
            model, fit_ms = timed(model.fit, train.X, train.y)
        return _figures(parts, candidates, model.score_samples, best) | {
            "fit_ms": round(fit_ms, 4),
            "moments_ms": round(summing, 4),
            "factor_ms": round(float(np.mean(factorising)), 4),
            "gap": float(model.duality_gap_),
        }

    return run


def on_features(method: Method) -> Method:
    """The same on Nyström features of the Gaussian kernel."""

    def run(parts: Parts, seed: int) -> dict[str, Any]:
        X = parts.train.X
        n_landmarks = min(MOST_LANDMARKS, len(X) // 2)
        features = Nystroem(gamma=gaussian_gamma(X), n_components=n_landmarks, random_state=seed)
        mapped, ms = timed(features.fit_transform, X)
        rest = [Rows(features.transform(part.X), part.y) for part in parts[1:]]
        found = method(Parts(Rows(mapped, parts.train.y), *rest), seed)
        return found | {name: round(found[name] + ms, 4) for name in ("fit_ms", "moments_ms")}

    return run


def liblinear(loss: str, ratios: bool) -> Method:
    """LinearSVC with every weight of the positives, or on as many negatives as positives."""

    def run(parts: Parts, seed: int) -> dict[str, Any]:
        train = parts.train if ratios else balanced(parts.train, seed)
        dual = loss == "hinge" or sparse.issparse(train.X)
        candidates, capped = [], 0
        for C in CS:
            for ratio in cost_ratios(train.y) if ratios else (1.0,):
                model = LinearSVC(
                    C=C, loss=loss, dual=dual, class_weight={1: ratio}, random_state=seed
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # counted just below
                    model, ms = timed(model.fit, train.X, train.y)
                capped += int(model.n_iter_ >= model.max_iter)
                scores = model.decision_function
                auc = _auc(parts.validation, scores)
                candidates.append(Candidate(C, ratio, auc, ms, scores))
        best = chosen(candidates)
        return _figures(parts, candidates, best.scores, best) | {
            "fit_ms": round(best.ms, 4),
            "capped": capped,
        }

    return run


def cost_ratios(y: np.ndarray) -> tuple[float, ...]:
    """{1, r/4, r/2, r, 2r}: weight of a positive, r being negatives to a positive; each once."""
    r = float((y == 0).sum() / (y == 1).sum())
    return tuple(dict.fromkeys((1.0, r / 4, r / 2, r, 2 * r)))


def balanced(rows: Rows, seed: int) -> Rows:
    """All positives and as many negatives, drawn at random."""
    positive, negative = np.flatnonzero(rows.y == 1), np.flatnonzero(rows.y == 0)
    drawn = np.random.default_rng(seed).choice(negative, len(positive), replace=False)
    kept = np.sort(np.concatenate([positive, drawn]))
    return Rows(rows.X[kept], rows.y[kept])


def timed(function: Callable[..., Any], *args: Any, **named: Any) -> tuple[Any, float]:
    """What a call gives, and its milliseconds on one thread."""
    with threadpool_limits(1):
        start = time.perf_counter()
        found = function(*args, **named)
        return found, 1000.0 * (time.perf_counter() - start)


# The paper's bare diagonal on text, with as little of its "small" lambda as keeps words that no
# majority row holds within reach.
BARE, BARE_RIDGE = "MIBC bare", 0.001
COST, SQUARED = "Cost-sensitive", "Cost-sensitive squared"
UNDER = "Undersampling"
_LIBLINEAR = {
    COST: liblinear("hinge", ratios=True),
    SQUARED: liblinear("squared_hinge", ratios=True),
    UNDER: liblinear("hinge", ratios=False),
}
DENSE: dict[str, Method] = {
    "MIBC": moments("full"),
    "MIBC ridge": moments("full", RIDGES),
    "MIBC features": on_features(moments("full", RIDGES)),
    **_LIBLINEAR,
}
TEXT: dict[str, Method] = {
    "MIBC": moments("diagonal"),
    BARE: moments("diagonal", (BARE_RIDGE,)),
    "MIBC ridge": moments("diagonal", RIDGES[:-1]),
    "MIBC factors": moments("factor"),
    **_LIBLINEAR,
}


def _figures(
    parts: Parts, candidates: list[Candidate], scores: Callable[[Any], np.ndarray], best: Candidate
) -> dict[str, Any]:
    """Test AUC, what was chosen, and the milliseconds of every C at the chosen ratio or ridge."""
    return {
        "auc": round(_auc(parts.test, scores), 6),
        "validation": round(best.auc, 6),
        "log10_C": round(np.log10(best.C)),
        "other": best.other,
        "ms": [round(one.ms, 4) for one in candidates if one.other == best.other],
    }


def _auc(rows: Rows, scores: Callable[[Any], np.ndarray]) -> float:
    return float(roc_auc(rows.y, scores(rows.X)))


def _linear(coef: np.ndarray) -> Callable[[Any], np.ndarray]:
    return lambda X: X @ coef


def _modelled(model: Any, sums: Any, is_sparse: bool) -> Any:
    try:
        return model.model(sums, is_sparse)
    except ValueError:  # without a ridge the covariance has no inverse
        return None
