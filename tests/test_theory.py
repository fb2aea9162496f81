"""The bounds of Tayal, Coleman and Li (2014), against slow solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from draws import draws
from made_tables import rare_mixture, small_table
from oracles.ordinal import TWO_CLASSES, ordinal_loss, pair_weights
from oracles.pairs import pair_curvature, pair_loss, pair_slope
from rareclass import RankRC, RankSVM
from rareclass.rows import from_arrays
from rareclass.theory import kernel_perturbation_bound, nystrom_svm_bound, subset_bound

EPS = 0.05  # near the hinge; the bounds hold for every convex loss of slopes from -1 to 0


def minimise(loss, A, lam):
    """Minimum of a smooth loss by Newton's method with whole matrices.

    On loss(A b) + lam/2 b'b from b = 0, with steps of least norm.
    """
    b = np.zeros(A.shape[1])

    def value(b):
        return loss(A @ b)[0] + lam / 2 * b @ b

    for _ in range(200):
        _, by_score, by_scores = loss(A @ b)
        gradient = A.T @ by_score + lam * b
        hessian = A.T @ by_scores @ A + lam * np.eye(len(b))
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-11)[0]
        size, start = 1.0, value(b)
        while value(b + size * step) > start and size > 1e-12:
            size /= 2
        b = b + size * step
        if np.linalg.norm(step) < 1e-11 * (1 + np.linalg.norm(b)):
            break
    return b


def solve(loss, K, lam):
    """Scores of the rows of K at the minimum, and how far they may be from it.

    The objective is lam-strongly convex in w: |w - best| is at most |gradient| / lam.
    """
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0))
    w = minimise(loss, F, lam)
    gradient = F.T @ loss(F @ w)[1] + lam * w
    error = np.linalg.norm(gradient) / lam * np.sqrt(K.diagonal().max())
    assert error <= 1e-4 / min(lam, 1)
    return F @ w, error


def hinge_rank(K, y, lam, weight=None):
    known = y.astype(int), np.ones(len(y)) if weight is None else weight, TWO_CLASSES
    total = pair_weights(*known).sum()

    def loss(s):
        return [part / total for part in ordinal_loss(s, *known, EPS)]

    return solve(loss, K, lam)


def hinge_svm(K, y, lam):
    t, n = 2 * y - 1, len(y)

    def loss(s):
        z = t * s
        slope, curvature = t * pair_slope(z, EPS), pair_curvature(z, EPS)
        return pair_loss(z, EPS).sum() / n, slope / n, np.diag(curvature) / n

    return solve(loss, K, lam)


def largest_difference(one, other):
    return np.abs(one[0] - other[0]).max() - one[1] - other[1]


def gaussian(X, Z):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1) / 2)


def nystrom(K, R):
    if not len(R):
        return np.zeros_like(K)
    return K[:, R] @ np.linalg.pinv(K[np.ix_(R, R)], rcond=1e-12, hermitian=True) @ K[R]


def residual_norms(K, R):
    squares = np.diag(K) - np.diag(nystrom(K, R))
    squares[R] = 0  # and not the rounding errors of 1 - 1, whose fourth root is large
    return np.sqrt(np.maximum(squares, 0))


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rare, n_rest = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    n = n_rare + n_rest
    spread = draw(st.sampled_from([0.3, 1.0, 3.0]))
    X = rng.normal(scale=spread, size=(n, 2))
    if draw(st.booleans()):
        X = np.round(X)
    y = np.repeat([1.0, 0.0], [n_rare, n_rest])
    weight = rng.choice([0.25, 1.0, 2.0, 5.0], size=n)
    R = np.flatnonzero(rng.random(n) < draw(st.sampled_from([0.2, 0.5, 0.8])))
    return X, y, weight, R, draw(st.sampled_from([0.01, 0.1, 1.0, 10.0]))


def outside_of(values, y, weight):
    return tuple(np.average(values[y == c], weights=weight[y == c]) for c in (1, 0))


@draws(150)
@given(cases())
def test_hinge_ranking_stays_within_theorem_3(case):
    X, y, weight, R, lam = case
    K = gaussian(X, X)
    difference = largest_difference(
        hinge_rank(nystrom(K, R), y, lam, weight), hinge_rank(K, y, lam, weight)
    )
    outside = ~np.isin(np.arange(len(y)), R)
    by_rows = subset_bound(*outside_of(outside, y, weight), lam)
    by_residuals = subset_bound(*outside_of(residual_norms(K, R), y, weight), lam, residuals=True)
    rounding = 1e-4 / min(lam, 1.0)
    assert difference <= by_residuals + rounding
    assert by_residuals <= by_rows / np.sqrt(2) + rounding


@draws(150)
@given(cases())
def test_an_svm_on_the_nystrom_kernel_stays_within_theorem_6(case):
    X, y, _, R, lam = case
    K = gaussian(X, X)
    difference = largest_difference(hinge_svm(nystrom(K, R), y, lam), hinge_svm(K, y, lam))
    by_rows = nystrom_svm_bound(1 - len(R) / len(y), lam)
    by_residuals = nystrom_svm_bound(residual_norms(K, R).mean(), lam, residuals=True)
    assert difference <= by_residuals + 1e-4 / min(lam, 1.0)
    assert by_residuals <= by_rows / np.sqrt(2) + 1e-4 / min(lam, 1.0)


@draws(150)
@given(cases(), st.sampled_from([None, 1e-3, 0.3]), st.integers(0, 2**16))
def test_another_kernel_matrix_stays_within_theorem_7(case, size, seed):
    X, y, weight, R, lam = case
    K = gaussian(X, X)
    if size is None:
        other = nystrom(K, R)
    else:
        A = size * np.random.default_rng(seed).normal(size=K.shape)
        other = (np.eye(len(K)) + A) @ K @ (np.eye(len(K)) + A).T
    kappa = max(1.0, other.diagonal().max())
    difference = largest_difference(
        hinge_rank(other, y, lam, weight), hinge_rank(K, y, lam, weight)
    )
    bound = kernel_perturbation_bound(np.linalg.norm(other - K, 2), lam, kappa=kappa)
    assert difference <= bound + 1e-4 * kappa / min(lam, 1.0)


@pytest.mark.parametrize("lam", [5.0, 9.0])
def test_two_opposite_rows_attain_the_bound_of_residuals(lam):
    K, y = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, 0.0])
    difference = np.abs(hinge_rank(K, y, lam)[0]).max()  # R is empty: the other function is 0
    assert difference == pytest.approx(2 / lam, rel=1e-6)
    assert subset_bound(1.0, 1.0, lam, residuals=True) == pytest.approx(difference, rel=1e-6)
    assert subset_bound(1.0, 1.0, lam) == pytest.approx(np.sqrt(2) * difference, rel=1e-6)
    svm = np.abs(hinge_svm(np.ones((1, 1)), np.ones(1), lam)[0]).max()
    assert svm == pytest.approx(1 / lam, rel=1e-6)
    assert nystrom_svm_bound(1.0, lam, residuals=True) == pytest.approx(svm, rel=1e-6)
    assert nystrom_svm_bound(1.0, lam) == pytest.approx(np.sqrt(2) * svm, rel=1e-6)


def test_equation_46_as_printed_is_violated_where_the_kernel_is_small():
    X, y, _ = small_table(0)
    K, R = gaussian(X, X), np.arange(2)
    for c in (1.0, 1e-12):
        # The same scores whatever c: K and lam are in the same units.
        other = nystrom(c * K, R)
        difference = largest_difference(hinge_rank(other / c, y, 0.1), hinge_rank(K, y, 0.1))
        distance = np.linalg.norm(other - c * K, 2)
        assert difference <= kernel_perturbation_bound(distance, 0.1 * c, kappa=c)
    assert difference > kernel_perturbation_bound(distance, 0.1 * c, kappa=c, as_printed=True)


def test_the_formulas():
    assert subset_bound(3 / 4, 1 / 9, 0.5, kappa=2.0) == pytest.approx(
        2 * 2.0 / 0.5 * np.sqrt(3 / 4 + 1 / 9)
    )
    assert nystrom_svm_bound(1 - 3 / 10, 0.5, kappa=2.0) == pytest.approx(
        np.sqrt(2) * 2.0 / 0.5 * np.sqrt(0.7)
    )
    found = kernel_perturbation_bound([0.0, 3.0], 0.5, kappa=2.0)
    factor = 2 * np.sqrt(2) * 2**0.75 / 0.5
    np.testing.assert_allclose(found, [0, factor * 3**0.25 * (1 + (3 / 8) ** 0.25)])
    printed = kernel_perturbation_bound(3.0, 0.5, kappa=2.0, as_printed=True)
    assert printed == pytest.approx(factor * 3**0.5 * (1 + (3 / 8) ** 0.25))
    # Units: scores do not change when the kernel and lam are multiplied by the same number.
    for bound in (
        lambda c: subset_bound(0.3, 0.9, 0.1 * c, kappa=c),
        lambda c: subset_bound(0.3 * c**0.5, 0.9 * c**0.5, 0.1 * c, kappa=c, residuals=True),
        lambda c: nystrom_svm_bound(0.4, 0.1 * c, kappa=c),
        lambda c: nystrom_svm_bound(0.4 * c**0.5, 0.1 * c, kappa=c, residuals=True),
        lambda c: kernel_perturbation_bound(0.6 * c, 0.1 * c, kappa=c),
    ):
        assert bound(7.0) == pytest.approx(bound(1.0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: subset_bound(5, 0, 1.0), "rare=5 must be a share"),
        (lambda: subset_bound(0, -0.1, 1.0), r"majority=-0\.1 must be a share.*Divide the weight"),
        (lambda: subset_bound(0, np.nan, 1.0), "majority=nan must be a share"),
        (lambda: subset_bound(0, 1.5, 1.0, residuals=True), r"majority=1\.5 .* Raise kappa"),
        (lambda: subset_bound(0, 1, 0.0), r"lam=0\.0 must be above 0"),
        (lambda: subset_bound(0, 1, 1.0, kappa=np.inf), "kappa=inf must be above 0 and finite"),
        (lambda: subset_bound(0, 1, 1.0, slope=0), "slope=0 must be above 0"),
        (lambda: nystrom_svm_bound(2.0, 1.0), r"outside=2\.0 must be a share"),
        (lambda: kernel_perturbation_bound(-1.0, 1.0), r"distance=-1\.0 .*numpy\.linalg\.norm"),
    ],
)
def test_what_is_outside_its_range_is_named_with_a_remedy(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@draws(60)
@given(cases(), st.sampled_from(["gaussian", "linear", "polynomial"]), st.sampled_from([0.05, 0.5]))
def test_a_fitted_model_stays_within_its_own_bound(case, kernel, eps):
    X, y, weight, R, lam = case
    R = R if len(R) else np.array([0])
    own = {"lam": lam, "kernel": kernel, "width": 1.5, "eps": eps, "pos_label": 1, "tol": 1e-8,
           "n_jobs": 1, "verbose": False}  # fmt: skip
    full = RankSVM(**own).fit(X, y, weight)
    part = RankRC(landmarks=R, **own).fit(X, y, weight)
    k = part._expansion().kernel
    kappa = float(k.diag(X).max())
    by_counts = part.stability_bound(kappa=max(kappa, 1e-12))
    by_rows = part.stability_bound(X, y, weight)
    assert by_rows <= by_counts * (1 + 1e-9)
    rows = np.vstack([X, 0.7 * X])  # half of them unseen in training, within kappa as well
    difference = np.abs(part.score_samples(rows) - full.score_samples(rows)).max()
    assert difference <= by_rows + 1e-4 * kappa / min(lam, 1.0)
    assert full.stability_bound(X, y, weight) == 0.0
    # The outside, one by one.
    gram = k.block(X, X)
    equal = (X[:, None] == X[None, R]).all(axis=2).any(axis=1)
    shares = outside_of(~equal, y, weight)
    residuals = outside_of(np.where(equal, 0, residual_norms(gram, R)), y, weight)
    if kappa > 0:
        wanted = min(
            subset_bound(*residuals, lam, kappa=kappa, residuals=True),
            subset_bound(*shares, lam, kappa=kappa),
        )
        assert by_rows == pytest.approx(wanted, abs=1e-3 * kappa / lam)


def test_stability_bound_counts_what_is_no_landmark():
    X, y = rare_mixture(60, 8)
    own = {"lam": 0.5, "verbose": False}
    assert RankRC(**own).fit(X, y).stability_bound() == pytest.approx(4.0)
    assert RankRC(landmarks=X[:3], **own).fit(X, y).stability_bound() == pytest.approx(
        4 * np.sqrt(2)
    )
    rows = np.concatenate([np.flatnonzero(y == 1)[:5], np.flatnonzero(y == 0)[:13]])
    part = RankRC(landmarks=rows, **own).fit(X, y)
    assert part.stability_bound() == pytest.approx(4 * np.sqrt(3 / 8 + 39 / 52))
    assert part.stability_bound(kappa=3.0) == pytest.approx(12 * np.sqrt(3 / 8 + 39 / 52))
    # A weight of 0 is absence, a weight of 2 two copies.
    weight = np.ones(60)
    weight[rows[0]] = 2.0
    weight[np.flatnonzero(y == 0)[-9:]] = 0.0
    weighted = RankRC(landmarks=rows, **own).fit(X, y, weight)
    assert weighted.stability_bound() == pytest.approx(4 * np.sqrt(3 / 9 + 30 / 43))
    copies = np.repeat(np.arange(60), weight.astype(int))
    for data in (X, sparse.csr_array(X)):
        assert weighted.stability_bound(data[copies], y[copies]) == pytest.approx(
            weighted.stability_bound(data, y, weight), rel=1e-6
        )
    assert weighted.stability_bound(X, y, weight) < weighted.stability_bound()
    assert weighted.stability_bound(from_arrays(X, y, weight)) == pytest.approx(
        weighted.stability_bound(X, y, weight)
    )
    narrow = RankRC(landmarks=rows, **own).fit(X.astype(np.float32), y)
    found = narrow.stability_bound(X.astype(np.float32), y)
    assert found == pytest.approx(part.stability_bound(X, y), rel=1e-3)


def test_stability_bound_says_what_it_lacks():
    X, y = rare_mixture(60, 8)
    model = RankRC(kernel="linear", verbose=False).fit(X, y)
    with pytest.raises(ValueError, match=r"largest k\(x, x\) of the kernel Linear .* pass the"):
        model.stability_bound()
    with pytest.raises(ValueError, match="X is missing"):
        model.stability_bound(y=y)
    with pytest.raises(ValueError, match=r"kappa=0\.1 is below the rows' k\(x, x\)"):
        model.stability_bound(X, y, kappa=0.1)
    with pytest.raises(ValueError, match="features"):
        model.stability_bound(X[:, :2], y)
    with pytest.raises(NotFittedError):
        RankRC().stability_bound()
    steep = RankRC(loss="squared_hinge", verbose=False).fit(X, y)
    with pytest.raises(ValueError, match=r"loss='squared_hinge': .* Use loss='smoothed_hinge'"):
        steep.stability_bound()
    sparse_model = RankRC(penalty="l1", lam=1e-3, verbose=False).fit(X, y)
    with pytest.raises(ValueError, match=r"penalty='l1': .* Refit with penalty='l2'"):
        sparse_model.stability_bound()
