"""The least time that a fit can take on a machine of given rates, for the passes that it made.

With n rows, d features and r landmarks, kernel entries in float32:

- making the kernel: the arithmetic, ``2 n d r / sgemm + n r / exp``, or writing the kept part to
  fresh memory, ``4 c n r / first_touch``, whichever takes longer;
- a pass over kept entries: reading them, ``4 n r / read``, or two products with a vector,
  ``4 n r / sgemv``, whichever takes longer;
- a pass over entries that are not kept: making them again, and the two products.

c is the share of the kernel that the memory budget keeps. The model counts the passes of the
solver's history; the first evaluation, which comes with making the kernel, and the choice of the
threshold are not counted, nor is anything on the rare side. So the true limit is a little higher.
"""

from collections.abc import Mapping

ENTRY_BYTES = 4.0


def making(rates: Mapping[str, float], rows: int, features: int, landmarks: int) -> float:
    """Seconds of arithmetic to make the kernel once."""
    entries = float(rows) * landmarks
    return 2.0 * features * entries / rates["sgemm_block"] + entries / rates["exp"]


def seconds(
    rates: Mapping[str, float],
    rows: int,
    features: int,
    landmarks: int,
    passes: float,
    budget: float,
) -> float:
    """Least seconds of a fit.

    Parameters
    ----------
    rates : mapping
        What `benchmarks.rates.measure` found.
    rows, features, landmarks : int
    passes : float
        Readings of the majority that the solver counted.
    budget : float
        Bytes that the kernel may take.

    Examples
    --------
    >>> rates = {"sgemm_block": 1e12, "exp": 1e9, "first_touch": 1e9, "read": 1e10}
    >>> rates["sgemv_block"] = 1e12
    >>> round(seconds(rates, 10**6, 40, 1000, 10, 1e12), 2)  # writes, then reads 10 times
    8.0
    """
    entries = float(rows) * landmarks
    kept = min(1.0, budget / (ENTRY_BYTES * entries))
    arithmetic = making(rates, rows, features, landmarks)
    products = 4.0 * entries / rates["sgemv_block"]
    reading = ENTRY_BYTES * entries / rates["read"]
    first = max(arithmetic, ENTRY_BYTES * kept * entries / rates["first_touch"])
    one_pass = kept * max(reading, products) + (1.0 - kept) * (arithmetic + products)
    return first + passes * one_pass
