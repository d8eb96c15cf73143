"""MBPP rows whose asserts pass objects that cannot cross between processes.

Three pass instances of a class that the solution itself defines (367, 601, 927), one passes a type (533). Their check
sends plain data instead, and an adapter, run after the candidate's source in the candidate's process, turns that
into the objects asked for.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Adapted:
    """Both ends of one row's adaptation, as source."""

    in_check: str
    """Defines, inside `check(candidate)`, the names that the asserts use."""
    in_candidate: str
    """Defines `adapted_entry`, which is called in place of the entry point."""


def _tree(entry_point: str) -> Adapted:
    """A binary tree of `Node`, sent as nested tuples (data, left, right)."""
    return Adapted(
        in_check=f"""
class Node:
    def __init__(self, data):
        self.data, self.left, self.right = data, None, None
def as_tuples(node):
    return None if node is None else (node.data, as_tuples(node.left), as_tuples(node.right))
def {entry_point}(root):
    return candidate(as_tuples(root))
""",
        in_candidate=f"""
def adapted_entry(tree):
    def as_nodes(tree):
        if tree is None:
            return None
        node = Node(tree[0])
        node.left, node.right = as_nodes(tree[1]), as_nodes(tree[2])
        return node
    return {entry_point}(as_nodes(tree))
""",
    )


ADAPTED = {
    (367, "is_tree_balanced"): _tree("is_tree_balanced"),
    (927, "max_height"): _tree("max_height"),
    (601, "max_chain_length"): Adapted(
        in_check="""
def Pair(a, b):
    return (a, b)
max_chain_length = candidate
""",
        in_candidate="""
def adapted_entry(pairs, n):
    return max_chain_length([Pair(a, b) for a, b in pairs], n)
""",
    ),
    (533, "remove_datatype"): Adapted(
        in_check="""
def remove_datatype(items, data_type):
    return candidate(items, data_type.__name__)
""",
        in_candidate="""
def adapted_entry(items, type_name):
    return remove_datatype(items, {"int": int, "str": str, "float": float, "bool": bool}[type_name])
""",
    ),
}
"""(row, entry point) -> how it is adapted."""
