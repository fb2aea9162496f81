"""`TableEncoder` in ONNX: rows of numbers and words."""

import numpy as np

from rareclass.encoding.encoders import FARTHEST, TableEncoder
from rareclass.model.onnx.graph import TableInputs, Tensor, looked_up, refuse_column
from rareclass.model.onnx.rare_classifier import bounded


def encoded(inputs: TableInputs, encoder: TableEncoder) -> Tensor:
    """Encoded rows, of shape (n_rows, n_features).

    Every word that training knew is encoded once by the encoder itself, and looked up here.

    Raises `InputError` for columns of dates and texts, naming them.
    """
    for column in encoder.columns:
        if column.reads_as == "date" or column.kind == "text":
            raise refuse_column(column.name, "date" if column.reads_as == "date" else "text")
    numbers = [
        inputs.number(column.name) for column in encoder.columns if column.reads_as == "number"
    ]
    parts = [_comparable(inputs.graph.side_by_side(numbers), encoder)] if numbers else []
    words, order = [], []
    for column in encoder.columns:
        if column.reads_as == "string":
            known, table, places = encoder.encoded_words(column.name)
            words.append(looked_up(inputs.places_of_words(column.name, known), table))
            order += places
    if words:
        parts.append(inputs.graph.side_by_side(words).columns(np.argsort(order)))
    X = inputs.graph.side_by_side(parts)
    if encoder.dtype_ == "float32":
        X = X.to(np.float32).to(np.float64)
    return _standardised(X, encoder)


def _comparable(X: Tensor, encoder: TableEncoder) -> Tensor:
    """Numbers centred, or the quantiles of their ranks."""
    if encoder.numbers == "quantiles":
        return bounded(X, encoder.bounded_)
    return ((X - encoder.centre_) / encoder.spread_).clip(-FARTHEST, FARTHEST)


def _standardised(X: Tensor, encoder: TableEncoder) -> Tensor:
    """Medians where cells are empty, markers of that, mean 0 and variance 1, within training."""
    imputer, scaler = encoder.imputer_, encoder.scaler_
    filled = np.where(np.isnan(imputer.statistics_), 0.0, imputer.statistics_).astype(np.float64)
    missing = X.is_nan()
    parts = [X.graph.op("Where", missing, filled, X)]
    if len(imputer.indicator_.features_):
        parts.append(missing.columns(imputer.indicator_.features_).to(np.float64))
    X = (X.graph.side_by_side(parts) - scaler.mean_) / scaler.scale_
    return X.clip(encoder.low_.astype(np.float64), encoder.high_.astype(np.float64))
