"""The cache of machine code: it never hands out code that belongs to something else."""

import dataclasses
import os
import subprocess
import sys

import pytest

import multiadvisor as mad
from multiadvisor.core import compiling
from multiadvisor.learners.tabular.switch import SHIPPED_AGGREGATIONS, SHIPPED_PLANNINGS, combine_switch, expect_switch
from refusal import refused

pytestmark = pytest.mark.slow

WORLD = """
import multiadvisor as mad
from helper import pay

@mad.compiled
def reset(world, x, key):
    x[0] = 0

@mad.compiled
def begin(world, x, advisors):
    advisors[0] = 0
    return 1

@mad.compiled
def local_states(world, x, advisors, m, local):
    for i in range(m):
        local[i] = x[0]

@mad.compiled
def step(world, x, action, key, advisors, m, reward, ended):
    reward[0] = pay()
    return True

def task(step=step):
    world = mad.World((1,), 1, reset, begin, local_states, step)
    return mad.Task("paid", ("wait", "go"), (mad.Advisor("pay", state="one", states=1),), world)
"""
HELPER = """
import multiadvisor as mad
AMOUNT = {amount}

@mad.compiled
def pay():
    return AMOUNT
"""
LOOPS = """
def loop(x):
    return step(x)
"""
SMALL = """
import loops
import multiadvisor as mad
from helper import pay
from multiadvisor.core.compiling import first_use, specialise

@mad.compiled
def step(x):
    return x + pay()

found = specialise(loops.loop, step=step)
with first_use(found):
    print(found(0.0))
"""
MAIN = """
import sys
sys.path.insert(0, {folder!r})
import paid_world
import multiadvisor as mad
print(mad.MultiAdvisor(paid_world.task()).evaluate(1).score)
"""


def score(folder, amount):
    """What a loop gives that calls a world's function that calls a helper, and whether it was compiled."""
    (folder / "helper.py").write_text(HELPER.format(amount=amount))
    (folder / "small.py").write_text(SMALL)
    done = subprocess.run(
        [sys.executable, "-B", "-c", "import small"], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    return float(done.stdout), "compiling" in done.stderr


def test_a_change_in_a_helper_is_noticed_and_the_rest_is_kept(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    assert score(tmp_path, 2.0) == (2.0, True)
    assert score(tmp_path, 2.0) == (2.0, False)
    assert score(tmp_path, 30.0) == (30.0, True)
    assert score(tmp_path, 2.0) == (2.0, False)


def test_what_is_said_of_compiling_is_true(tmp_path):
    """A world in a script is compiled each time, and nothing else is promised."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "helper.py").write_text(HELPER.format(amount=2.0))
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "script.py").write_text(SMALL)
    (tmp_path / "paid_world.py").write_text(WORLD)
    for program, words in (("script.py", "each time: a world in a script"), ("module.py", "kept for the next time")):
        (tmp_path / "module.py").write_text(MAIN.format(folder=str(tmp_path)))
        done = subprocess.run([sys.executable, "-B", program], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, check=True)  # fmt: skip
        assert [words in line for line in done.stderr.splitlines() if "compiling" in line] == [True]


def paying(amount):
    @mad.compiled
    def reset(world, x, key):
        x[0] = 0

    @mad.compiled
    def begin(world, x, advisors):
        advisors[0] = 0
        return 1

    @mad.compiled
    def local_states(world, x, advisors, m, local):
        local[0] = 0

    @mad.compiled
    def step(world, x, action, key, advisors, m, reward, ended):
        reward[0] = amount
        return True

    world = mad.World((1,), 1, reset, begin, local_states, step)
    return mad.Task("paid", ("wait", "go"), (mad.Advisor("pay", state="one", states=1),), world)


def test_worlds_made_by_one_function_do_not_share_code():
    assert [mad.MultiAdvisor(paying(amount)).evaluate(1).score for amount in (1.0, 5.0)] == [1.0, 5.0]


def test_what_cannot_be_compiled_is_said_in_one_sentence():
    task = paying(1.0)

    @mad.compiled
    def step(world, x, action, key, advisors, m, reward, ended):
        return len(str(action)) == "no"

    broken = dataclasses.replace(task, world=dataclasses.replace(task.world, step=step))
    refused("cannot be compiled: run check_task", lambda: mad.MultiAdvisor(broken).learn(1))


def test_what_names_the_cache_is_the_same_in_every_process():
    """No address of a function and no order of a set: else each process would compile for itself."""
    parts = []

    class Recorder:
        update = staticmethod(parts.append)

    for switch in (expect_switch(SHIPPED_PLANNINGS), combine_switch(SHIPPED_AGGREGATIONS)):
        compiling._put(Recorder(), switch, set())
    compiling._put(Recorder(), (frozenset("ab"), mad.make("pac-boy").world), set())
    assert len(parts) > 100
    assert b" at 0x" not in b"".join(parts)
    assert b"frozenset" not in b"".join(parts)


def test_functions_inside_are_told_apart():
    @compiling.inside
    def more(x):
        return x + 1

    @compiling.inside
    def twice(x):
        return 2 * x

    @compiling.compiled
    def both(x):
        return more(twice(x)), twice(more(x))

    assert both(5) == (11, 12)
    assert both(0.25) == (1.5, 2.5)
