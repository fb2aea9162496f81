"""Code in the text that is a public name leads to its page of the reference."""

from typing import Any

from docutils import nodes
from sphinx import addnodes

from .public_names import reference


def paths_by_name() -> dict[str, str]:
    """Return where each public name is documented, by its dotted path and by the name alone."""
    paths: dict[str, str] = {}
    for module_name, listed in reference().items():
        for name, _ in listed:
            path = f"{module_name}.{name}"
            paths[path] = path
            paths.setdefault(name, path)
    return paths


def link_names(app: Any, doctree: nodes.document) -> None:
    """Turn literals that are public names into references; headings and links are left alone."""
    paths = paths_by_name()
    for literal in list(doctree.findall(nodes.literal)):
        path = paths.get(literal.astext().removesuffix("()"))
        inside = nodes.reference | nodes.title | addnodes.pending_xref
        if path is None or isinstance(literal.parent, inside):
            continue
        link = addnodes.pending_xref(
            "", literal.deepcopy(), refdomain="py", reftype="obj", reftarget=path, refexplicit=True
        )
        literal.replace_self(link)
