"""Dates in text: one reader of days, times of the day and offsets from UTC."""

import re
from typing import NamedTuple

import polars as pl

ISO_DAY = "%Y-%m-%d"
# ISO 8601 in all of its spellings is one way to write days; a bare 2024-017 is no day of the year.
_ISO_DAYS = (ISO_DAY, "%Y%m%d", "%G-W%V-%u", "%Y-%j")
# Ways to write a day. Several may fit a column: see `DateProfile`. Names of months are English;
# years of two digits are 1970 to 2069.
DAY_FORMATS = (
    ISO_DAY, "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d", "%y/%m/%d",
    "%d %B %Y", "%B %d %Y", "%Y %B %d", "%d %B %y", "%Y-%m", "%m/%Y", "%B %Y",
)  # fmt: skip
_DIGITS = {"%Y": r"\d{4}", "%G": r"\d{4}", "%y": r"\d\d"}
_DIGITS |= {"%j": r"\d{3}", "%V": r"\d\d", "%u": r"\d"}
_DIGITS |= {"%m": r"\d{1,2}", "%d": r"\d{1,2}", "%B": r"\pL{3,9}"}

# A day, and after T, a colon or a space the time, with am or pm, and the offset from UTC.
_TIME = (
    r"(?i)^(.*?)(?:T|:|,?\s+(?:at\s+)?)(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?:\s*([ap])\.?m\.?)?(?:\s*(Z|UTC|GMT|(?:UTC|GMT)?[+-]\d\d(?::?\d\d)?))?(?:\s*[\[(].*[\])])?$"
)
# The times that most columns have, and what polars makes of them.
_HOUR = r"[T ](?:[01]\d|2[0-3]):\d\d"
_PLAIN_TIMES = (
    ("", ""),
    (rf"{_HOUR}:\d\d(?:\.\d+)?", "T%H:%M:%S%.f"),
    (_HOUR, "T%H:%M"),
    (rf"{_HOUR}:\d\d(?:\.\d+)?Z", "T%H:%M:%S%.fZ"),
)
_ZONE = r"((?:Z|z|[+-]\d\d(?::?\d\d)?)?)$"
# Rarer spellings, and the commoner one of the same moment.
_HAS_TIME = r":|\dT\d"
_RARE_TIME = r"[Tt]\d\d(?:\d|[Zz+-]|$)"
_RARE_TIMES = (
    (r"[Tt](\d\d)" + _ZONE, "T${1}:00${2}"),
    (r"[Tt](\d\d)(\d\d)" + _ZONE, "T${1}:${2}${3}"),
    (r"[Tt](\d\d)(\d\d)(\d\d(?:[.,]\d+)?)" + _ZONE, "T${1}:${2}:${3}${4}"),
)
_HAS_NAME = r"\pL{3}"
_NAMED = (
    # As C and the command date write it: Mon Jan 15 10:00:00 UTC 2024.
    (
        r"^(?:\pL{3,9},? )?(\pL{3}) +(\d{1,2}) (\d\d:\d\d:\d\d)((?: [A-Z]{3})?) (\d{4})$",
        "$2 $1 $5 $3$4",
    ),
    (r"(?i)^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?[.,]*\s+", ""),
    (r"(?i)(\d)(?:st|nd|rd|th)\b", "${1}"),
    (r"(?i)\bsept\b", "sep"),
)  # fmt: skip
_LIKE_A_DATE = r"\d[-/.]\d|\d[-/. ]+\pL{3}|\pL{3}\.?,?\s+\d|\d-?W\d|\d{8}[Tt ]\d"
_YEAR = r"(?:(?:19|20)\d\d)"
_LOOKS_LIKE_A_DATE = (
    rf"^(?:\pL+\.?,? )?\d{{1,2}}(?:\.|st|nd|rd|th)?[-/. ]+(?:de )?(?:\d{{1,2}}|\pL{{3,12}}\.?)"
    rf"[-/., ]+(?:de )?{_YEAR}(?:\D|$)"
    rf"|^{_YEAR}[-/. ]+(?:\d{{1,2}}|\pL{{3,12}}\.?)[-/. ]+\d{{1,2}}(?:\D|$)"
    rf"|^(?:\pL+\.?,? )?\pL{{3,12}}\.? \d{{1,2}},? {_YEAR}(?:\D|$)"
    r"|^\d{1,2}/\d{1,2}/\d\d(?:\D|$)"
)
# What to do where a cell is no date that is known.
HOW_TO_WRITE = (
    "Write days as 2024-12-31, times as 2024-12-31 18:30:00, and a zone as its offset from UTC: "
    "2024-12-31 18:30:00+01:00."
)
_FIRST = 50  # cells that are looked at before all are
_MOSTLY = 0.75  # cells that one format must fit for the others to be mistakes
_SUMMER_TIME = 3600  # seconds by which offsets of one place differ, at most
_MICROSECONDS = 1_000_000
_A_YEAR = 366 * 86_400 * _MICROSECONDS


class WrittenDates(NamedTuple):
    """Dates by the clock they are written in, and that clock's offset from UTC in seconds.

    Null where a cell is empty or no date; an offset is null where none is written.
    """

    local: pl.Series
    offset: pl.Series


def without_zero_dates(cells: pl.Series) -> pl.Series:
    """Make dates such as 0000-00-00, by which databases say that there is none, null."""
    return cells.set(cells.str.starts_with("0000-00-00").fill_null(False), None)


def read_written(cells: pl.Series, date_format: str) -> WrittenDates:
    """Read text as dates whose days are written so, or as ISO 8601 says; any time may follow."""
    way = day_format(date_format)
    written = _written_as(cells, way)
    if way != ISO_DAY and written.local.null_count() > cells.null_count():
        local = written.local
        more = _written_as(cells, ISO_DAY)
        local = local.zip_with(local.is_not_null(), more.local)
        written = WrittenDates(local, written.offset.fill_null(more.offset))
    return WrittenDates(written.local.alias(cells.name), written.offset)


def _written_as(cells: pl.Series, way: str) -> WrittenDates:
    shape = _shape(way)
    for time, code in _PLAIN_TIMES if "%d" in way and "%B" not in way else ():  # fast
        pattern = f"^{shape}{time}$"
        if all(some.str.contains(pattern).all() for some in (cells.head(_FIRST), cells)):
            text = cells.str.replace(" ", "T", literal=True) if time else cells
            local = text.str.to_datetime(way + code, strict=False, time_unit="us")
            offset = 0 if code.endswith("Z") else None
            return WrittenDates(local, pl.repeat(offset, len(cells), dtype=pl.Int64, eager=True))
    parts = _parts_of(cells)
    return WrittenDates(_moments(parts, way), parts.offset)


def _shape(way: str) -> str:
    """Return the pattern of days that are written in a way."""
    shape = re.sub(r"%[A-Za-z]", lambda code: _DIGITS[code[0]], way.replace(".", r"\."))
    if way.endswith("%y") and "/" not in way and "%B" not in way:
        shape = shape.replace("{1,2}", "{2}")  # codes such as 1.2.3 are no dates
    return shape


def day_format(date_format: str) -> str:
    """Return how the day is written, of a format that may have a time as well."""
    return re.split(r"[T ]%[HI]", date_format)[0]


def look_of_dates(cells: pl.Series) -> pl.Series:
    """Mark text cells that have the look of dates, whoever can read them."""
    return cells.str.contains(_LOOKS_LIKE_A_DATE)


_WORDS = {"%Y": "year", "%y": "year", "%m": "month", "%d": "day", "%B": "month name"}
_WORDS |= {"%H": "h", "%I": "h", "%M": "min", "%S": "s", "%z": " zone", "%p": "am/pm"}


def way_in_words(date_format: str) -> str:
    """Return a format in words.

    >>> way_in_words("%d/%m/%Y %H:%M")
    'day/month/year h:min'
    """
    words = date_format.replace("T%", " %")
    for code, word in _WORDS.items():
        words = words.replace(code, word)
    return words


class _Parts(NamedTuple):
    """Text cells cut apart: day as text, microseconds of the day (0: none), offset in seconds."""

    day: pl.Series
    time: pl.Series
    offset: pl.Series
    is_timed: pl.Series


def _parts_of(cells: pl.Series) -> _Parts:
    text = cells
    if text.str.contains(_RARE_TIME).any():
        for pattern, common in _RARE_TIMES:
            text = text.str.replace(pattern, common)
    if text.str.contains(_HAS_NAME).any():
        for pattern, common in _NAMED:
            text = text.str.replace(pattern, common)
    found = text.str.extract_groups(_TIME).struct.unnest()
    if found["2"].null_count() == len(text):
        zeros = pl.zeros(len(text), pl.Int64, eager=True)
        return _Parts(text, zeros, zeros.set(zeros == 0, None), zeros != 0)
    number = [pl.col(str(k)).cast(pl.Int64, strict=False).fill_null(0) for k in range(8)]
    hour, minute, second = number[2], number[3], number[4]
    half = pl.col("6").str.to_lowercase()
    fraction = pl.col("5").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64).fill_null(0)
    of_day = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + 12 * (half == "p"))
    seconds = 3600 * of_day + 60 * minute + second
    is_time = (minute < 60) & (second <= 60) & (seconds <= 86_400)
    is_time &= half.is_null() | hour.is_between(1, 12)
    zone = pl.col("7").str.to_uppercase().str.replace(r"^(?:UTC|GMT)(.)", "${1}")
    zone = zone.str.replace(":", "", literal=True)
    sign = 1 - 2 * zone.str.starts_with("-").cast(pl.Int64)
    hours = zone.str.slice(1, 2).cast(pl.Int64, strict=False).fill_null(0)
    minutes = zone.str.slice(3, 2).cast(pl.Int64, strict=False).fill_null(0)
    is_timed = found["2"].is_not_null()
    parts = found.select(
        time=pl.when(is_time).then(_MICROSECONDS * seconds + fraction),
        offset=sign * (3600 * hours + 60 * minutes),
    )
    return _Parts(found["1"].zip_with(is_timed, text), parts["time"], parts["offset"], is_timed)


def _moments(parts: _Parts, way: str) -> pl.Series:
    return _days(parts, way).cast(pl.Datetime("us")) + parts.time.cast(pl.Duration("us"))


def _days(parts: _Parts, way: str) -> pl.Series:
    if way != ISO_DAY:
        return _days_written(parts.day, way)
    days = _days_written(parts.day, ISO_DAY)
    for each in _ISO_DAYS[1:]:
        if days.null_count() > parts.day.null_count():
            text = parts.day.str.replace(r"^(\d{4})-?(W\d\d)-?(\d?)$", "${1}-${2}-${3}")
            text = text.str.replace(r"-$", "-1")  # the first day of a week
            if each == "%Y-%j":
                text = parts.day.str.replace(r"^(\d{4})(\d{3})$", "${1}-${2}")
                text = text.set(~parts.is_timed, None)
            days = days.zip_with(days.is_not_null(), _days_written(text, each))
    return days


def _is_shaped(days: pl.Series, way: str, share: float = 1.0) -> bool:
    """Ask whether this share of days, or more, has the shape of a way; ISO 8601 has several."""
    shaped = _with_spaces(days, way).str.contains(f"^{_shape(way)}$")
    return way == ISO_DAY or int(shaped.sum()) >= share * len(days)


def _with_spaces(days: pl.Series, way: str) -> pl.Series:
    if "%B" not in way:
        return days
    return days.str.replace_all(r"[\s,./-]+", " ").str.strip_chars()


def _days_written(days: pl.Series, way: str) -> pl.Series:
    text = _with_spaces(days, way)
    written = text.set(~text.str.contains(f"^{_shape(way)}$").fill_null(False), None)
    if "%d" not in way and "%j" not in way and "%u" not in way:  # a month is its first day
        written, way = "1 " + written, f"%d {way}"
    return written.str.to_date(way, strict=False)


class _Seen(NamedTuple):
    """Least, greatest and last date of the cells so far by one format, and whether in order."""

    low: int
    high: int
    last: int
    in_order: bool


def _best_first(seen: dict[str, _Seen]) -> list[str]:
    """Order formats that fit the same cells, and leave out those of more years than need be."""
    years = {way: (each.high - each.low) // _A_YEAR for way, each in seen.items()}
    likely = [way for way in seen if years[way] <= 1 + min(years.values())]
    return sorted(likely, key=lambda way: not seen[way].in_order)


def way_of_most(cells: pl.Series) -> str | None:
    """Return the format by which most of these text cells are dates; None for numbers.

    All formats read ISO 8601 as well, which is the format where more than half of the dates have
    it. Formats that read as many cells are in the order of `DateProfile`.
    """
    cells = without_zero_dates(cells).drop_nulls()
    few = cells.gather_every(1 + len(cells) // _FIRST)
    likely = [way for way in DAY_FORMATS if _written_as(few, way).local.count()]
    found = {way: read_written(cells, way).local for way in likely}
    most = max((dates.count() for dates in found.values()), default=0)
    if most < max(1, cells.cast(pl.Float64, strict=False).count()):
        return None
    if ISO_DAY in found and 2 * found[ISO_DAY].count() > most:
        return ISO_DAY
    best = {way: dates.drop_nulls() for way, dates in found.items() if dates.count() == most}
    return _best_first({way: _seen_of(each.to_physical(), None) for way, each in best.items()})[0]


class DateProfile:
    """Formats that fit all text cells of a column, gathered batch by batch.

    Where several do, those of more years than need be are none; those under which the dates never
    fall come first, then those that stand first in DAY_FORMATS: day before month.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen | None] = dict.fromkeys(DAY_FORMATS)
        self._offsets: set[int] = set()
        self._time = ""
        # First cell that is no date where nearly all cells before and beside it are.
        self.mistake = ""

    def add(self, cells: pl.Series) -> None:
        """Take in the next cells, none of them null."""
        cells = without_zero_dates(cells).drop_nulls() if self._seen else cells
        if not self._seen or cells.is_empty():
            return
        first = cells.head(_FIRST)
        if not first.str.contains(_LIKE_A_DATE).all():
            self._find_mistake(cells)
            self.clear()
            return
        parts = _parts_of(first)
        shaped = [way for way in self._seen if _is_shaped(parts.day, way)]
        likely = [way for way in shaped if not _moments(parts, way).null_count()]
        found = {way: _written_as(cells, way) for way in likely}
        if all(written.local.null_count() for written in found.values()):
            self._find_mistake(cells)
        self._seen = {
            way: _seen_of(written.local.to_physical(), self._seen[way])
            for way, written in found.items()
            if not written.local.null_count()
        }
        if not self._seen:
            return
        if len(self._offsets) <= 2:
            self._offsets.update(next(iter(found.values())).offset.drop_nulls().unique())
        if not self._time:
            timed = cells.filter(cells.str.contains(_HAS_TIME))
            self._time = _time_format(timed[0]) if len(timed) else ""

    def _find_mistake(self, cells: pl.Series) -> None:
        """Keep the first cell that is no date, where one of the formats so far fits most cells."""
        first = cells.head(_FIRST)
        if first.str.contains(_LIKE_A_DATE).sum() < _MOSTLY * len(first):
            return
        parts = _parts_of(cells)
        shaped = [way for way in self._seen if _is_shaped(parts.day, way, _MOSTLY)]
        wrong = [_moments(parts, way).is_null() for way in shaped]
        fewest = min(wrong, key=lambda each: int(each.sum()), default=None)
        if fewest is not None and fewest.sum() <= (1.0 - _MOSTLY) * len(cells):
            self.mistake = cells.filter(fewest)[0]

    def clear(self) -> None:
        """Say that no format fits."""
        self._seen = {}

    @property
    def ways(self) -> list[str]:
        """The formats of a day that fit all cells, the best first."""
        seen = {way: each for way, each in self._seen.items() if each is not None}
        return _best_first(seen) if seen else list(self._seen)

    @property
    def date_format(self) -> str | None:
        """How the column is written, with its time and zone; None where no format fits."""
        if not any(self._seen.values()):
            return None
        return self.ways[0] + self._time + ("%z" if self._offsets else "")

    @property
    def zone(self) -> str:
        """The clock that the dates are read by; see `zone_of_offsets`."""
        return zone_of_offsets(self._offsets)


def _seen_of(dates: pl.Series, before: _Seen | None) -> _Seen:
    low, high = int(dates.min()), int(dates.max())  # type: ignore[arg-type]
    in_order = dates.is_sorted()
    if before is None:
        return _Seen(low, high, int(dates[-1]), in_order)
    in_order &= before.in_order and before.last <= dates[0]
    return _Seen(min(low, before.low), max(high, before.high), int(dates[-1]), in_order)


def _time_format(cell: str) -> str:
    """How a time is written, for people and for an example: its zone aside.

    >>> [_time_format(f"1/2/2024 {time}") for time in ("9:30", "9:30:00", "9:30 am", "9:30:00 PM")]
    [' %H:%M', ' %H:%M:%S', ' %I:%M %p', ' %I:%M:%S %p']
    >>> _time_format("2024-02-01t09:30")
    'T%H:%M:%S'
    """
    mark = "T" if re.search(r"\d[Tt]\d", cell) else " "
    if re.search(r"(?i)\d\s*[ap]\.?m", cell):
        return f"{mark}%I:%M:%S %p" if cell.count(":") > 1 else f"{mark}%I:%M %p"
    return f"{mark}%H:%M:%S" if cell.count(":") > 1 or mark == "T" else f"{mark}%H:%M"


def zone_of_offsets(offsets: set[int]) -> str:
    """Name the clock of times written at these offsets from UTC.

    That is the one offset; two that a change to summer time explains, when times are read as they
    are written; else UTC. "" for times without any.

    >>> zone_of_offsets({0}), zone_of_offsets({19800}), zone_of_offsets({7200, 3600})
    ('UTC', '+05:30', '+01:00/+02:00')
    >>> zone_of_offsets({7200, -5400}), zone_of_offsets(set())
    ('UTC', '')
    """
    if not offsets:
        return ""
    if offsets == {0} or len(offsets) > 2 or max(offsets) - min(offsets) > _SUMMER_TIME:
        return "UTC"
    signed = [("-" if each < 0 else "+", *divmod(abs(each) // 60, 60)) for each in sorted(offsets)]
    return "/".join(f"{sign}{hours:02}:{minutes:02}" for sign, hours, minutes in signed)


def offsets_of_zone(zone: str) -> list[int] | None:
    """Return the offsets in seconds of a clock that `zone_of_offsets` named; None for a true zone.

    >>> offsets_of_zone("+01:00/+02:00"), offsets_of_zone("UTC"), offsets_of_zone("Asia/Tokyo")
    ([3600, 7200], [0], None)
    >>> quarters = range(-43200, 50401, 900)
    >>> all(offsets_of_zone(zone_of_offsets({each})) == [each] for each in quarters)
    True
    """
    if zone == "UTC":
        return [0]
    if not zone.startswith(("+", "-")):
        return None
    signs = {"+": 1, "-": -1}
    return [
        signs[each[0]] * (3600 * int(each[1:3]) + 60 * int(each[4:6])) for each in zone.split("/")
    ]
