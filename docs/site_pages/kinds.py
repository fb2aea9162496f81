"""The page of findings and errors by kind: each kind with what it means and what to do."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rareclass.errors import ErrorKind as E
from rareclass.findings import FindingKind as F
from rareclass.tables.dates import HOW_TO_WRITE


class Entry(NamedTuple):
    """Meaning of a kind, and the remedy."""

    means: str
    do: str = ""


FINDINGS: dict[F, Entry] = {
    F.UNKNOWN_LABELS: Entry(
        "Labelled rows have target values that training did not have; they count as majority.",
        "Correct the values, or train again.",
    ),
    F.TRAINING_ROWS: Entry(
        "The rows to measure a model by seem to be those of its training: as many, and alike "
        "in every column. Measures on them are too good.",
        "Give other rows; `rareclass show MODEL` has the estimate for new ones.",
    ),
    F.NO_GROUPS: Entry(
        "The rows to measure a model by lack the column of groups that training had: rows count "
        "one by one, and intervals are too narrow where rows of a group are alike.",
        "Give the column, too.",
    ),
    F.RARE_BY_ROWS: Entry(
        "The class with fewer rows is taken for the rare one, though its weight is larger.",
        "Name the rare class: `pos_label`, `--positive`.",
    ),
    F.FEW_OF_CLASS: Entry(
        "Of several rare classes some have fewer than 5 rows; what is said of these is rough.",
        "Give more rows of them, or merge them with a similar class.",
    ),
    F.LABEL_SPELLINGS: Entry("Several spellings, such as `1` and `1.0`, are one target value."),
    F.LABELS_LOOK_ALIKE: Entry(
        "Different target values look alike: a Latin and a Cyrillic letter, or 1 and the text `1`.",
        "Write them alike where they mean the same.",
    ),
    F.COLUMNS_RENAMED: Entry(
        "Several columns have the same name; later ones are read as `name.1`, `name.2`.",
        "Rename the columns.",
    ),
    F.ENCODING: Entry(
        "A text is not UTF-8 and was read as cp1252, the encoding of Western European Windows.",
        "If words look wrong, name the encoding: `--encoding cp1251`, or `encoding=` in Python.",
    ),
    F.COMMENT: Entry(
        "The header line begins with # or %, as comments do, and was read as the column names.",
        "Take the line out, if it is a comment.",
    ),
    F.MOSTLY_NUMBERS: Entry(
        "A column is read as words because some of its cells are not numbers.",
        "Leave those cells empty.",
    ),
    F.CODES: Entry(
        "Some whole numbers of a column begin with a zero: its values are words, `007` is not `7`.",
        "Write them without such zeros, if they are quantities.",
    ),
    F.NUMBER_FORMAT: Entry(
        "Numbers are written with separators, units or signs, and were read as numbers.",
        "Read them as words with `--category`, if that is wrong.",
    ),
    F.LONG_NUMBERS: Entry("Whole numbers have too many digits for a number; they are words."),
    F.TWO_DATE_FORMATS: Entry(
        "Dates fit two formats, and one was chosen.", "Write days as 2024-12-31."
    ),
    F.UNREAD_DATES: Entry("Cells look like dates, and are read as words.", HOW_TO_WRITE),
    F.NO_ZONE: Entry(
        "Times have no zone, where training had one; they are taken for times of that zone."
    ),
    F.ID_LIKE: Entry(
        "A column names rows and is left out.", "Use it with `--keep`, or as a category."
    ),
    F.UNUSABLE: Entry(
        "A column holds lists, objects, bytes or another type that is neither numbers, words nor "
        "times, and is left out.",
        "Turn it into columns of numbers or words.",
    ),
    F.CONSTRAINT_NOT_MET: Entry(
        "No threshold keeps the rule at this confidence; the nearest one is used.",
        "Lower the confidence, weaken the rule, or label more rows.",
    ),
    F.NO_ALERTS: Entry("The threshold calls no held-out row rare.", "Weaken the rule."),
    F.APPROXIMATE: Entry(
        "The guarantee of the threshold is approximate: weights are not whole numbers, or the "
        "model learned from the rows that chose the threshold.",
        "Choose the threshold on other labelled rows.",
    ),
    F.NOTHING_TO_REVIEW: Entry(
        "The review threshold is not below the block threshold.", "Weaken the rule for review."
    ),
    F.WEIGHTS_IN_MAP: Entry(
        "The classifier takes no `sample_weight`; weights count in the map to probabilities alone."
    ),
    F.CONSTANT_SCORES: Entry(
        "All held-out scores are equal: every probability is the share of rare rows."
    ),
    F.ONE_COLUMN_DECIDES: Entry(
        "One column makes up nearly all of the distance between rows.", "Standardise the columns."
    ),
    F.RIDGE_ADDED: Entry(
        "The covariance of the majority has no inverse; a ridge was added.",
        "Choose `ridge`, or leave out dependent columns.",
    ),
    F.LABEL_LEAK: Entry(
        "One column alone ranks the rows almost perfectly: it may have been filled in after the "
        "label was known.",
        "Leave it out with `--drop`, if so.",
    ),
    F.HOLDS_NEARBY: Entry(
        "Rare rows with the same value of a column stand close together in the table, and the "
        "column says much less about rows far away.",
        "If the rows are in the order of time, pass `time`: model and estimate allow for it then.",
    ),
    F.DOES_NOT_CARRY_OVER: Entry(
        "Rows of other times rank better without a column, whose values hold for nearby rows only: "
        "it is left out."
    ),
    F.LEARNED_BY_VALUE: Entry(
        "The model learns single values of a column, such as single customers.",
        "If new rows have other values: `--groups` for an honest estimate, `--drop` to train "
        "without the column.",
    ),
    F.INTERRUPTED: Entry("Ctrl-C ended the training; the model is the best so far."),
    F.NO_IMPORTANCES: Entry("No rare row was held out: what each column tells is not known."),
    F.MEMBER_FAILED: Entry("A member failed and is left out."),
    F.TIME_LIMIT: Entry(
        "The time limit left out members or rows: the model depends on the speed of the machine.",
        "Give a larger `time_budget`, or None.",
    ),
    F.USELESS_RADIUS: Entry(
        "The ball is uselessly large.", "Give each group of cases a ball, or change C1 or C2."
    ),
    F.NO_MAJORITY: Entry(
        "No row is labelled as majority, so nothing shows where the ball must end.",
        "Label a few cleared rows.",
    ),
    F.ALL_FILTERED: Entry(
        "The filter left out all unlabelled rows.", "Pass a larger `filter`, or none."
    ),
    F.BEYOND_SHARE: Entry(
        "The ball holds more unlabelled rows than can be rare.",
        "Choose prices with `RACHCV`, or pass a larger `rare_share`.",
    ),
    F.SHARE_NOT_REACHED: Entry(
        "Fewer unlabelled rows are near than the share of rare rows asks for.",
        "Pass the `rare_share` that you expect.",
    ),
    F.ROWS_LEFT_ASIDE: Entry(
        "Only the nearest rows shape the ball; all are judged.", "Pass a larger `max_kept`."
    ),
    F.ALL_INSIDE: Entry("The ball holds all unlabelled rows that were kept.", "Lower C2."),
    F.NONE_INSIDE: Entry("The ball holds no unlabelled row.", "Raise C2."),
    F.STOPPED_SHORT: Entry(
        "The solver stopped before the wanted precision.",
        "Raise its limits, or standardise the columns.",
    ),
    F.SINGLE_ROW: Entry(
        "A category has one labelled row, which cannot be held out.", "Label another."
    ),
    F.NONE_HELD_OUT: Entry(
        "A hunt has too few labelled rows to hold any out; prices were not chosen by them.",
        "Label more rows.",
    ),
    F.LINE_CUT_SHORT: Entry(
        "The last line of a journal was cut short by a crash, and is dropped.",
        "Give its verdict again; no verdict that was confirmed is lost.",
    ),
}

ERRORS: dict[E, Entry] = {
    E.MISSING_FILE: Entry("There is no such file, folder, table or model.", "Check the path."),
    E.EXISTING_FILE: Entry(
        "An output exists already, or is an input.", "Choose another name, or `--overwrite`."
    ),
    E.UNWRITABLE: Entry("An output cannot be written: no permission, no room, or no folder."),
    E.LOCKED: Entry("Another process writes the file.", "Wait, or end that process."),
    E.DAMAGED_FILE: Entry("A file is cut short, changed, or not what its format says."),
    E.FILE_FORMAT: Entry("A kind or version of file that is not read.", "Convert or train again."),
    E.CONNECTION: Entry("A server, database, bucket or cluster does not answer."),
    E.MISSING_COLUMN: Entry("A column is missing.", "The error names the closest column."),
    E.COLUMN_NAMES: Entry("A column name is repeated, empty, or reserved.", "Rename the column."),
    E.CELL: Entry(
        "A cell, or a whole column, cannot be read as what it should be.",
        "The error names column, row and value.",
    ),
    E.LABELS: Entry("Labels are unknown, missing, of one class, or of too many."),
    E.TOO_FEW_ROWS: Entry("There are too few rows for this."),
    E.ROWS: Entry("Rows are not as many, not in order, or repeated."),
    E.SHAPE: Entry("An array or a table has another shape or type."),
    E.NOT_FINITE: Entry("A number is missing or infinite where one is needed."),
    E.SETTING: Entry("A parameter or an option has a value that cannot be used."),
    E.COMBINATION: Entry("Options or parameters exclude each other."),
    E.NOT_REACHABLE: Entry("No threshold or setting keeps the constraint.", "Weaken it."),
    E.UNSUPPORTED: Entry("This model, method or table cannot do that."),
    E.MISSING_PACKAGE: Entry("A package is not installed.", "The error has the pip command."),
    E.MEMORY: Entry("More memory is needed than there is.", "The error says what would fit."),
    E.REFUSED: Entry("A file was not opened or a request not answered, for safety or by a limit."),
}


def write_kinds(folder: Path) -> None:
    """Write kinds.md, unless it is there as it should be."""
    text = "\n".join(
        [
            "# Findings and errors by kind\n",
            "For anyone who met a note or an error and wants to know what to do, and for code that "
            "must tell them apart. Messages may change; kinds do not.\n",
            "## Findings\n",
            "A finding is a fact that you should know before you trust a result. The command line "
            "prints it as a note. In Python it comes with a warning, and "
            "`rareclass.findings.finding_of(warning).kind` is its kind.\n",
            *_table(FINDINGS),
            "\n## Errors\n",
            "Input that cannot be used raises `rareclass.errors.InputError`, a `ValueError` with "
            "`kind`, `column`, `row`, `value` and `remedy`. The command line prints it and ends "
            "with exit code 2.\n",
            *_table(ERRORS),
            "",
        ]
    )
    path = folder / "kinds.md"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def _table(entries: dict[F, Entry] | dict[E, Entry]) -> list[str]:
    lines = ["| Kind | Meaning | What to do | In Python |", "|---|---|---|---|"]
    kind: StrEnum
    for kind, entry in entries.items():
        name = f"`{type(kind).__name__}.{kind.name}`"
        lines.append(f"| {kind.value} | {entry.means} | {entry.do} | {name} |")
    return lines
