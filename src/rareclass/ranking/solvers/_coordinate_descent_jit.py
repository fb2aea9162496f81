"""Compiled coordinate descent for a quadratic with a penalty on absolute values."""

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def _descend(H, lam, v, slope, wanted, max_sweeps):
    """Sweeps over all coordinates of v, in place.

    ``slope`` is the gradient of the quadratic at v and follows it. Stops when no coordinate's own
    condition was violated by more than ``wanted`` as its turn came.
    """
    n = v.shape[0]
    for _ in range(max_sweeps):
        worst = 0.0
        for r in range(n):
            h = H[r, r]
            if h <= 0.0:
                continue
            target = v[r] - slope[r] / h
            cut = lam / h
            if target > cut:
                new = target - cut
            elif target < -cut:
                new = target + cut
            else:
                new = 0.0
            change = new - v[r]
            if change != 0.0:
                worst = max(worst, abs(change) * h)
                v[r] = new
                for k in range(n):
                    slope[k] += change * H[r, k]
        if worst <= wanted:
            break
