"""Markdown as the results pages have it."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column and columns of words to the left, figures to the right."""
    cells = [[cell.replace(" ± ", "\u00a0±\u00a0") for cell in row] for row in rows]
    columns = list(zip(*cells, strict=True))[1:] or [()] * (len(header) - 1)
    sides = "".join("---|" if _is_words(column) else "---:|" for column in columns)
    lines = ["| " + " | ".join(header) + " |", f"|---|{sides}"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in cells])


def _is_words(column: Sequence[str]) -> bool:
    """Check if most cells that are not empty begin with a letter."""
    filled = [cell.lstrip("*`") for cell in column if cell]
    return sum(cell[:1].isalpha() for cell in filled) > len(filled) / 2
