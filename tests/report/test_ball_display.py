"""What a picture of a ball shows: every row counted, the ball in sight, the cases on top."""

import io

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Circle, Rectangle

from command_line import in_new_process
from draws import quick
from rareclass.hyperball.description import BallPicture
from rareclass.report import draw_ball
from rareclass.report.ball_display import MOST_DRAWN

pytestmark = pytest.mark.sampled(0)

RARE, MAJORITY = "labelled rare", "labelled majority"
INSIDE, OUTSIDE = "unlabelled, inside", "unlabelled, outside"


def picture_of(rows, radius, n_rare=3, n_majority=20, title="fraud"):
    distances = np.linalg.norm(rows, axis=1)
    kinds = np.where(distances <= radius, INSIDE, OUTSIDE).astype("U30")
    kinds[:n_rare] = RARE
    kinds[len(rows) - n_majority :] = MAJORITY
    unlabelled = slice(n_rare, len(rows) - n_majority)
    return BallPicture(
        rows[:, :2],
        kinds,
        radius,
        distances[unlabelled],
        distances[:n_rare],
        ("first", "second"),
        title,
    )


def near_and_far(n_far, away, p=2):
    generator = np.random.default_rng(0)
    near = generator.normal(size=(60, p)) * 0.3 / np.sqrt(p)
    far = generator.normal(size=(n_far, p)) + away
    return np.concatenate([near, far])


def rendered(figure):
    file = io.BytesIO()
    figure.savefig(file, dpi=60)
    file.seek(0)
    return matplotlib.image.imread(file)


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def panels_of(figure):
    plane, histogram = figure.axes[:2]
    return plane, histogram


def bar_heights(axes, color):
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return sum(bar.get_height() for bar in bars if to_hex(bar.get_facecolor()) == color.lower())


@pytest.mark.parametrize("radius", [1.0, 1.234, 2.9])
def test_every_kind_is_counted_in_the_legend_and_in_bars_of_one_side(radius):
    picture = picture_of(near_and_far(400, 3.0), radius)
    figure = draw_ball(picture)
    counts = {kind: (picture.kinds == kind).sum() for kind in (RARE, MAJORITY, INSIDE, OUTSIDE)}
    assert {*legend_of(figure)} == {f"{kind}: {n}" for kind, n in counts.items()}
    _, histogram = panels_of(figure)
    assert bar_heights(histogram, "#E69F00") == (picture.distances <= radius).sum()
    assert bar_heights(histogram, "#8F8F8F") == (picture.distances > radius).sum()


def test_disc_and_line_stand_at_the_radius():
    plane, histogram = panels_of(draw_ball(picture_of(near_and_far(400, 2.0), 1.3)))
    (disc,) = [patch for patch in plane.patches if isinstance(patch, Circle)]
    assert disc.get_radius() == 1.3
    assert disc.center == (0.0, 0.0)
    assert any(np.allclose(line.get_xdata(), 1.3) for line in histogram.lines)
    assert plane.get_aspect() == 1.0
    assert "farther" not in plane.get_title() + histogram.get_title()  # the ball is shown whole


def test_rare_rows_lie_above_all_others():
    plane, _ = panels_of(draw_ball(picture_of(near_and_far(3000, 0.5), 1.0)))
    layers = [c for c in plane.collections if isinstance(c, PathCollection)]
    by_layer = sorted(layers, key=lambda layer: layer.get_zorder())
    assert len(by_layer[-1].get_offsets()) == 3
    assert by_layer[-1].get_sizes()[0] > 5 * by_layer[0].get_sizes()[0]
    assert len({layer.get_paths()[0].vertices.shape for layer in layers}) >= 3


def test_tiny_ball_is_zoomed_on_and_rows_farther_out_are_counted():
    rows = np.concatenate([near_and_far(0, 0.0) * 0.01, near_and_far(2000, 0.0, 2)[60:] + 0.5])
    picture = picture_of(rows, 0.01)
    figure = draw_ball(picture)
    rendered(figure)
    plane, histogram = panels_of(figure)
    assert plane.get_xlim()[1] < 0.3
    assert histogram.get_xlim()[1] < 0.3
    n_out = int((np.abs(picture.coordinates).max(axis=1) > plane.get_xlim()[1]).sum())
    assert f"{n_out:,} rows are farther out" in plane.get_title()


def test_few_rows_inside_beside_very_many_stay_visible():
    picture = picture_of(near_and_far(30_000, 4.0), 1.3)
    _, histogram = panels_of(draw_ball(picture))
    assert histogram.get_yscale() == "log"
    assert "log scale" in histogram.get_ylabel()


def test_many_rows_are_thinned_and_the_legend_says_so():
    figure = draw_ball(picture_of(near_and_far(MOST_DRAWN + 5_000, 3.0), 1.0))
    plane, _ = panels_of(figure)
    assert max(len(layer.get_offsets()) for layer in plane.collections) == MOST_DRAWN
    assert any(f"({MOST_DRAWN:,} drawn)" in line for line in legend_of(figure))


def test_rows_that_a_plane_lays_over_the_disc_are_owned_up_to():
    picture = picture_of(near_and_far(1000, 0.8, p=40), 2.0)
    over = (picture.kinds == OUTSIDE) & (np.linalg.norm(picture.coordinates, axis=1) < 2.0)
    plane, _ = panels_of(draw_ball(picture))
    assert f"{over.sum():,} rows" in plane.get_title()


@pytest.mark.parametrize("n_others", quick(2, [0, 300, 1]))
def test_single_rare_row_with_radius_zero(n_others):
    rows = np.concatenate([np.zeros((1, 2)), near_and_far(n_others, 2.0)[60:]])
    figure = draw_ball(picture_of(rows, 0.0, n_rare=1, n_majority=0))
    assert rendered(figure).std() > 0
    plane, histogram = panels_of(figure)
    assert plane.get_xlim()[1] > 0
    assert f"0 of {n_others:,} within" in histogram.texts[0].get_text()


def test_names_are_written_as_they_are(recwarn):
    picture = picture_of(near_and_far(50, 2.0), 1.0, title="a $bad$ _name_ \\frac{")
    picture = picture._replace(axis_names=("amount $", "x_1 $y$"))
    figure = draw_ball(picture)
    rendered(figure)
    assert figure.get_suptitle() == "a $bad$ _name_ \\frac{"


def test_nothing_is_left_in_pyplot_and_counting_needs_no_matplotlib():
    code = (
        "import importlib, pkgutil, sys\n"
        "import rareclass.report\n"
        "for each in pkgutil.iter_modules(rareclass.report.__path__):\n"
        "    importlib.import_module(f'rareclass.report.{each.name}')\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import numpy as np\n"
        "from rareclass.hyperball.description import BallPicture\n"
        "one = np.zeros((1, 2))\n"
        "picture = BallPicture(one, np.array(['labelled rare']), 0.0, np.empty(0), np.zeros(1),\n"
        "                      ('a', 'b'), 'c')\n"
        "rareclass.report.draw_ball(picture)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    in_new_process(code, check=True)
