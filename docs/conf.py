"""The documentation site: `make docs` builds it into build/docs, with warnings as errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from site_pages.command_reference import write_command_reference  # noqa: E402
from site_pages.kinds import write_kinds  # noqa: E402
from site_pages.linked_names import link_names  # noqa: E402
from site_pages.links import check_links  # noqa: E402
from site_pages.llms_text import write_llms_text  # noqa: E402
from site_pages.no_other_hosts import check_pages  # noqa: E402
from site_pages.public_names import write_api_pages  # noqa: E402

from benchmarks.pages.registry import write_pages  # noqa: E402
from rareclass import __version__  # noqa: E402

project = "rareclass"
author = "The rareclass developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples", "generated/gallery/*.py", "site_pages", "explanation/*.html"]
default_role = "code"
highlight_language = "none"  # what is no Python says nothing: a terminal's lines
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = False  # pages are written by site_pages.public_names, from __all__
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["generated/gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,
    "image_scrapers": ("matplotlib", "site_pages.loose_figures.loose_figures"),
    "plot_gallery": "True",
    "abort_on_example_error": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "rareclass"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "site_pages" / "search_scorer.js")
html_theme_options = {
    "logo": {"text": "rareclass"},
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without any below them have nothing to show at the left.
html_sidebars = {page: [] for page in ("index", "tutorial", "search")}
html_show_sourcelink = False
html_copy_source = False


def setup(app):
    """Write the pages that are made of the code, before Sphinx looks for pages."""
    generated = HERE / "generated"
    write_api_pages(generated / "api")
    write_command_reference(generated)
    write_pages(generated / "benchmarks")
    write_kinds(generated)
    app.connect("doctree-read", link_names)
    app.connect("build-finished", check_pages)
    app.connect("build-finished", check_links)
    app.connect("build-finished", _write_llms_text)


def _write_llms_text(app, error):
    if error is None and app.builder.name == "html":
        write_llms_text(HERE, Path(app.outdir))
