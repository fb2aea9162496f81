"""The least time that a fit can take on a machine of given rates, for the passes that it made.

With n rows, d features and r landmarks, kernel entries in float32:

- making the kernel: the arithmetic, ``2 n d r / sgemm + n r / exp``, or writing the kept part to
  fresh memory, ``4 c n r / first_touch``, whichever takes longer;
- a pass over kept entries: reading them, ``4 n r / read``, or two products with a vector,
  ``4 n r / sgemv``, whichever takes longer;
- a pass over entries that are not kept: making them again, and the two products.

c is the share of the kernel that the fit kept (``in_memory`` in its history). The model counts the
passes of the solver's history, the first of which makes the kernel. Lams that are solved in step
share a reading and have two products each: of P passes only R, the most that one lam made, read or
make the kernel. Nothing on the rare side is counted, so the true limit is a little higher.
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
    kept: float,
    readings: float | None = None,
) -> float:
    """Least seconds of a fit.

    Parameters
    ----------
    rates : mapping
        What `benchmarks.rates.measure` found.
    rows, features, landmarks : int
    passes : float
        Readings of the majority that the solver counted.
    kept : float
        Share of the kernel kept in memory.
    readings : float or None
        How many passes read the kernel, where some share a reading; None means all.

    Examples
    --------
    >>> rates = {"sgemm_block": 1e12, "exp": 1e9, "first_touch": 1e9, "read": 1e10}
    >>> rates["sgemv_block"] = 1e12
    >>> round(seconds(rates, 10**6, 40, 1000, 11, 1.0), 2)  # writes, then reads 10 times
    8.0
    """
    entries = float(rows) * landmarks
    arithmetic = making(rates, rows, features, landmarks)
    products = 4.0 * entries / rates["sgemv_block"]
    reading = ENTRY_BYTES * entries / rates["read"]
    first = max(arithmetic, ENTRY_BYTES * kept * entries / rates["first_touch"])
    P = max(passes - 1.0, 0.0)
    R = P if readings is None else max(readings - 1.0, 0.0)
    of_kept, of_rest = max(R * reading, P * products), R * arithmetic + P * products
    return first + kept * of_kept + (1.0 - kept) * of_rest
