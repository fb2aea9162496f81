"""Rules of the house that a count can hold; each limit only ever goes down."""

import ast
import re
from collections import Counter

from source_trees import nodes, trees

# Calls of `hasattr` and `getattr`: a protocol, a base class or a default says it better.
MOST_ATTRIBUTE_TESTS = 40
# A docstring begins with a noun or an imperative verb, not with one of these.
PRONOUNS = (
    *("That", "Those", "It", "Its", "They", "What"),
    *("Which", "Who", "This", "These", "As", "Whether"),
)
# Words of messages that a reader must decode; plain ones are significant, against, duplicate,
# majority, given, predicted, continues. The name of an option may be one of them.
RIDDLES = re.compile(
    r"told apart|\bbeside\b|(?<!-)\bcopies\b|\bthe rest\b|asked for|in the running"
    r"|columns that count|taken for\b|at (?:its|their) word|has no use for"
    r"|\bforetold\b|\bgoes on\b|\banew\b",
    re.IGNORECASE,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def doubled_classes():
    """Names of classes at the top of a module that another module defines as well."""
    names = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    return {name for name, times in names.items() if times > 1}


def attribute_tests():
    """Places that ask for an attribute by its name as a string."""
    return [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hasattr", "getattr")
    ]


def docstrings_with_a_pronoun_first():
    """Places whose docstring begins with a pronoun."""
    found = []
    for path, node in nodes():
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if text and text.split()[0].rstrip(",;:.") in PRONOUNS:
            found.append(f"{path}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    return found


def test_a_class_name_is_defined_once():
    assert sorted(doubled_classes()) == []


def test_attributes_are_seldom_asked_for_by_name():
    places = attribute_tests()
    assert len(places) <= MOST_ATTRIBUTE_TESTS, "\n".join([f"{len(places)}:", *places])


def test_docstrings_begin_with_a_noun_or_a_verb():
    assert docstrings_with_a_pronoun_first() == []


def texts():
    """Strings of the package that hold a space and are no docstrings, with their places."""
    loose = {id(node.value) for _, node in nodes() if isinstance(node, ast.Expr)}
    for path, node in nodes():
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and " " in node.value and id(node) not in loose:
            yield f"{path}:{node.lineno}", node.value


def test_messages_have_no_riddles():
    assert [(place, text) for place, text in texts() if RIDDLES.search(text)] == []


def test_facts_of_a_model_are_typed():
    """Only `rareclass.model.facts` knows the keys of the facts as JSON; others read attributes."""
    places = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and ast.unparse(node.value).endswith(("metadata", ".facts"))
    ]
    assert places == []
