"""A state in few arrays: what is packed comes back as it was."""

import numpy as np
import pytest

from multiadvisor.errors import BadInput

packed = pytest.importorskip("multiadvisor.learners.packed", exc_type=BadInput)

TREE = {
    "bias": np.arange(3, dtype=np.float32), "count": np.array(7, np.int32), "long": np.ones((200, 200), np.float32),
    "weights": (np.arange(6, dtype=np.float32).reshape(2, 3), np.array(0.5, np.float32)),
}  # fmt: skip


def same(found, wanted):
    jax = packed.jax
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_short_arrays_are_one_of_each_type_and_come_back():
    made = packed.pack(TREE, False)
    assert {kind: row.shape for kind, row in made.short.items()} == {"float32": (10,), "int32": (1,)}
    assert [leaf.shape for leaf in made.long] == [(200, 200)]
    same(made.tree(), TREE)
    same(made.copied(), TREE)
    for one, other in zip(made.first(3), (TREE["bias"], TREE["count"], TREE["long"]), strict=True):
        assert np.array_equal(one, other)


def test_arrays_of_several_runs_stay_as_they_are():
    made = packed.pack(TREE, True)
    assert made.short == {}
    same(made.tree(), TREE)


def test_a_call_changes_a_packed_tree_and_leaves_copies_alone():
    def call(tree, more):
        return packed.jax.tree.map(lambda leaf: leaf + more.astype(leaf.dtype), tree), tree["bias"].sum()

    made = packed.pack(TREE, False)
    before = made.first(1)[0]
    changed, total = packed.on_packed(call, False)(made, np.float32(1))
    assert total == 3
    assert np.array_equal(before, TREE["bias"])
    same(changed.tree(), packed.jax.tree.map(lambda leaf: leaf + leaf.dtype.type(1), TREE))
