"""``rareclass audit``: rows of a table whose label is probably wrong, and how many at most."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.cli.fit import Effort, effort_option
from rareclass.cli.fit_text import print_data
from rareclass.errors import counted
from rareclass.files import TABLE_SUFFIXES, check_output
from rareclass.parameters import opt
from rareclass.tables import ColumnSettings

if TYPE_CHECKING:
    from rareclass.audit import SuspectRows, TableRows
    from rareclass.fit.training_set import TrainingSet

# Suspect rows of each kind that are printed, and the columns named for each.
_MOST_SHOWN, _MOST_REASONS = 5, 2


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Options of ``rareclass audit``."""

    given: str = cli.argument(
        "File or folder with the labels: CSV, JSON lines, Parquet; or a database.", "DATA"
    )
    target: str = opt("Column with the labels.", cli.REQUIRED)
    out: Path = opt("File of rows to check, .csv or .parquet.", cli.REQUIRED)
    positive: tuple[str, ...] = cli.positive_option()
    columns: ColumnSettings
    id_column: str | None = opt("Column with row identifiers, to name rows by: not a feature.")
    top: int = opt("Rows to list of each kind.", 50, min=1)
    repeats: int = opt("Models with different folds, whose scores are averaged.", 2, min=1)
    members: tuple[str, ...] = opt(
        "Ensemble member, as for rareclass fit.", (), show_default="auto"
    )
    effort: Effort = effort_option("standard")
    seed: int = cli.seed_option("Same seed, same rows.")
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def audit(options: AuditOptions) -> None:
    """Find rows of DATA whose label is probably wrong, and how many there are at most.

    Lists majority rows that are probably missed rare cases, and rare rows that probably are not,
    each with the columns that speak against its label, and the nearest rare rows.
    """
    from rareclass.audit import audit as audit_rows
    from rareclass.audit import audit_frame
    from rareclass.files import write_table
    from rareclass.findings import warnings_as
    from rareclass.fit.auto_method import AutoMethod, check_members
    from rareclass.fit.training_set import FitSettings, read_training_set
    from rareclass.machine import track
    from rareclass.tables.table_file import named_columns, open_table

    out, written, id_column = options.out, options.written, options.id_column
    place = options.table.place(options.given, "DATA")
    read = {"the file to be read": place}
    check_output(out, "--out", written.overwrite, read, suffixes=TABLE_SUFFIXES)
    written.check(read | {"--out": out})
    named = check_members(options.members or ("auto",))
    file = named_columns(open_table(place, options.table.text))
    settings = FitSettings(
        target=options.target,
        positive=options.positive,
        **vars(options.columns),
        method=AutoMethod(),
        id_column=id_column,
    )
    console, notes = screen.output(), list[str]()
    with track(f"Reading {place.name}"):
        data = read_training_set(file, settings)
    print_data(console, data, place.name, settings, details=False)
    with warnings_as(notes):
        found = audit_rows(
            data.rows,
            data.y,
            sample_weight=data.weight,
            pos_label=1,
            top=options.top,
            n_repeats=options.repeats,
            effort=options.effort,
            members=list(named),
            random_state=options.seed,
        )
    rows = _table_rows(data, id_column)
    frame = audit_frame(found, rows)
    write_table(out, frame)
    _print_suspects(console, "Majority rows that are probably rare", found.missed, rows)
    _print_suspects(console, "Rare rows that probably are not", found.wrong, rows)
    console.print(
        "\nThe limits assume that labels are wrong at random, not more often where the classes "
        f"meet: then at most {found.missed.limit.share:.0%} of all rare rows were missed. Labels "
        "cannot show that any are wrong, as classes that overlap look the same. Confident learning "
        "counts the rows whose probability reaches the mean of the other label, and assumes that "
        "probabilities are calibrated."
    )
    screen.print_notes(console, *notes)
    console.print(f"\nSaved {screen.file_text(out)}", soft_wrap=True)
    limits = {"missed": asdict(found.missed.limit), "wrong": asdict(found.wrong.limit)}
    written.give(limits | {"rows": frame.to_dicts()})


def _table_rows(data: "TrainingSet", id_column: str | None) -> "TableRows":
    from rareclass.audit import TableRows

    assert data.number is not None
    names = None
    if data.beside is not None and id_column is not None:
        names = data.beside[id_column].cast(str).fill_null("").to_list()
    return TableRows(data.rows, data.number.tolist(), names)  # type: ignore[arg-type]


def _print_suspects(
    console: Console, title: str, suspects: "SuspectRows", rows: "TableRows"
) -> None:
    """Print the limit, and the first rows with the columns that speak against their label."""
    console.print(f"\n{title}", style="bold")
    console.print(
        f"At most {suspects.limit.most:,.0f} rows (95% confidence, if labels are wrong at random)"
    )
    lines = []
    named = rows.number if rows.names is None else rows.names
    for k, row in enumerate(suspects.row[:_MOST_SHOWN]):
        case = str(named[suspects.case[k, 0]]) if suspects.case.shape[1] else ""
        reasons = ", ".join(suspects.reasons[k][:_MOST_REASONS])
        lines.append((str(named[row]), f"{suspects.probability[k]:.3f}", reasons, case))
    heads = ("Row", "Probability", "Because of", "Nearest rare row")
    screen.print_table(console, heads, lines, heads[:2:-1], ("Because of",))
    n_twice = sum(len(each) > 0 for each in suspects.contradictions)
    if n_twice:
        have = counted(n_twice, "listed row has", "listed rows have")
        console.print(f"{have} the same cells as a row of the other label (column contradicts).")
