"""One reader of dates: every spelling of a moment, by the clock that people live by."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from first_contact.containers import (
    FILES,
    FRAMES,
    REFUSED,
    assert_read,
    classifier_readings,
    column_of_file,
    column_of_frame,
    write_csv,
    write_parquet,
)
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, TableWarning
from rareclass.folds.dealing import read_times
from rareclass.stream.reading import DayColumn, find_day_column
from rareclass.tables.dates import read_written, way_in_words
from rareclass.tables.reading import read_dates, times_of
from rareclass.tables.text_columns import CellProfile, note_of_text, reading_of_text
from rareclass.tables.text_reader import Batch

N = 60
At = dt.datetime
UTC = dt.UTC

ISO = {
    "2024-01-15": At(2024, 1, 15),
    "20240115T103000": At(2024, 1, 15, 10, 30),
    "20240115T1030Z": At(2024, 1, 15, 10, 30, tzinfo=UTC),
    "2024-01-15T10": At(2024, 1, 15, 10),
    "2024-01-15T10Z": At(2024, 1, 15, 10, tzinfo=UTC),
    "2024-01-15T10:30": At(2024, 1, 15, 10, 30),
    "2024-01-15 10:30": At(2024, 1, 15, 10, 30),
    "2024-01-15T10:30:05": At(2024, 1, 15, 10, 30, 5),
    "2024-01-15t10:30:05z": At(2024, 1, 15, 10, 30, 5, tzinfo=UTC),
    "2024-01-15T10:30:05.5": At(2024, 1, 15, 10, 30, 5, 500_000),
    "2024-01-15T10:30:05,25": At(2024, 1, 15, 10, 30, 5, 250_000),
    "2024-01-15T10:30:05.123456789": At(2024, 1, 15, 10, 30, 5, 123_456),
    "2024-01-15T10:30:05Z": At(2024, 1, 15, 10, 30, 5, tzinfo=UTC),
    "2024-01-15T10:30:05.000Z": At(2024, 1, 15, 10, 30, 5, tzinfo=UTC),
    "2024-01-15 10:30:05+00": At(2024, 1, 15, 10, 30, 5, tzinfo=UTC),
    "2024-01-15T10:30:05+0530": At(2024, 1, 15, 5, 0, 5, tzinfo=UTC),
    "2024-01-15 10:30:05 -08:00": At(2024, 1, 15, 18, 30, 5, tzinfo=UTC),
    "2024-01-15 10:30:05 UTC": At(2024, 1, 15, 10, 30, 5, tzinfo=UTC),
    "2024-01-15T10:30+01:00[Europe/Paris]": At(2024, 1, 15, 9, 30, tzinfo=UTC),
    "2024-01-15T24:00:00": At(2024, 1, 16),
    "2024-W03-1": At(2024, 1, 15),
    "2024W031T10:30": At(2024, 1, 15, 10, 30),
    "2024-W03": At(2024, 1, 15),
    "2024-015T10:30:00": At(2024, 1, 15, 10, 30),
}
NO_DATES = [
    "2024-02-30",
    "2024-13-01",
    "2024-01-15T25:00",
    "2024-01-15T10:61",
    "today",
    "2024-W54-1",
]
# Columns in some format: their cells, what the first is, and how the day is written.
MORNING, AFTERNOON, DAY = At(2024, 1, 15, 10, 30), At(2024, 1, 15, 15, 4), At(2024, 1, 15)
WRITTEN = {
    "day first": (["15/01/2024", "01/02/2024"], DAY, "%d/%m/%Y"),
    "month first": (["01/15/2024", "02/01/2024"], DAY, "%m/%d/%Y"),
    "two digits": (["15/01/24", "01/02/24"], DAY, "%d/%m/%y"),
    "two digits, dots": (["15.01.24", "01.02.24"], DAY, "%d.%m.%y"),
    "two digits, dashes": (["15-01-24", "28-02-24"], DAY, "%d-%m-%y"),
    "two digits, month first": (["1/15/24", "12/1/24"], DAY, "%m/%d/%y"),
    "two digits, year first": (["24-01-15", "24-12-31"], DAY, "%y-%m-%d"),
    "dots": (["15.1.2024", "1.2.2024"], DAY, "%d.%m.%Y"),
    "year first": (["2024/01/15 10:30", "2024/12/31 11:00"], MORNING, "%Y/%m/%d"),
    "am and pm": (["01/15/2024 3:04 PM", "1/2/2024 12:00 AM"], AFTERNOON, "%m/%d/%Y"),
    "midnight": (
        ["01/15/2024 12:05:00 AM", "1/2/2024 12:00:00 PM"],
        At(2024, 1, 15, 0, 5),
        "%m/%d/%Y",
    ),
    "iso": (["2024-01-15T10:30:00", "2024-12-31T00:00:00"], MORNING, "%Y-%m-%d"),
    "iso with pm": (["2024-01-15 03:04:00 p.m.", "2024-01-16 1:00:00 a.m."], AFTERNOON, "%Y-%m-%d"),
    "names": (["15 January 2024", "1 May 2024"], DAY, "%d %B %Y"),
    "short names": (["15-Jan-24", "01-SEP-24"], DAY, "%d %B %y"),
    "American": (["January 15th, 2024", "Sept 1st, 2024"], DAY, "%B %d %Y"),
    "with a time": (["Jan 15, 2024 3:04 PM", "May 1, 2024 9:00 AM"], AFTERNOON, "%B %d %Y"),
    "weekday": (["Monday, January 15, 2024", "Wed, May 1, 2024"], DAY, "%B %d %Y"),
    "rfc 2822": (
        ["Mon, 15 Jan 2024 10:30:00 GMT", "Wed, 1 May 2024 2:00:00 +0000"],
        MORNING,
        "%d %B %Y",
    ),
    "c": (["Mon Jan 15 10:30:00 2024", "Wed May  1 02:00:00 2024"], MORNING, "%d %B %Y"),
    "web server": (
        ["15/Jan/2024:10:30:00 +0000", "16/Jan/2024:10:30:00 +0000"],
        MORNING,
        "%d %B %Y",
    ),
    "browser": (
        ["Mon Jan 15 2024 10:30:00 GMT+0000 (UTC)", "Tue Jan 16 2024 10:30:00 GMT+0000 (UTC)"],
        MORNING,
        "%B %d %Y",
    ),
    "months": (["2024-01", "2024-12"], At(2024, 1, 1), "%Y-%m"),
    "no date": (["2024-01-15", "0000-00-00"], DAY, "%Y-%m-%d"),
    "the first date": (["0001-01-01", "2024-01-15"], At(1, 1, 1), "%Y-%m-%d"),
}


def profile_of(cells):
    profile = CellProfile()
    profile.add(pl.Series("x", cells), 1)
    return profile


def kind_of_note(cells):
    profile = profile_of(cells)
    note = note_of_text("x", profile, reading_of_text(profile))
    return note and note.kind


@pytest.mark.parametrize("text", ISO)
def test_one_reader_of_iso_8601(text):
    wanted = ISO[text]
    read = read_written(pl.Series([text, None, "2024-01-16T00:00:07"]), "%Y-%m-%dT%H:%M:%S")
    local, offset = read.local.to_list(), read.offset.to_list()
    assert local[1:] == [None, At(2024, 1, 16, 0, 0, 7)]
    if wanted.tzinfo is None:
        assert (local[0], offset[0]) == (wanted, None)
    else:
        assert local[0] - dt.timedelta(seconds=offset[0]) == wanted.replace(tzinfo=None)
    if "T24" not in text:
        batch = Batch(pl.DataFrame({"t": [text]}), np.array([1]), "", [], 1, {})
        (day,) = DayColumn("t", "%Y-%m-%d").days_of(batch)
        assert day == (local[0] - At(1970, 1, 1)).days


@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date_is_none(text):
    assert read_written(pl.Series([text]), "%Y-%m-%d").local.to_list() == [None]


@given(
    st.datetimes(min_value=At(1, 1, 1), max_value=At(9999, 12, 30)),
    st.sampled_from(["T", " "]),
    st.sampled_from([None, 0, 60, -210, 330, 840]),
    st.sampled_from(["microseconds", "milliseconds", "seconds"]),
)
def test_dates_are_those_of_python(when, mark, minutes, digits):
    zone = None if minutes is None else dt.timezone(dt.timedelta(minutes=minutes))
    text = when.replace(tzinfo=zone).isoformat(mark, digits)
    (local,), (offset,) = (each.to_list() for each in read_written(pl.Series([text]), "%Y-%m-%d"))
    assert local == dt.datetime.fromisoformat(text).replace(tzinfo=None)
    assert offset == (None if minutes is None else 60 * minutes)
    if minutes == 0:
        assert read_written(pl.Series([text[:-6] + "Z"]), "%Y-%m-%d").offset.to_list() == [0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", WRITTEN)
def test_columns_of_dates_are_read_however_they_are_written(tmp_path, name):
    cells, first, way = WRITTEN[name]
    column = column_of_file([*cells * N, ""], write_csv, tmp_path)
    assert (column.kind, column.reads_as) == ("date", "date")
    assert (column.date_format or "").startswith(way)
    moment = first.replace(tzinfo=UTC) if column.zone else first
    for cell in (cells[0], moment, moment.isoformat()):
        assert_read([cell], column, tmp_path, [first])
    if not column.zone and first == DAY:
        assert_read([first.date()], column, tmp_path, [first])


def test_years_of_two_digits_are_1970_to_2069():
    cells = pl.Series("x", ["31/12/69", "01/01/70", "15/06/00"])
    years = read_dates(cells, "%d/%m/%y", 1).dt.year().to_list()
    assert years == [2069, 1970, 2000]


def test_the_whole_column_decides_on_the_day_and_the_month():
    months = [f"{1 + k % 12:02}/{1 + k % 28:02}/2024" for k in range(300)]
    assert profile_of(months).dates.ways == ["%m/%d/%Y"]
    days = [f"{1 + k % 28:02}/{1 + k % 12:02}/24" for k in range(300)]
    assert profile_of(days).dates.ways == ["%d/%m/%y"]
    assert kind_of_note(days) is None


def test_where_two_formats_fit_the_choice_is_named():
    in_order = ["01/02/2024", "01/03/2024", "01/09/2024", "02/01/2024", "03/01/2024"]
    assert profile_of(in_order).dates.ways == ["%m/%d/%Y", "%d/%m/%Y"]  # they never fall so
    mixed = ["03/04/2024", "01/02/2024", "02/01/2024"]
    assert profile_of(mixed).dates.ways == ["%d/%m/%Y", "%m/%d/%Y"]
    for cells in (in_order, mixed):
        assert kind_of_note(cells) is FindingKind.TWO_DATE_FORMATS
        with pytest.warns(TableWarning, match="fit .* they are read as") as told:
            times = read_times(cells, len(cells))
        assert (
            way_in_words(profile_of(cells).dates.ways[0])
            in str(told[0].message).split("read as")[1]
        )
        assert (times == times_of(pl.Series("x", cells), np.arange(len(cells)), "")).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "cells",
    [
        ["15. Januar 2024", "1. März 2024"],
        ["15 janvier 2024", "1 mars 2024"],
        ["2024-01-15 10:00:00 CET", "2024-07-15 10:00:00 CEST"],
        ["2024-01-15", "16/01/2024", "2024-01-17"],
        ["2024-01-15", "unknown", "2024-01-17"],
        ["2024-02-30", "2024-02-31"],
    ],
)
def test_dates_that_are_not_read_are_noted(cells):
    assert reading_of_text(profile_of(cells)).reading.reads_as == "string"
    assert kind_of_note(cells) is FindingKind.UNREAD_DATES


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["%d.%m.%y %H:%M", "%d-%m-%Y", "%Y-%m-%d", "%d/%m/%y", "%d %B %Y"])
@pytest.mark.parametrize("row", [0, 7, 60, 199])
@pytest.mark.parametrize("mistake", ["{} x", "99{}"])
def test_the_one_cell_that_is_no_date_is_named(way, row, mistake):
    cells = [(dt.datetime(2024, 1, 1) + dt.timedelta(days=k)).strftime(way) for k in range(200)]
    cells[row] = mistake.format(cells[row])
    assert kind_of_note(cells) is FindingKind.UNREAD_DATES
    assert profile_of(cells).dates.mistake == cells[row]
    with refused(ErrorKind.CELL, column="when", row=row + 1, value=cells[row]):
        times_of(pl.Series("when", cells), np.arange(1, 201), "--time")
    with refused(ErrorKind.CELL, column="time", row=row, value=cells[row]):
        read_times(cells, 200)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WRITTEN)
def test_times_beside_the_rows_are_those_of_a_file(name):
    cells = [cell for cell in WRITTEN[name][0] if cell != "0000-00-00"]
    of_file = times_of(pl.Series("when", cells), np.arange(len(cells)), "--time")
    assert of_file[0] == np.datetime64(WRITTEN[name][1])
    for values in (cells, np.array(cells), pd.Series(cells, dtype=object), pa.array(cells)):
        np.testing.assert_array_equal(read_times(values, len(cells)), of_file)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", [[20240131, 20240201], [20240131, 20241301], [10**7, 10**8]])
def test_whole_numbers_are_dates_beside_the_rows_where_they_are_in_a_file(numbers):
    of_file = times_of(pl.Series("when", numbers), np.arange(2), "--time")
    assert (of_file.dtype.kind == "M") == (numbers[1] == 20240201)
    np.testing.assert_array_equal(
        times_of(pl.Series("when", numbers, pl.Float64), np.arange(2), "--time"), of_file
    )
    for values in (numbers, np.array(numbers) * 1.0, pd.Series(numbers), pl.Series(numbers)):
        np.testing.assert_array_equal(read_times(values, 2), of_file)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "CEST", "local time"])
@pytest.mark.parametrize("day", ["2024-03-01", "01.03.2024", "1 March 2024"])
def test_where_a_zone_has_a_name_the_forms_that_are_read_are_told(zone, day, tmp_path):
    cell, form = f"{day} 10:00 {zone}", "2024-12-31 18:30:00+01:00"
    with refused(ErrorKind.CELL, column="when", row=1, value=cell, says=form):
        times_of(pl.Series("when", [cell]), np.array([1]), "--time")
    with refused(ErrorKind.CELL, column="time", row=0, value=cell, says=form):
        read_times([cell], 1)
    batch = Batch(pl.DataFrame({"when": [cell]}), np.array([2]), "", [], 1, {})
    with refused(ErrorKind.CELL, column="when", row=2, value=cell, says=form):
        find_day_column(batch, "when")
    column = column_of_frame(LOCAL, FRAMES["pandas"])
    assert_read([cell], column, tmp_path, REFUSED)
    with refused(ErrorKind.CELL, column="x", row=7, value=cell, says=form):
        read_dates(pl.Series("x", [cell]), "%Y-%m-%d", 7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.3", "1.2.30"],
        ["10.0.0.1", "10.0.0.2"],
        ["2024-0015", "2024-0016"],
        ["2024-001", "2024-002"],
        ["INV-2024-001", "INV-2024-002"],
        ["1/2", "3/4"],
        ["0176-1234", "0176-1235"],
        ["A-12-2024", "B-13-2024"],
        ["15 Main Street", "16 Main Street"],
        ["May", "June"],
    ],
)
def test_codes_are_no_dates(cells):
    assert reading_of_text(profile_of(cells)).reading.reads_as == "string"
    assert kind_of_note(cells) is None


def test_rows_are_held_out_by_the_day_and_not_by_its_digits():
    """15/01/24 is no day of the year 15: times rise as days do."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(0, 300, 7)]
    for form in ("%d/%m/%y", "%d.%m.%y", "%m/%d/%Y", "%d %B %Y", "%Y-%m-%dT00:00:00Z"):
        column = pl.Series("t", [day.strftime(form) for day in days])
        times = times_of(column, np.arange(1, len(days) + 1), "--time")
        assert times.astype("M8[D]").tolist() == days


LOCAL = [At(2024, 3, 29, 9) + dt.timedelta(days=k % 5, hours=k % 3) for k in range(N)]
BERLIN = [each.replace(tzinfo=ZoneInfo("Europe/Berlin")) for each in LOCAL]
HOURS = [each.hour for each in LOCAL]


def zoned_tables(folder):
    noise = np.random.default_rng(0).normal(size=N)
    frame = pd.DataFrame({"x": pd.DatetimeIndex(BERLIN), "n": noise})
    arrow = pa.table({"x": pa.array(BERLIN, pa.timestamp("us", "Europe/Berlin")), "n": noise})
    tables = {
        "pandas": frame,
        "pandas objects": frame.assign(x=pd.Series(BERLIN, dtype=object)),
        "polars": pl.DataFrame(arrow),
        "Arrow": arrow,
    }
    forms = {"text": "%Y-%m-%dT%H:%M:%S.%f%z", "short offsets": "%Y-%m-%d %H:%M:%S%z"}
    for name, form in forms.items():
        cells = [each.strftime(form) for each in BERLIN]
        tables[name] = pl.DataFrame({"x": cells, "n": noise})
    pq.write_table(arrow, folder / "t.parquet")
    tables["Parquet"] = pl.read_parquet(folder / "t.parquet")
    return tables


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["pandas", "polars", "Arrow", "Parquet", "text", "short offsets"])
def test_the_hour_is_that_of_the_place(tmp_path, name):
    tables = zoned_tables(tmp_path)
    table = read_table(tables[name])
    hours = table.column("x").values // 3600 % 24
    assert hours.tolist() == HOURS
    for other in tables.values():  # whatever the model was trained on
        again = read_table(other, like=table.remembered)
        np.testing.assert_array_equal(again.column("x").values, table.column("x").values)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "minutes"), [("+05:30", 330), ("-03:30", -210)])
def test_times_at_half_an_hour_are_those_of_their_clock(tmp_path, name, minutes):
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    times = [each.replace(tzinfo=zone) for each in LOCAL]
    noise = np.random.default_rng(0).normal(size=N)
    table = read_table(pd.DataFrame({"x": pd.DatetimeIndex(times), "n": noise}))
    assert table.column("x").values[0] == LOCAL[0].replace(tzinfo=UTC).timestamp()
    column = table.remembered[0]
    assert column.zone == name
    for cell in (times[0], times[0].isoformat(), times[0].astimezone(UTC).isoformat()):
        assert_read([cell], column, tmp_path, [LOCAL[0]])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cell", ["2024-01-15T10:00:00Z", "2024-01-15 10:00:00+02:00", BERLIN[0]])
@pytest.mark.parametrize("container", ["CSV", "Parquet", "pandas"])
def test_a_model_of_local_times_refuses_another_clock(tmp_path, container, cell):
    if container == "pandas":
        column = column_of_frame(LOCAL, FRAMES["pandas"])
    elif container == "CSV":
        column = column_of_file([each.isoformat(" ") for each in LOCAL], write_csv, tmp_path)
    else:
        column = column_of_file(LOCAL, write_parquet, tmp_path)
    assert column.zone == ""
    assert_read([cell], column, tmp_path, REFUSED)
    assert list(classifier_readings([cell], column).values()) == [REFUSED] * len(FRAMES)
    with refused(ErrorKind.CELL, column="x", row=8, value="2024-01-15T10:00:00Z"):
        read_dates(pl.Series("x", [str(LOCAL[0]), "2024-01-15T10:00:00Z"]), None, 7)


def test_a_model_of_zoned_times_notes_times_without_a_zone(tmp_path):
    column = column_of_frame(BERLIN, FRAMES["pandas"])
    assert column.zone == "Europe/Berlin"
    with pytest.warns(UserWarning, match="without a zone") as told:
        assert_read(["2024-03-29 09:00:00"], column, tmp_path, [At(2024, 3, 29, 9)])
    assert len(told) >= len(FILES) + len(FRAMES) + 1  # and over HTTP
    with pytest.warns(UserWarning, match="without a zone"):
        found = classifier_readings(["2024-03-29 09:00:00"], column)
    assert list(found.values()) == [[At(2024, 3, 29, 9, tzinfo=UTC).timestamp()]] * len(FRAMES)


def test_an_offset_that_summer_time_does_not_explain_is_refused(tmp_path):
    column = column_of_file([each.isoformat() for each in BERLIN], write_csv, tmp_path)
    assert column.zone == "+01:00/+02:00"
    assert_read(["2024-07-15T10:00:00+02:00"], column, tmp_path, [At(2024, 7, 15, 10)])
    assert_read(["2024-07-15T10:00:00Z"], column, tmp_path, REFUSED)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cell", ["02/01/2024", "01/02/24"])
def test_days_that_may_be_months_are_refused_where_training_had_dates_by_type(tmp_path, cell):
    column = column_of_file([each.date() for each in LOCAL], write_parquet, tmp_path)
    assert_read([cell], column, tmp_path, REFUSED)
    assert_read(["15/01/2024"], column, tmp_path, [At(2024, 1, 15)])
    with refused(ErrorKind.CELL, column="x", row=8, value=cell, says="month/day/year"):
        read_dates(pl.Series("x", [None, cell]), None, 7)
