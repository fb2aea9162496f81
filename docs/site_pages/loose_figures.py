"""Figures that pyplot does not know, such as those of `draw_ball`, for the gallery."""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def loose_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures among an example's names but ``fig``; return how they are shown."""
    saved = []
    for name, value in block_vars["example_globals"].items():
        # Once closed pyplot's own cannot be told by themselves: in examples they are called fig.
        if isinstance(value, Figure) and name != "fig" and not value.get_label():
            value.set_label("shown")
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=100)
            saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])
