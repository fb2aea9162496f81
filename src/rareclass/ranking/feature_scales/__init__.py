"""Scales of features inside the kernel, learned by the cross-validated loss; zero drops one."""

from rareclass.ranking.feature_scales.scaled_kernel import FeatureScaled

__all__ = ["FeatureScaled"]
