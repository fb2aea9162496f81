"""Spellings of labels: which are one label, which only look alike, which are none; their order.

Estimators, files, streams and the command line all ask here: ``Yes``, ``yes`` and ``YES`` are one
label, and so are ``1`` and ``1.0``, however they arrive.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, counted, first_names
from rareclass.findings import Finding, FindingKind, TableWarning, warn

_LARGEST_EXACT = 2.0**53  # the number after it has the same float
_WHOLE = re.compile(r"([+-]?)0*(\d+)")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_MOST_SPELLINGS = 6
# Letters of Cyrillic and Greek in lower case, and the Latin letters that look like them.
_LOOKS = str.maketrans("авекмнорстухіјѕαβεζηικμνορτυχ", "abekmhopctyxijsabezhikmnoptyx")
RARE_LABELS = ("1", "+1", "true", "yes")
REST_LABELS = ("0", "-1", "false", "no")


def label_value(text: str) -> float | str:
    r"""Value by which labels that are text are compared: files write 1 and 1.0, True and true.

    Case, spaces, the width of characters (NFKC) and invisible ones, such as a byte-order mark or a
    soft hyphen (Unicode category Cf), make no other label.

    >>> [label_value(text) for text in ("1", " 1.0 ", "Y\u00ades ", "+9007199254740993")]
    [1.0, 1.0, 'yes', '9007199254740993']
    """
    if not text.isascii():
        normal = unicodedata.normalize("NFKC", text)
        text = "".join(each for each in normal if unicodedata.category(each) != "Cf")
    plain = " ".join(text.split())
    if not _NUMBER.fullmatch(plain):
        return plain.casefold()
    value, whole = float(plain), _WHOLE.fullmatch(plain)
    if whole is None or abs(value) < _LARGEST_EXACT:
        return value
    return whole[1].replace("+", "") + whole[2]  # floats do not tell such numbers apart


def in_order(labels: Sequence[Any]) -> list[int]:
    """Positions of labels in their order: numbers by size, then text, whatever its case.

    >>> in_order(["10", "9", "no"])
    [1, 0, 2]
    """

    def rank(position: int) -> tuple[bool, Any]:
        label = labels[position]
        value = label_value(label) if isinstance(label, str) else label
        return isinstance(value, str), value

    return sorted(range(len(labels)), key=rank)


def one_spelling(counts: dict[str, int]) -> dict[str, str]:
    """Return the most frequent spelling of each label that can be printed; `counts` are rows.

    Warns where a label has several spellings, and of labels that only look alike.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     one_spelling({"No": 90, "yes": 6, "no": 3, "1.50": 1})
    {'No': 'No', 'yes': 'yes', 'no': 'No', '1.50': '1.50'}
    """
    by_value: dict[float | str, list[str]] = {}
    for label in sorted(counts, key=lambda each: (not each.isprintable(), -counts[each])):
        by_value.setdefault(label_value(label), []).append(label)
    for label, *others in by_value.values():
        if others:
            written = [label, *others]
            shown = [f"{each!r} ({counts[each]:,})" for each in written]
            warn(
                f"{first_names(shown, _MOST_SPELLINGS)} are one target value, {label!r}.",
                TableWarning,
                Finding(FindingKind.LABEL_SPELLINGS, {"label": label, "spellings": written}),
            )
    warn_of_look_alikes(label for label, *_ in by_value.values())
    return {label: by_value[label_value(label)][0] for label in counts}


def warn_of_look_alikes(labels: Iterable[Any]) -> None:
    """Warn of different labels that look alike: 1 and "1", or a Latin and a Cyrillic letter a."""
    by_look: dict[str, list[Any]] = {}
    for label in labels:
        by_look.setdefault(str(label_value(str(label))).translate(_LOOKS), []).append(label)
    for alike in by_look.values():
        if len(alike) > 1:
            warn(
                f"{' and '.join(map(ascii, alike))} look alike and are different target values. "
                "Write them alike where they mean the same.",
                TableWarning,
                Finding(FindingKind.LABELS_LOOK_ALIKE, {"labels": alike}),
            )


def codes_among(labels: Iterable[str], known: Sequence[str]) -> dict[str, int]:
    """Return the position of each label among those known; other labels are left out.

    A label is a known one written the same, or else the only one of the same value: 1.0 and 1.

    >>> codes_among(["high", "Low", "2"], ["low", "high"])
    {'high': 1, 'Low': 0}
    """
    exact = {label: code for code, label in enumerate(known)}
    by_value: dict[float | str, list[int]] = {}
    for code, label in enumerate(known):
        by_value.setdefault(label_value(label), []).append(code)
    codes = {}
    for label in labels:
        same = [exact[label]] if label in exact else by_value.get(label_value(label), [])
        if len(same) == 1:
            codes[label] = same[0]
    return codes


def refuse_two_words_for_yes(rare: Sequence[Any], counts: dict[Any, int]) -> None:
    """Refuse a rare label such as ``yes`` beside another that says the same, as ``true``."""
    words = [label for label in counts if isinstance(label, str)]
    if not words:
        return
    says_yes = {label_value(label) for label in RARE_LABELS}
    of_yes = [label for label in words if label_value(label) in says_yes]
    yes = next((label for label in of_yes if label in rare), None)
    other = next((label for label in of_yes if label not in rare), None)
    if yes is not None and other is not None:
        raise ErrorKind.LABELS.error(
            f"The target has {yes!r} in {counted(counts[yes], 'row')} and {other!r} in "
            f"{counted(counts[other], 'row')}, which both say yes.",
            "Write them alike: else only one of them counts as rare.",
            value=other,
        )


def rows_of_each(code: np.ndarray) -> np.ndarray:
    """Number of rows of each position; a mask, of two, takes no more memory."""
    if code.dtype != bool:
        return np.bincount(code)
    n_second = np.count_nonzero(code)
    return np.array([len(code) - n_second, n_second])


def merge_spellings(classes: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return different labels and the position of each row's among them, one a label.

    Of several spellings the most frequent stays; see `one_spelling`, which warns of them.
    """
    if classes.dtype.kind not in "UO":
        return classes, code
    rows = dict(zip(classes.tolist(), rows_of_each(code).tolist(), strict=True))
    spelled = one_spelling({label: n for label, n in rows.items() if isinstance(label, str)})
    kept = np.array([spelled.get(label, label) == label for label in rows])
    if len(spelled) < len(rows):
        warn_of_look_alikes(classes[kept].tolist())
    if kept.all():
        return classes, code
    place = {label: k for k, label in enumerate(classes[kept].tolist())}
    place_of = np.array([place[spelled.get(label, label)] for label in rows])
    return classes[kept], place_of[code.astype(int)]


def spelled_as(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return labels of rows with other spellings of the classes replaced by the classes."""
    if y.dtype.kind not in "UO":
        return y
    texts = [label for label in classes.tolist() if isinstance(label, str)]
    others = {label for label in y.tolist() if isinstance(label, str)} - {*texts}
    class_of = {label: texts[code] for label, code in codes_among(others, texts).items()}
    if not class_of:
        return y
    return np.array([class_of.get(label, label) for label in y.tolist()], dtype=object)


def unmasked(values: Any) -> Any:
    """Return a masked array with None, or NaT, in its masked places; other values as they are."""
    if not np.ma.is_masked(values):
        return values
    if values.dtype.kind in "mM":
        return values.filled(values.dtype.type("NaT"))
    return np.where(values.mask, None, values.data.astype(object))


def missing_labels(y: np.ndarray) -> np.ndarray:
    """Rows whose label is None, NaN, infinite, a missing value of pandas, or an invisible text."""
    if y.dtype.kind in "fmM":
        return np.flatnonzero(~np.isfinite(y))
    if y.dtype.kind not in "OU":
        return np.empty(0, dtype=int)
    names = ("NoneType", "NAType", "NaTType")
    return np.flatnonzero(
        [
            type(v).__name__ in names
            or (isinstance(v, float) and not np.isfinite(v))
            or (isinstance(v, str) and not v.isalnum() and label_value(v) == "")
            for v in y.tolist()
        ]
    )


def refuse_missing(y: np.ndarray, instead: str = "", kept: np.ndarray | None = None) -> None:
    """Raise `InputError` on a row without a label; `instead` says what else to do with such rows.

    `kept` are the numbers of the rows of `y`, where they are not all rows.
    """
    for row in (missing_labels(y) if kept is None else kept[missing_labels(y)])[:1].tolist():
        message = f"Input y contains NaN or infinity, or no label at all: row {row}."
        remedy = f"Drop the rows without a label{instead}."
        raise ErrorKind.LABELS.error(message, remedy, row=row)


def plain(label: Any) -> Any:
    """A label as a user writes it: 1, and not np.int64(1)."""
    return label.item() if isinstance(label, np.generic) else label
