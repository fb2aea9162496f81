"""Generated claims with days in hospital: sixteen ordered levels, most of them rare.

The claims of Tayal et al. 2014, section 5, are not public. This draws a set of the same shape:
147,473 members, 441 features, 85 percent without a day in hospital, 1 to 14 days in a long tail and
15 for all stays beyond.
"""

import numpy as np

from benchmarks.simulated import Seed

PAPER_ROWS, PAPER_FEATURES, PAPER_ZERO_SHARE = 147_473, 441, 0.85
LAST_LEVEL = 15  # 15 days and more
LONGEST_STAY = 60
TAIL = 1.7  # a stay of d days is d^-1.7 times as frequent as one of a day
BANDS = 10  # of age, ten years each
CONDITIONS = 12
PROFILE = BANDS + 1  # features before the claims: age bands and sex

_DESIGN_SEED = 2014
_BLOCK_ROWS = 8192
_LUCK = 1.0  # deviation of what no feature knows, in deviations of the burden
_STAY_LUCK = 1.5  # the same for the length of a stay


def hospital_days(
    n_rows: int = PAPER_ROWS, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Draw members with a year of claims and their days in hospital in the next.

    Each member has an age, a sex, twelve chronic conditions that come with age, and a gamma
    distributed inclination to see a doctor. From these follow

    - the claims: :math:`\text{count}_j \sim \text{Poisson}(\exp(b_j + a_j \cdot \text{conditions} +
      c_j \log \text{inclination}))`. A third of them belong to one or two conditions, a third
      go with the inclination alone, a third are noise. Two in five are seen as 0 or 1 only.
    - the burden: a weighted sum of the conditions, products of some pairs of them, the square of
      age and the logarithm of the inclination.
    - the days: the 15 percent of the members with the largest burden plus luck are in hospital;
      among them the stays go by half the burden plus luck of their own, a stay of d days being
      :math:`d^{-1.7}` times as frequent as one of a day.

    Neither the conditions nor the inclination are features. Weights and rates are the same in
    every draw, so that rows of two seeds are two samples of one population.

    Features are float32: ten indicators of age and one of sex, then claims of a year, counts and
    indicators. Days are 0 to 15, which stands for 15 and more. The number of rows at each level is
    exact: what rounding leaves over goes to the more frequent levels. Rows come in random order.

    Cost: one Poisson draw a cell, about 2 seconds for the paper's shape; memory 4 bytes a cell.

    Examples
    --------
    >>> X, y = hospital_days(1000, random_state=0)
    >>> X.shape, int((y == 0).sum()), int(y.max())
    ((1000, 441), 850, 15)
    """
    rng = np.random.default_rng(random_state)
    age = rng.integers(BANDS, size=n_rows)
    sex = rng.integers(2, size=n_rows)
    conditions = _conditions(age, rng)
    inclination = np.log(rng.gamma(2.0, 0.5, size=n_rows))
    burden = _burden(age, conditions, inclination)
    X = np.zeros((n_rows, PAPER_FEATURES), dtype=np.float32)
    X[np.arange(n_rows), age] = 1.0
    X[:, BANDS] = sex
    _fill_claims(X[:, PROFILE:], np.column_stack([conditions, inclination]), rng)
    return X, _days(burden, rng)


def level_counts(n_rows: int) -> np.ndarray:
    """Rows at each of the levels 0 to 15, which add up to `n_rows`.

    Examples
    --------
    >>> level_counts(1000)[:4].tolist()
    [850, 77, 24, 12]
    """
    days = np.arange(1, LONGEST_STAY + 1, dtype=np.float64) ** -TAIL
    shares = np.append(days[: LAST_LEVEL - 1], days[LAST_LEVEL - 1 :].sum()) / days.sum()
    n_zero = round(n_rows * PAPER_ZERO_SHARE)
    expected = (n_rows - n_zero) * shares
    counts = np.floor(expected).astype(np.int64)
    counts[: n_rows - n_zero - counts.sum()] += 1
    return np.append(n_zero, counts)


def _conditions(age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Zeros and ones, rows x conditions: each is rarer or commoner, and grows with age."""
    design = np.random.default_rng(_DESIGN_SEED)
    base = design.uniform(-3.5, -1.5, CONDITIONS)
    growth = design.uniform(0.0, 2.0, CONDITIONS)
    log_odds = base + growth * _centred(age)[:, None]
    return (rng.random(log_odds.shape) < 1.0 / (1.0 + np.exp(-log_odds))).astype(np.float64)


def _burden(age: np.ndarray, conditions: np.ndarray, inclination: np.ndarray) -> np.ndarray:
    """What days in hospital depend on, in the order of 1."""
    design = np.random.default_rng(_DESIGN_SEED + 1)
    weights = design.uniform(0.2, 1.0, CONDITIONS)
    pairs = design.permutation(CONDITIONS).reshape(-1, 2)
    joint = conditions[:, pairs[:, 0]] * conditions[:, pairs[:, 1]]
    extra = design.uniform(0.5, 1.5, len(pairs))
    return conditions @ weights + joint @ extra + 0.5 * _centred(age) ** 2 + 0.5 * inclination


def _fill_claims(claims: np.ndarray, state: np.ndarray, rng: np.random.Generator) -> None:
    """Draw the claims, a view of the table, from conditions and inclination (rows x 13)."""
    base, slopes, is_indicator = _rates(claims.shape[1])
    for start in range(0, len(claims), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        drawn = rng.poisson(np.exp(base + state[rows] @ slopes))
        claims[rows] = np.where(is_indicator, drawn > 0, drawn)


def _rates(n_claims: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log rate of each claim, its slopes on conditions and inclination, whether it is 0 or 1."""
    design = np.random.default_rng(_DESIGN_SEED + 2)
    base = np.log(10.0 ** design.uniform(-2.0, 0.0, n_claims))
    slopes = np.zeros((CONDITIONS + 1, n_claims))
    for claim in range(n_claims):
        kind = claim % 3  # of a condition, of the inclination, noise
        if kind == 0:
            owners = design.choice(CONDITIONS, size=design.integers(1, 3), replace=False)
            slopes[owners, claim] = design.uniform(0.3, 1.2, len(owners))
        if kind < 2:
            slopes[-1, claim] = design.uniform(0.3, 1.0)
    return base, slopes, design.random(n_claims) < 0.4


def _days(burden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels by burden and luck, as many at each as `level_counts` says."""
    counts = level_counts(len(burden))
    scale = burden.std() if len(burden) else 1.0
    admission = burden + _LUCK * scale * rng.normal(size=len(burden))
    stay = 0.5 * burden + _STAY_LUCK * scale * rng.normal(size=len(burden))
    y = np.zeros(len(burden), dtype=np.int64)
    inside = np.argsort(admission)[counts[0] :]
    y[inside[np.argsort(stay[inside])]] = np.repeat(np.arange(1, LAST_LEVEL + 1), counts[1:])
    return y


def _centred(age: np.ndarray) -> np.ndarray:
    """Age band from -1 to 1."""
    return 2.0 * age / (BANDS - 1) - 1.0
