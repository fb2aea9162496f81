"""A paired test: do two score columns of the same rows differ in a measure?"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rareclass.errors import ErrorKind
from rareclass.machine import track
from rareclass.metrics.intervals import LEAST_P, Interval, normal_quantile, p_value_of_intervals
from rareclass.metrics.levels import drawn_again
from rareclass.metrics.named_measures import known_measure
from rareclass.metrics.paired_evidence import EVIDENCE
from rareclass.metrics.scored_classes import FloatArray, ScoredPair, split_pair
from rareclass.parameters import check_whole


class PairedDifference(NamedTuple):
    """The difference of a measure between two score columns, and what it proves."""

    difference: float  # value_a - value_b
    low: float
    high: float
    p_value: float  # two-sided; below 1 - level exactly where the interval does not hold 0
    value_a: float
    value_b: float
    method: str


def paired_difference(
    y: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    measure: str | Callable[..., float] = "roc_auc",
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_replicates: int = 2000,
    level: float = 0.95,
    random_state: Any = 0,
    progress: bool | str = False,
    **options: Any,
) -> PairedDifference:
    """Difference of a measure of two score columns of the same rows, its interval and its p-value.

    The rows that are hard for one ranking are hard for the other; a paired test sees only where
    they differ. Each value has its interval as the measure alone has it (`interval`);
    with ``la`` how far a's interval reaches down, ``ub`` how far b's reaches up and r the
    correlation of both estimates, ``low = a - b - sqrt(la**2 - 2 r la ub + ub**2)``, and ``high``
    likewise (Zou 2007). The interval reaches at least as far as Student's,
    ``a - b -+ t s sqrt(n / (n - 1))`` with s the standard deviation of the difference and t of
    n - 1 degrees of freedom, n the rare rows. The p-value is 1 less the highest level whose
    interval leaves out 0.

    - "roc_auc", "average_precision", "partial_auc", "precision_at_k", "recall_at_k", "lift_at_k",
      "expected_cost": r and s from the influence of each row on both values (DeLong's components
      for AUC); no resampling.
    - any callable ``(y, scores, sample_weight=...) -> float``: Student's interval by a paired
      bootstrap within each class, n the rare rows or the groups that hold one. Called twice a
      replicate.

    In both variances behind r stands the made-up row of `interval`, so that a sample in
    which both rankings have the same value still proves little. Columns that rank all rows alike
    (for expected cost: raise the same alerts; for a callable: are equal) have the difference 0 and
    the interval 0 to 0. docs/decisions/0029 has size, coverage and power.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores_a, scores_b : array-like of shape (n,)
        Two scores of each row; higher means rarer. Only their order counts, except for expected
        cost and callables.
    measure : str or callable, default "roc_auc"
        What is compared.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out. A weight of 3 is three independent
        rows, unless `groups` says otherwise.
    groups : array-like of shape (n,), optional
        Rows of equal group move together (a customer, a day): groups, not rows, are what is
        independent.
    n_replicates : int, default 2000
        Samples drawn for a callable, at least 2.
    level : float, default 0.95
        Of the interval. Greater gives wider; the p-value does not depend on it.
    random_state : int, Generator, RandomState or None, default 0
        Of those samples; the default gives the same answer each time, and copies do not change it.
    progress : bool or "auto", default False
        Show a bar on standard error; "auto" where that is a terminal. Ctrl-C ends the bootstrap.
    **options
        Of the measure, as the function of that name has them: ``k=`` (`lift_at_k`: or ``share=``),
        ``max_fpr=``, ``standardized=``, ``threshold=`` (one, or a pair of them for two columns of
        different scale), ``cost_fp=``, ``cost_fn=``.

    Returns
    -------
    PairedDifference
        ``(difference, low, high, p_value, value_a, value_b, method)``; difference is
        ``value_a - value_b``. P-values below 1e-12 are given as that. O(n log n) time, O(n)
        memory; a callable is called ``2 n_replicates`` times.

    Raises
    ------
    ValueError
        On columns of different lengths, NaN scores, labels other than 0 and 1, negative weights, a
        class without rows of positive weight, missing groups, an unknown measure or option, and
        what the measure itself refuses, such as a k beyond the rows.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; Obuchowski (1997), "Nonparametric
    analysis of clustered ROC curve data", Biometrics 53; Zou (2007), Psychological Methods 12.

    Examples
    --------
    >>> y = [0, 0, 0, 0, 1, 1, 1]
    >>> a, b = [0.1, 0.2, 0.3, 0.4, 0.35, 0.8, 0.9], [0.1, 0.2, 0.7, 0.4, 0.3, 0.6, 0.9]
    >>> test = paired_difference(y, a, b)
    >>> round(test.difference, 3), test.low < 0 < test.high, test.p_value > 0.05
    (0.167, True, True)
    """
    normal_quantile(level)
    check_whole("n_replicates", n_replicates, "a whole number of at least 2", 2)
    pair = split_pair(y, scores_a, scores_b, sample_weight, groups)
    if callable(measure):
        if options:
            raise ErrorKind.COMBINATION.error(
                f"{sorted(options)[0]}= is not an option of a callable.",
                "Bind it with functools.partial.",
            )
        seeds = _seeds(random_state, int(n_replicates))
        return _bootstrapped(pair, measure, seeds, level, progress)
    evidence = known_measure(measure, EVIDENCE, options)(pair, **options)
    found, p_value = evidence.interval(level), p_value_of_intervals(evidence.interval, level)
    a, b = evidence.a(level).value, evidence.b(level).value
    return PairedDifference(*found, p_value, a, b, evidence.method)


def _bootstrapped(
    pair: ScoredPair,
    measure: Callable[..., float],
    seeds: NDArray[np.uint64],
    level: float,
    progress: bool | str,
) -> PairedDifference:
    """Student's interval and p-value by the standard deviation of a bootstrap, a seed a replicate.

    The measure is called as ``measure(y, scores, sample_weight=...)`` with the rows that were drawn
    and how often; a value that is no finite number is refused.
    """
    table, drawn = PairTable.of(pair), np.empty((seeds.size, 2))
    a, b = table.measured(measure, table.weight).tolist()
    with track("Bootstrap", seeds.size, enabled=progress) as advance:
        for r, seed in enumerate(seeds):
            rng = np.random.Generator(np.random.PCG64(int(seed)))
            drawn[r] = table.measured(measure, table.weights_again(rng))
            advance()
    rare = pair.rare
    n = rare.mass if rare.group is None else float(np.unique(rare.group).size)
    spread = drawn[:, 0] - drawn[:, 1]
    deviation = float(spread.std(ddof=1))
    difference = a - b
    is_same = all(np.array_equal(rows.a, rows.b) for rows in pair[:2])
    if n <= 1.0 or not deviation > 0.0:
        # One rare row, or none on which the columns differ, says nothing of how they vary.
        p_value = 1.0
        reach = np.inf if n <= 1.0 and not is_same else abs(difference)
    else:
        deviation *= np.sqrt(n / (n - 1.0))
        reach = float(special.stdtrit(n - 1.0, 0.5 + level / 2.0)) * deviation
        p_value = 2.0 * float(special.stdtr(n - 1.0, -abs(difference) / deviation))
    bounds = Interval(difference, difference - reach, difference + reach)
    name = "paired bootstrap of groups, t" if pair.n_groups else "paired stratified bootstrap, t"
    return PairedDifference(*bounds, max(p_value, LEAST_P), a, b, name)


def _seeds(random_state: Any, n: int) -> NDArray[np.uint64]:
    """A seed for each replicate."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    elif isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**63 - 1))
    elif random_state is not None:
        check_whole("random_state", random_state, "a whole number, a generator or None", 0)
        random_state = int(random_state)
    return np.random.SeedSequence(random_state).generate_state(n, np.uint64).astype(np.uint64)


class PairTable(NamedTuple):
    """Rows in an order that does not depend on how they were given, equal ones together."""

    y: NDArray[np.int64]
    a: FloatArray
    b: FloatArray
    weight: FloatArray
    group: NDArray[np.intp] | None

    @classmethod
    def of(cls, pair: ScoredPair) -> "PairTable":
        """Return the rows of both classes, the weights of equal ones added up."""
        y = np.repeat([1, 0], [pair.rare.a.size, pair.majority.a.size])
        a = np.concatenate([pair.rare.a, pair.majority.a])
        b = np.concatenate([pair.rare.b, pair.majority.b])
        keys = [b, a, -y]
        if pair.n_groups:
            keys.append(np.concatenate([pair.rare.group, pair.majority.group]))
        order = np.lexsort(keys)
        new = np.append(True, np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0))
        first = order[new]
        weight = np.concatenate([pair.rare.weights(), pair.majority.weights()])
        mass = np.add.reduceat(weight[order], np.flatnonzero(new))
        return cls(y[first], a[first], b[first], mass, keys[3][first] if pair.n_groups else None)

    def weights_again(self, rng: np.random.Generator) -> FloatArray:
        """Draw the weight of each row among as many drawn of its class, or among groups drawn."""
        if self.group is not None:
            holds_rare = np.zeros(int(self.group.max()) + 1, bool)
            holds_rare[self.group[self.y == 1]] = True
            times = np.zeros(holds_rare.size)
            for stratum in (np.flatnonzero(holds_rare), np.flatnonzero(~holds_rare)):
                if stratum.size:
                    drawn = rng.integers(stratum.size, size=stratum.size)
                    times[stratum] = np.bincount(drawn, minlength=stratum.size)
            return self.weight * times[self.group]
        return drawn_again(rng, self.weight, [np.flatnonzero(self.y == each) for each in (1, 0)])

    def measured(self, measure: Callable[..., float], weight: FloatArray) -> FloatArray:
        """Both values of a measure of the rows of positive weight, refused where not finite."""
        kept = weight > 0.0
        y, weight = self.y[kept], weight[kept]
        values = np.array(
            [measure(y, column[kept], sample_weight=weight) for column in (self.a, self.b)], float
        )
        if not np.isfinite(values).all():
            raise ErrorKind.NOT_FINITE.error(
                f"the measure returned {values.tolist()} for {y.size} rows, {int(y.sum())} of them "
                "rare.",
                "It must be a finite number for every draw of the rows.",
            )
        return values
