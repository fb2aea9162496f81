"""Measures of a ranking with a rare class: exact, weighted, ties honoured, with intervals."""

from rareclass.metrics.areas import (
    accuracy_at_optroc,
    average_precision,
    average_precision_interval,
    partial_auc,
    partial_auc_interval,
    roc_auc,
    roc_auc_interval,
)
from rareclass.metrics.at_k import (
    lift_at_k,
    lift_at_k_interval,
    precision_at_k,
    precision_at_k_interval,
    recall_at_k,
    recall_at_k_interval,
)
from rareclass.metrics.checked import (
    CheckedMeasures,
    CheckedSample,
    checked_measures,
    random_checks,
)
from rareclass.metrics.expected_cost import expected_cost, expected_cost_interval
from rareclass.metrics.interval import Interval
from rareclass.metrics.mauc import mauc, mauc_interval
from rareclass.metrics.missed_cases import MissedCaseMeasures, missed_case_measures
from rareclass.metrics.paired_difference import PairedDifference, paired_difference
from rareclass.metrics.vus import vus, vus_interval

__all__ = [
    "CheckedMeasures",
    "CheckedSample",
    "Interval",
    "MissedCaseMeasures",
    "PairedDifference",
    "accuracy_at_optroc",
    "average_precision",
    "average_precision_interval",
    "checked_measures",
    "expected_cost",
    "expected_cost_interval",
    "lift_at_k",
    "lift_at_k_interval",
    "mauc",
    "mauc_interval",
    "missed_case_measures",
    "paired_difference",
    "partial_auc",
    "partial_auc_interval",
    "precision_at_k",
    "precision_at_k_interval",
    "random_checks",
    "recall_at_k",
    "recall_at_k_interval",
    "roc_auc",
    "roc_auc_interval",
    "vus",
    "vus_interval",
]
