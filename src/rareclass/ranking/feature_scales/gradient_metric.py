r"""A diagonal metric from a function that was learned without one.

What the score changes with matters, so a feature d gets the scale

.. math:: a_d^2 \propto \Big(\tfrac{1}{n} \sum_i (\partial f(x_i) / \partial x_d)^2\Big)^{1/2}

the root mean square of the score's gradient (the diagonal of the gradients' outer product, as in
recursive feature machines, Radhakrishnan et al., Science 383, 2024), with a floor, so that no
feature is shut out by one look.
"""

import numpy as np

from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import FeatureScaled
from rareclass.ranking.feature_scales.kernel_slopes import KernelSlopes

# Of the mean: a feature of no slope keeps a tenth of the average scale.
_FLOOR = 0.01


def gradient_scales(
    expansion: KernelExpansion, coefficients: np.ndarray, X: np.ndarray
) -> np.ndarray:
    """Scales of the features, of shape (n_features,) and mean square 1, from gradients at X.

    `expansion` is one without scales, `coefficients` of shape (n_landmarks,). Rows at a landmark
    count like others. Cost: twice that of the kernel at X.
    """
    kernel = FeatureScaled(expansion.kernel, np.ones(X.shape[1]))
    K = kernel.block(X, expansion.landmarks)
    gradient = KernelSlopes(kernel, expansion.landmarks).gradients(X, K, coefficients)
    slope = np.sqrt((gradient**2).mean(axis=0))
    mean = slope.mean()
    if not mean > 0.0:
        return np.ones(X.shape[1])
    squared = slope / mean + _FLOOR
    return np.sqrt(squared / squared.mean())
