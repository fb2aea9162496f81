"""Labels that each fold learns from: its own rows alone, by plain loops and fits from outside."""

from contextlib import nullcontext
from copy import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from draws import draws
from encoding.label_tables import folded_rows, little_is_enough, made_frame
from encoding.test_rows_in_order import payments
from rareclass.encoding import table_statistics
from rareclass.encoding.column_values import KnownWords
from rareclass.encoding.label_statistics import TrainingPart
from rareclass.encoding.log_odds import (
    SMOOTHINGS,
    CategoryStatistics,
    LevelCounts,
    PartedRows,
    choose_smoothing,
)
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table
from rareclass.ensemble.training_rows import TrainingViews


def learned_of(labels, statistics):
    names = statistics.category_names_
    singles = {
        (names[place], statistics.known_[place].name(level)): known.log_odds_[level]
        for place, known in zip(labels.kept_, labels.statistics_, strict=True)
        for level in np.flatnonzero(known.log_count_ > 0)
    }
    pairs = {}
    for (i, j), known in zip(labels.pairs_, labels.pair_statistics_, strict=True):
        first, second = (labels.kept_[k] for k in (i, j))
        for cell, n_rows in zip(known.cells_, known.rows_, strict=True):
            one, two = divmod(int(cell), known.width_)
            levels = statistics.known_[first].name(one), statistics.known_[second].name(two)
            pairs[names[first], names[second], *levels] = n_rows
    return singles, pairs


def close(one, other):
    assert one.keys() == other.keys()
    np.testing.assert_allclose([one[k] for k in one], [other[k] for k in one], atol=1e-9)


@given(folded_rows())
@draws(60)
def test_a_fold_learns_what_a_fit_of_its_training_rows_alone_learns(given_rows):
    """Held-out rows are to both what new rows are."""
    rows, _ = given_rows
    weight = np.ones(len(rows.fold)) if rows.weight is None else rows.weight
    with little_is_enough():
        views = TrainingViews(rows)
        for k in range(rows.n_folds):
            own = views.statistics.labels_[views.set_of(k)]
            features = views.encoded_table.of_labels[views.set_of(k)]
            train, held_out = np.flatnonzero(rows.fold != k), np.flatnonzero(rows.fold == k)
            part = rows.learned_by(k).part
            alone = TableStatistics()
            given = rows.table.take(train), rows.is_rare[train], weight[train], part, None
            every = TrainingPart(np.arange(len(train)), part, None, rows.is_drawn)
            encoded = alone.fit_encode(*given, [every])
            (labels,), (of_training,) = alone.labels_, encoded.of_labels
            for found, wanted in zip(
                learned_of(own, views.statistics), learned_of(labels, alone), strict=True
            ):
                close(found, wanted)
            assert own.nearby_only_ == labels.nearby_only_
            mine = dict(zip(own.kept_, own.statistics_, strict=True))
            assert [views.statistics.category_names_[place] for place in mine] == [
                alone.category_names_[place] for place in labels.kept_
            ]
            # Features: out of part in training; of held-out rows those of new rows, where all
            # folds agree on what a word without rows counts as.
            new = alone.encode(rows.table.take(held_out)).of_labels[0]
            order = [own.pairs_.index(pair) for pair in labels.pairs_]
            np.testing.assert_allclose(
                features.pairs[train][:, order], of_training.pairs, atol=1e-7
            )
            for found, wanted in zip(features[:2], of_training[:2], strict=True):
                np.testing.assert_allclose(found[train], wanted, atol=1e-9)
            if own.stand_ins_ == labels.stand_ins_ == [None] * len(own.stand_ins_):
                for found, wanted in zip(features[:2], new[:2], strict=True):
                    np.testing.assert_allclose(found[held_out], wanted, atol=1e-9)
                np.testing.assert_allclose(features.pairs[held_out][:, order], new.pairs, atol=1e-7)


def loop(cells, y, weight, part, smoothing, train, row):
    prior = sum(weight[i] for i in train if y[i]) / sum(weight[i] for i in train)
    rare = others = outside = total = 0.0
    for i in train:
        total += weight[i]
        if row in train and part[i] == part[row]:
            continue
        outside += weight[i]
        if cells[i] == cells[row]:
            rare, others = rare + weight[i] * y[i], others + weight[i] * (not y[i])
    odds = (rare + smoothing * prior) / (others + smoothing * (1 - prior))
    count = (rare + others) * (total / outside if outside else 1.0)
    return np.log(odds) - np.log(prior / (1 - prior)), np.log1p(count)


@given(folded_rows())
@draws(40)
def test_nested_log_odds_and_counts_row_by_row(given_rows):
    rows, _ = given_rows
    weight = np.ones(len(rows.fold)) if rows.weight is None else rows.weight
    part = rows.fold if rows.label_part is None else rows.label_part
    columns = {each.name: each.values.tolist() for each in rows.table.columns}
    with little_is_enough():
        rows = rows._replace(is_drawn=False)  # parts as they are given
        views = TrainingViews(rows)
    for k in range(rows.n_folds):
        labels = views.statistics.labels_[views.set_of(k)]
        features = views.encoded_table.of_labels[views.set_of(k)]
        train = set(np.flatnonzero(rows.fold != k).tolist())
        own = part if len({rows.fold[i] for i in train}) < 2 else rows.fold
        for place, (kept, known) in enumerate(zip(labels.kept_, labels.statistics_, strict=True)):
            cells = [str(each) for each in columns[views.statistics.category_names_[kept]]]
            seen = {cells[i] for i in train}
            for row in range(0, len(cells), 3):
                if cells[row] not in seen and labels.stand_ins_[place] is not None:
                    continue  # what counts as another word has a test of its own
                wanted = loop(cells, rows.is_rare, weight, own, known.smoothing_, train, row)
                found = features.log_odds[row, place], features.log_counts[row, place]
                np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_word_without_rows_in_the_fold_is_a_word_never_seen(share, monkeypatch):
    monkeypatch.setattr(table_statistics, "_KNOWN_UNSEEN", share)
    rng = np.random.default_rng(0)
    n = 200
    y, fold = rng.random(n) < 0.3, np.arange(n) % 4
    shop = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame({"shop": shop, "word": rng.choice(list("xy"), n)})
    frame.loc[[3, 7, 11], "shop"] = "only here"  # in fold 3
    table, stand_in = read_table(frame), pd.Series(shop).mode()[0]
    parts = [TrainingPart(np.flatnonzero(fold != k), fold[fold != k]) for k in range(4)]
    with little_is_enough():
        statistics = TableStatistics()
        encoded = statistics.fit_encode(table, y, None, fold, sets=parts)
    words = ["never", stand_in] if share else ["never"]
    found = encoded.of_labels[3]
    for word in words:
        new = frame.assign(shop=np.where(frame["shop"] == "only here", word, frame["shop"]))
        of_new = statistics.encode(read_table(new, like=table.remembered))
        for own, wanted in zip(found, of_new.of_labels[3], strict=True):
            np.testing.assert_array_equal(own[[3, 7, 11]], wanted[[3, 7, 11]])
        seen = statistics.seen_in(3, encoded.take([3, 7, 11]), 20)
        for own, wanted in zip(seen.levels, of_new.levels, strict=True):
            np.testing.assert_array_equal(own, wanted[[3, 7, 11]])
    # To the other folds it is a word with rows, and a level of its own.
    known = statistics.known_[0].levels(np.array(["only here"], object))
    assert (statistics.seen_in(0, encoded.take([3]), 20).levels[0] == known).all()
    counts = [labels.statistics_[0].log_counts(known)[0] for labels in statistics.labels_]
    np.testing.assert_allclose(counts, np.log1p([3, 3, 3, 0]))


def test_columns_left_out_of_a_fold_have_no_features_in_it():
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.4
    frame, fold = made_frame(rng, 80, y), np.arange(80) % 3
    kinds = [(), ("card",), ("card", "shop")]
    sets = [
        TrainingPart(np.flatnonzero(fold != k), fold[fold != k], left_out=names)
        for k, names in enumerate(kinds)
    ]
    statistics = TableStatistics()
    with little_is_enough():
        encoded = statistics.fit_encode(read_table(frame), y, None, fold, sets=sets)
    for labels, features, names in zip(statistics.labels_, encoded.of_labels, kinds, strict=True):
        kept = [statistics.category_names_[place] for place in labels.kept_]
        assert {"word", "shop", "card"} - set(kept) == set(names)
        assert features.log_odds.shape == features.log_counts.shape == (80, len(kept))
        assert features.pairs.shape == (80, len(labels.pairs_))


def test_codes_that_one_fold_learns_are_none_to_another():
    """Forgotten are those that no fold learns; the places of categories stay right."""
    rng = np.random.default_rng(1)
    n = 4000
    fold, codes = np.arange(n) % 2, rng.integers(0, 40, (3, n))
    y = rng.random(n) < 0.1
    strong = rng.normal(size=40)[codes[2]] > 0.5
    y = np.where(fold == 1, strong, y)  # fold 0 learns from fold 1 alone, and the other way round
    frame = pd.DataFrame({name: codes[k] for k, name in enumerate("abc")})
    frame["word"] = rng.choice(["u", "v"], n)
    sets = [TrainingPart(np.flatnonzero(fold != k), rng.integers(0, 3, n // 2)) for k in (0, 1)]
    statistics = TableStatistics()
    encoded = statistics.fit_encode(read_table(frame), y, None, fold, sets=sets)
    assert statistics.category_names_ == ["word", "c"]
    assert [labels.kept_ for labels in statistics.labels_] == [[0, 1], [0]]
    assert [each.log_odds.shape for each in encoded.of_labels] == [(n, 2), (n, 1)]
    new = statistics.encode(read_table(frame))
    held_out = np.flatnonzero(fold == 0)
    np.testing.assert_array_equal(
        new.of_labels[0].log_odds[held_out], encoded.of_labels[0].log_odds[held_out]
    )


def test_sets_are_forgotten_only_where_they_are_alike():
    """Without features a fold still decides by itself which columns hold nearby only."""
    rng = np.random.default_rng(0)
    card, rare, _ = payments()
    n, y = 2 * len(rare), np.repeat(rare, 2)
    card, fold = np.repeat(card, 2), np.arange(n) % 2
    y[fold == 1] = rng.random(n // 2) < 0.1  # fold 1 learns from fold 0 alone
    table = read_table(pd.DataFrame({"card": card, "number": rng.normal(size=n)}))
    half, part = np.arange(n // 2), np.arange(n // 2) % 3
    sets = [TrainingPart(np.flatnonzero(fold != k), part, half, True) for k in (0, 1)]
    statistics = TableStatistics()
    encoded = statistics.fit_encode(table, y, None, fold, sets=sets)
    assert [labels.nearby_only_ for labels in statistics.labels_] == [[], ["card"]]
    assert len(encoded.of_labels) == 2
    quiet = TableStatistics()
    of_noise = quiet.fit_encode(table, rng.random(n) < 0.1, None, fold, sets=sets)
    assert len(quiet.labels_) == len(of_noise.of_labels) == 1


@given(folded_rows())
@draws(30)
def test_a_weight_is_so_many_copies_in_the_same_part(given_rows):
    rows, _ = given_rows
    if rows.weight is None:
        return
    copies = np.repeat(np.arange(len(rows.fold)), rows.weight.astype(int))
    part = rows.label_part if rows.label_part is None else rows.label_part[copies]
    # The halves of the table that columns in bursts are learned out of are halves of rows.
    rows = rows._replace(is_drawn=False)
    repeated = rows.part(copies, None)._replace(label_part=part)
    with little_is_enough():
        one, other = TrainingViews(rows), TrainingViews(repeated)
    for own, wanted in zip(one.encoded_table.of_labels, other.encoded_table.of_labels, strict=True):
        assert [each.shape[1] for each in own] == [each.shape[1] for each in wanted]
        for found, repeats in zip(own, wanted, strict=True):
            np.testing.assert_allclose(found[copies], repeats, atol=1e-6)


def test_features_are_taken_by_row():
    rng = np.random.default_rng(0)
    y = rng.random(40) < 0.4
    table = read_table(made_frame(rng, 40, y)[["word", "shop"]])
    encoded = TableStatistics().fit_encode(table, y, None, np.arange(40) % 3)
    (features,) = encoded.of_labels
    for rows in (np.array([3, 1]), slice(2, 9), y):
        for whole, part in zip(features, features.take(rows), strict=True):
            np.testing.assert_array_equal(part, whole[rows])


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 3), st.integers(0, 2)),
    min_size=2,
    max_size=30,
).filter(lambda rows: {bool(y) for _, y, w, _ in rows if w} == {True, False})


def columns(rows):
    code, y, weight, fold = zip(*rows, strict=True)
    return np.array(code), np.array(y), np.array(weight, float), np.array(fold)


def one_log_odds(rows, level, prior, smoothing, other_than=None):
    rare = others = 0.0
    for code, y, weight, fold in rows:
        if code == level and fold != other_than:
            rare, others = rare + weight * y, others + weight * (not y)
    odds = (rare + smoothing * prior) / (others + smoothing * (1 - prior))
    return np.log(odds) - np.log(prior / (1 - prior))


@draws(80)
@given(ROWS)
def test_the_definition_row_by_row(rows):
    code, y, weight, fold = columns(rows)
    statistics = CategoryStatistics()
    out_of_fold = statistics.fit_transform(code, 5, PartedRows(y, weight, fold))
    prior, smoothing = (weight @ y) / weight.sum(), statistics.smoothing_
    wanted = [one_log_odds(rows, row[0], prior, smoothing, row[3]) for row in rows]
    np.testing.assert_allclose(out_of_fold, wanted, atol=1e-9)
    levels = np.array([one_log_odds(rows, level, prior, smoothing) for level in range(5)])
    assert levels[4] == 0
    new = np.array([3, 0, 4, 2, 1])
    np.testing.assert_allclose(statistics.transform(new), levels[new], atol=1e-9)
    counts = np.log1p([sum(row[2] for row in rows if row[0] == level) for level in range(5)])
    np.testing.assert_allclose(statistics.log_counts(new), counts[new])


def test_the_likeliest_smoothing():
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 60, 200).astype(float)
    shares = rng.beta(20 * 0.1, 20 * 0.9, 200)
    counts = LevelCounts(rows, rng.binomial(rows.astype(int), shares).astype(float))
    likelihood = [
        betabinom.logpmf(counts.rare, counts.rows, a * 0.1, a * 0.9).sum() for a in SMOOTHINGS
    ]
    assert choose_smoothing(counts, 0.1) == SMOOTHINGS[np.argmax(likelihood)]
    assert 8 <= choose_smoothing(counts, 0.1) <= 64


@pytest.mark.parametrize("n_levels", [5, 300])
def test_a_column_that_says_nothing_is_smoothed_most_and_one_that_says_all_least(n_levels):
    rng = np.random.default_rng(1)
    code = rng.integers(0, n_levels, 3000)
    noise, certain = CategoryStatistics(), CategoryStatistics()
    for each, y in ((noise, rng.random(3000) < 0.1), (certain, code % 10 == 0)):
        each.fit_transform(code, n_levels, PartedRows(y, np.ones(3000), code % 3))
    assert noise.smoothing_ >= 256
    assert certain.smoothing_ < 1


def test_counts_out_of_part_do_not_know_the_row_itself():
    """Against a loop; the weight of a level's only row, which thinning may set, is not told."""
    codes, fold = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0, 1])
    weight = np.array([1.0, 2.0, 2.0, 7.0, 1.0, 1.0])
    found = CategoryStatistics.log_counts_out_of_part(codes, weight, fold)
    for k in range(6):
        others = fold != fold[k]
        count = weight[others & (codes == codes[k])].sum() * weight.sum() / weight[others].sum()
        np.testing.assert_allclose(found[k], np.log1p(count))
    weight[3] = 1.0
    assert CategoryStatistics.log_counts_out_of_part(codes, weight, fold)[3] == 0.0 == found[3]


def test_words_whose_ends_leave_their_text_are_refused():
    known = KnownWords().fit(["red", "", "blue", "green"])  # ends 0, 3, 3, 7, 12
    known.check_parts()
    for place in range(5):
        for end in (-1, 2, 4, 8, 13):
            ends = known.ends_.copy()
            ends[place] = end
            other = copy(known)
            other.ends_ = ends
            is_sound = ends[0] == 0 and ends[4] <= 12 and (np.sort(ends) == ends).all()
            with nullcontext() if is_sound else pytest.raises(ValueError, match="ends_ point"):
                other.check_parts()
