"""Measures of a ranking with a rare class: exact, weighted, ties honoured, with intervals."""

from rareclass.metrics.auc import accuracy_at_optroc, roc_auc, roc_auc_interval
from rareclass.metrics.average_precision import average_precision, average_precision_interval
from rareclass.metrics.interval import Interval
from rareclass.metrics.mauc import mauc, mauc_interval
from rareclass.metrics.precision_at_k import precision_at_k, precision_at_k_interval

__all__ = [
    "Interval",
    "accuracy_at_optroc",
    "average_precision",
    "average_precision_interval",
    "mauc",
    "mauc_interval",
    "precision_at_k",
    "precision_at_k_interval",
    "roc_auc",
    "roc_auc_interval",
]
