"""Measures of a ranking with a rare class: exact, weighted, ties honoured, with intervals."""

from rareclass.metrics.areas import accuracy_at_optroc, average_precision, partial_auc, roc_auc
from rareclass.metrics.at_k import lift_at_k, precision_at_k, recall_at_k
from rareclass.metrics.checked import (
    CheckedMeasures,
    CheckedSample,
    checked_measures,
    random_checks,
)
from rareclass.metrics.expected_cost import expected_cost
from rareclass.metrics.intervals import Interval
from rareclass.metrics.levels import mauc, vus
from rareclass.metrics.missed_cases import MissedCaseMeasures, missed_case_measures
from rareclass.metrics.named_measures import interval
from rareclass.metrics.paired_difference import PairedDifference, paired_difference

__all__ = [
    "CheckedMeasures",
    "CheckedSample",
    "Interval",
    "MissedCaseMeasures",
    "PairedDifference",
    "accuracy_at_optroc",
    "average_precision",
    "checked_measures",
    "expected_cost",
    "interval",
    "lift_at_k",
    "mauc",
    "missed_case_measures",
    "paired_difference",
    "partial_auc",
    "precision_at_k",
    "random_checks",
    "recall_at_k",
    "roc_auc",
    "vus",
]
