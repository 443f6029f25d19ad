"""What users add in a file of their own works like what is shipped: the guide, docs/extending.md, has one of each.

Its planning, aggregation, compiled world with a task, learner, study and command are one file here, which is trained,
evaluated, saved, resumed, explained, solved or refused, put on the page, swept and reported; the learner is in
`test_learners.py`.
"""

import dataclasses
import json
import re
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest

import forks
import multiadvisor as mad
from agents import in_pieces, same
from command_line import refused as refused_command
from guide import own_file
from multiadvisor import cli
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.theory.solve_report import answer
from multiadvisor.core import plugins
from multiadvisor.core.aggregations import AGGREGATIONS, register_aggregation
from multiadvisor.core.compiling import inside
from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.core.plannings import PLANNINGS, one_hot, register_planning
from multiadvisor.envs.registry import TASKS
from multiadvisor.explorer.bundle import describe, sends_table
from multiadvisor.learners.kinds import LEARNERS
from multiadvisor.learners.tabular.lane_batch import lane_learner
from multiadvisor.runs.trace import explain_step
from multiadvisor.studies import study
from refusal import refused

pytestmark = pytest.mark.slow

FILE = own_file()
HOW = {"planning": "hopeful", "aggregation": "lamps=loudest:2", "seed": 3}
FLAGS = ["--planning=hopeful", "--aggregation=lamps=loudest:2", "--seed=3", "--eval-every=500", "--eval-episodes=5",
         "--length=4"]  # fmt: skip


@pytest.fixture(autouse=True)
def registries(monkeypatch):
    """Whatever a test registers is gone after it."""
    kept = [(registry, dict(registry)) for registry in (PLANNINGS, AGGREGATIONS, TASKS, LEARNERS, study.OWN, cli.OWN)]
    path = list(sys.path)
    monkeypatch.setattr(plugins, "IMPORTED", [])
    yield
    for registry, before in kept:
        registry.clear()
        registry.update(before)
    sys.path[:] = path


@pytest.fixture
def mine():
    """The user's file; a module is imported once, so that what it registered is put back."""
    module = plugins.import_own(str(FILE))
    PLANNINGS["hopeful"], AGGREGATIONS["loudest"], TASKS["two-lamps"] = module.hopeful, module.loudest, module.two_lamps
    AGGREGATIONS["trusted"] = module.Trusted
    return module


def command(*words, cwd):
    """The command in a process of its own, which knows nothing of this one."""
    done = forks.run(["-m", "multiadvisor", *words], cwd)
    return done.returncode, done.stdout, done.stderr


# ---- in Python -------------------------------------------------------------------------------------------------------
def test_the_values_are_those_of_the_own_functions(mine):
    """In the corridor of 3 a lamp is one step away on one side: Q is worked by hand from the planning's own formula."""
    agent = mad.MultiAdvisor(mad.make("two-lamps", length=3), planning="hopeful", aggregation="loudest", gamma=0.8,
                             alpha=0.3, epsilon=1.0)  # fmt: skip
    agent.learn(60_000)
    left = agent.values("left")  # [3, 2]; it is over in place 0
    # place 1: west pays 1 at once, east leads to place 2; there west leads back and east stays
    stay, back, away, near = 0.0, 0.0, 0.0, 1.0
    for _ in range(200):
        middle, end = 0.5 * max(near, away) + 0.25 * (near + away), 0.5 * max(back, stay) + 0.25 * (back + stay)
        away, back, stay = 0.8 * end, 0.8 * middle, 0.8 * end
    assert left[1] == pytest.approx([near, away], abs=1e-9)
    assert left[2] == pytest.approx([back, stay], abs=1e-9)
    x = np.array([1, 0, 0])
    assert agent.preferences(x) == pytest.approx([1.0, 1.0], abs=1e-9), "the louder of 1 and less, on both sides"


def test_explained_or_refused_in_one_line(mine):
    agent = mad.MultiAdvisor(mad.make("two-lamps"), planning="hopeful").learn(3000)
    assert "west" in str(agent.explain(agent.task.initial_state(), against="east"))
    voted = mad.MultiAdvisor(mad.make("two-lamps"), **HOW).learn(100)
    assert str(voted.explain(voted.task.initial_state()))


def test_the_world_is_solved_and_an_unknown_planning_refused(mine):
    task = mad.make("two-lamps")
    assert answer(task, "egocentric", 0.4).result["states"].count("2 0 0") == 1
    refused("the solver does not know the planning 'hopeful': choose one of", answer, task, "hopeful", 0.9)


def test_a_network_plans_and_hears_so_too(mine):
    deep = mad.DQN(hidden=(8,), batch_size=4, learning_starts=8, buffer_size=64, updates_at_once=1)
    agent = mad.MultiAdvisor(mad.make("two-lamps"), **HOW, learner=deep).learn(64)
    assert np.isfinite(agent.preferences(agent.task.initial_state())).all()


# ---- what an aggregator learns by itself -----------------------------------------------------------------------------
TRUSTED = {"aggregation": "trusted", "epsilon": 0.3, "noise": 0.1, "seed": 3}


def bunny():
    """A Python environment, whose vector reward gives two advisors."""
    return mad.Task.from_gymnasium(gymnasium.make("multiadvisor/mo-Bunny-v0", max_episode_steps=30))


def weighed(agent, state):
    """The learned weights, from the rule's formula, and the preferences that they make."""
    learner = agent._learner
    errors = learner.extra.table[learner.rows(state)[1], 0]
    weights = 1.0 / (1.0 + errors)
    return weights, weights @ agent.advice(state)[1]


worlds = pytest.mark.parametrize("make", [partial(mad.make, "two-lamps"), bunny], ids=["compiled", "adapter"])


@pytest.mark.usefixtures("mine")
@worlds
def test_an_own_rule_learns_goes_on_bit_for_bit_and_is_explained(make, tmp_path):
    agent = mad.MultiAdvisor(make(), **TRUSTED).learn(1500, progress=False)
    assert same(in_pieces(mad.MultiAdvisor(make(), **TRUSTED), make(), tmp_path, 700, 800), agent)
    trace = record(agent, 2, advice=True)
    states = trace.origin.states[trace.walk(1)]
    at = next(k for k, state in enumerate(states) if weighed(agent, state)[0].min() < 1.0)
    state, (weights, wanted) = states[at], weighed(agent, states[at])
    assert agent.preferences(state) == pytest.approx(wanted, abs=1e-12)
    assert agent._learner._total(state) == pytest.approx(wanted, abs=1e-12), "the loop finds the same"
    assert agent.explain(state).totals == pytest.approx(wanted, abs=1e-12)
    assert trace.step(1, at).weights == pytest.approx(weights)
    assert explain_step(agent, trace, 1, at).totals == pytest.approx(wanted, abs=1e-12)
    assert agent.evaluate(2).score == agent.evaluate(2).score


@pytest.mark.usefixtures("mine")
def test_an_own_rule_is_refused_in_one_line_where_it_cannot_be_learned():
    task = mad.make("two-lamps")
    agent = mad.MultiAdvisor(task, **TRUSTED).learn(100, progress=False)
    refused("acts by how far it trusts them, not by advice alone", play, agent, 1)
    refused("'trusted' learns something besides the advisors' tables, which lanes", lane_learner, agent)
    refused("weights are in the values it learned", agent._learner.reweighted, task, False)
    refused("'trusted' is of all advisors: give it alone", mad.MultiAdvisor, task, aggregation="lamps=trusted")
    beside = "'trusted' is learned beside tables, and there are none here"
    refused(beside, mad.MultiAdvisor, task, aggregation="trusted", learner=mad.DQN())
    refused(beside, answer, task, "egocentric", 0.9, aggregation="trusted")
    refused("linear Q-learning is a sum", mad.MultiAdvisor, task, aggregation="trusted", learner="linear")
    assert not sends_table(agent)
    assert [part["name"] for part in describe(agent, "")["aggregator"]["parts"]] == ["trusted"]


@inside
def makes_a_list(work, slots, m, arrivals, step, taken):
    return [m].nothing


@pytest.mark.usefixtures("mine")
@worlds
def test_a_rule_that_does_not_fit_is_refused(make):
    for rule, line in (
        ({"targets": makes_a_list}, "unknown function of the rule of 'own' 'targets'"),
        ({"target": makes_a_list}, "the rule of the aggregation 'own' cannot be compiled"),
    ):
        AGGREGATIONS.pop("own", None)
        register_aggregation("own")(type("Own", (LearnedAggregation,), {"rule": rule}))
        refused(line, lambda: mad.MultiAdvisor(make(), aggregation="own").learn(1, progress=False))


@pytest.mark.usefixtures("mine")
def test_two_that_are_learned_are_one_too_many():
    register_aggregation("own")(type("Own", (LearnedAggregation,), {"of_all": False}))
    both = "the aggregations 'own' and 'trusted' are both learned: keep one of them"
    refused(both, mad.MultiAdvisor, mad.make("two-lamps"), aggregation="left=own,trusted")
    task = mad.make("two-lamps")
    own = [dataclasses.replace(advisor, aggregation=name) for advisor, name in
           zip(task.advisors, ("sum", "trusted"), strict=True)]  # fmt: skip
    own_words = dataclasses.replace(task, advisors=tuple(own))
    refused("'trusted' is of all advisors: give it alone", mad.MultiAdvisor, own_words)


# ---- the command line ------------------------------------------------------------------------------------------------
def test_in_another_process_that_imports_the_file(tmp_path):
    run = tmp_path / "run"
    given = ["--import", FILE, "--json"]
    code, out, err = command("train", "two-lamps", *FLAGS, "--steps", 1000, "--out", run, *given, cwd=tmp_path)
    assert code == 0, err
    assert json.loads(out)["aggregation"] == "lamps=loudest:2"
    code, out, err = command("train", "two-lamps", *FLAGS, "--steps", 2000, "--out", run, "--resume", *given,
                             cwd=tmp_path)  # fmt: skip
    assert code == 0, err
    assert len(json.loads(out)["evaluations"]) == 4
    code, out, err = command("evaluate", run, "--episodes", 5, *given, cwd=tmp_path)
    assert code == 0, err
    assert json.loads(out)["terminated"] == 1.0
    code, out, err = command("explore", run, "--export", tmp_path / "episode.html", *given, cwd=tmp_path)
    assert code == 0, err
    assert "hopeful" in (tmp_path / "episode.html").read_text()
    assert command("weights", run, "--import", FILE, "--json", cwd=tmp_path)[:2] == (0, '{"left": 1.0, "right": 1.0}\n')
    assert command("weights", run, cwd=tmp_path)[2].startswith("multiadvisor: unknown command 'weights'")
    code, out, err = command("weights", "nothing", "--import", FILE, cwd=tmp_path)
    assert (code, out, err.count("\n"), err.startswith("multiadvisor weights: ")) == (2, "", 1, True)
    for words in (("evaluate", run), ("explain", run, "--step", 0), ("explore", run, "--export", tmp_path / "x.html")):
        code, out, err = command(*words, cwd=tmp_path)
        assert (code, out) == (2, "")
        assert (
            "was made with the planning 'hopeful', which is not registered here: import the file that registers " in err
        )
        assert err.count("\n") == 1


def test_a_learner_in_another_process_that_imports_the_file(tmp_path):
    how = ["--learner=monte-carlo", "--untried=0.5", "--epsilon=0.3", "--steps=500", "--eval-every=500"]
    code, out, err = command("train", "two-lamps", *how, "--out=run", "--import", FILE, "--json", cwd=tmp_path)
    assert code == 0, err
    assert json.loads(out)["learner"] == {"name": "monte-carlo", "untried": 0.5}
    code, out, err = command("evaluate", "run", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "was made with the learner 'monte-carlo', which is not registered here: import the file that " in err


def test_workers_of_a_sweep_import_it_too(tmp_path):
    (tmp_path / "grid.toml").write_text(
        'task = "two-lamps"\nseeds = 2\n[settings]\nplanning = ["hopeful", "empathic"]\naggregation = "loudest"\n'
        "[schedule]\nsteps = 500\neval_every = 500\neval_episodes = 5\n[gammas]\nleft = [0.5, 0.9]\n"
    )
    words = ("sweep", "grid.toml", "--out", "out", "--workers", 1, "--json")
    code, out, err = command(*words, "--import", FILE, cwd=tmp_path)
    assert code == 0, err
    assert json.loads(out)["done"] == 8
    assert {row["gamma of left"] for row in json.loads(out)["table"]} == {0.5, 0.9}
    code, out, err = command(*words, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    code, out, err = command(*words, "--engine", "ray", "--import", FILE, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "--import is for workers on this machine" in err


def test_the_experiment_makes_a_report(tmp_path):
    words = ("reproduce", "lamps", "--seeds", 2, "--epochs", 3, "--workers", 1, "--out", "report", "--json")
    code, out, err = command(*words, "--import", FILE, cwd=tmp_path)
    assert code == 0, err
    assert "lamps lit in 100% of the episodes" in (tmp_path / "report" / "report.html").read_text()
    code, out, err = command(*words, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "unknown study 'lamps'" in err


def test_what_cannot_be_imported(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_own.py").write_text("import multiadvisor\nraise RuntimeError('not today')\n")
    (tmp_path / "lacks_own.py").write_text("import no_such_module\n")
    (tmp_path / "json.py").write_text("")
    (tmp_path / "my-file.py").write_text("")
    lines = {
        "broken_own.py": "cannot import 'broken_own': RuntimeError: not today (broken_own.py:2)",
        "lacks_own.py": "ModuleNotFoundError: No module named 'no_such_module' (lacks_own.py:1)",
        "json.py": "another module is called 'json', give the file another name",
        "my-file.py": "a module's name has letters, digits and underscores only",
        "missing.py": "there is no such file",
        "no_such_module": "Python finds no such module; to name a file, write no_such_module.py",
        "../x y": "name a file, such as mine.py, or a module that Python finds",
        "": "--import names nothing: give a file, such as --import mine.py",
    }
    for name, line in lines.items():
        refused_command(capsys, line, "tasks", "--import", name)
    refused_command(capsys, "--import names nothing", "tasks", "--import")


def test_a_file_is_imported_once_and_a_checkpoint_never_names_one(mine, tmp_path, capsys):
    assert plugins.import_own(str(FILE)) is mine
    assert [str(FILE)] == plugins.IMPORTED
    agent = mad.MultiAdvisor(mad.make("two-lamps"), **HOW).learn(10)
    agent.save(tmp_path / "run")
    text = (tmp_path / "run" / "agent.json").read_text()
    assert "own_extension" not in text
    del TASKS["two-lamps"]
    task = "was made for task 'two-lamps', which is not registered here: import"
    refused_command(capsys, task, "evaluate", tmp_path / "run")
    del AGGREGATIONS["loudest"]
    aggregation = "was made with the aggregation 'loudest', which is not registered here"
    refused_command(capsys, aggregation, "evaluate", tmp_path / "run")
    refused(aggregation, mad.load, tmp_path / "run")


# ---- bad input -------------------------------------------------------------------------------------------------------
def shows_array(advice, weights, parameter):
    return (weights[..., None] * advice).sum(axis=-2)


def sums_all(advice, weights, parameter):
    return advice.sum(axis=-2)


def sums(table, rows, weights, m, parameter, preferences):
    for action in range(table.shape[1]):
        preferences[action] = 0.0
        for i in range(m):
            preferences[action] += weights[i] * table[rows[i], action]


def beyond(table, rows, weights, m, parameter, preferences):
    preferences[table.shape[1]] = 0.0


def makes_an_array(table, rows, weights, m, parameter, preferences):
    preferences[:] = (weights[:m].reshape(m, 1) * table[rows[:m]]).sum(axis=0)


def doubles(table, rows, weights, m, parameter, preferences):
    for action in range(table.shape[1]):
        preferences[action] = 0.0
        for i in range(m):
            preferences[action] += 2.0 * weights[i] * table[rows[i], action]


def leaves_it(table, rows, weights, m, parameter, preferences):
    for action in range(table.shape[1]):
        for i in range(m):
            before = 0.0 if i == 0 else preferences[action]
            preferences[action] = before + weights[i] * table[rows[i], action]


AGGREGATES = {
    "no twin": (shows_array, None, "aggregation 'bad' has no compiled twin, which the loop needs: give @register"),
    "another twin": (shows_array, doubles, "the compiled twin of aggregation 'bad' differs from its array form"),
    "beyond": (shows_array, beyond, "the compiled twin of aggregation 'bad' cannot be used, as it raises IndexError"),
    "arrays": (shows_array, makes_an_array, "of aggregation 'bad' cannot be compiled: write it with loops over single"),
    "nobody": (shows_array, leaves_it, "prefers something where there are no advisors: let all preferences be 0"),
    "hears": (sums_all, sums, "aggregation 'bad' listens to an advisor of weight 0: it must be ignored"),
    "shape": (lambda q, w, p: q, sums, "aggregation 'bad' gives the shape (3, 1) for advice (3, 1): give a preference"),
    "raises": (lambda q, w, p: q.nothing, sums, "aggregation 'bad' cannot be used, as it raises AttributeError"),
}


def best(q, ahead):
    value = q[0]
    for action in range(q.shape[0]):
        value = max(value, q[action])
    return value


def ego(advice, ahead):
    return one_hot(advice.argmax(axis=1), advice)


PLANS = {
    "no twin": (ego, None, "planning 'bad' has no compiled twin, which the loop needs"),
    "another twin": (lambda q, ahead: one_hot(q.argmin(axis=1), q), best, "twin of planning 'bad' differs from"),
    "arrays": (ego, lambda q, ahead: q.max(), "of planning 'bad' cannot be compiled"),
    "beyond": (ego, lambda q, ahead: q[q.shape[0]], "as it raises IndexError"),
    "shape": (lambda q, ahead: q.max(axis=1), best, "planning 'bad' gives the shape (4,) for advice (4, 1): give"),
    "raises": (lambda q, ahead: 1 / 0, best, "planning 'bad' cannot be used, as it raises ZeroDivisionError"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("register", "how", "case"),
    [*((register_aggregation, {"aggregation": "bad"}, case) for case in AGGREGATES.values()),
     *((register_planning, {"planning": "goal 1=bad,agnostic"}, case) for case in PLANS.values())],
    ids=[*(f"aggregation, {name}" for name in AGGREGATES), *(f"planning, {name}" for name in PLANS)],
)  # fmt: skip
def test_what_does_not_fit_is_refused(register, how, case):
    form, twin, message = case
    register("bad", compiled=twin)(form)
    refused(re.escape(message), mad.MultiAdvisor, mad.make("two-goal"), **how)


def test_names_that_are_taken_or_cannot_be_spelled():
    for register, kind in ((register_planning, "a planning"), (register_aggregation, "an aggregation")):
        refused(f"'Mine!' cannot name {kind}: use lower-case letters", register, "Mine!")
    refused("a planning called 'empathic' is registered already: choose another name", register_planning, "empathic")
    for build in (lambda size: None, lambda size=3: None, lambda size=(): None, lambda weights=1.0: None):
        refused(r"option '\w+' of task 'mine' ", mad.register_task("mine"), build)
    taken = study.Study("noise", "", 0, lambda plan: [], lambda evidence: [])
    refused("'noise' cannot name a study", study.register_study, taken)


def test_a_function_that_was_compiled_already_is_taken_as_it_is():
    register_aggregation("double_sum", compiled=mad.compiled(doubles))(lambda q, w, p: 2.0 * shows_array(q, w, p))
    agent = mad.MultiAdvisor(mad.make("two-goal"), aggregation="double_sum").learn(200)
    x = agent.task.initial_state()
    names, advice = agent.advice(x)
    assert agent.preferences(x) == pytest.approx(2.0 * advice.sum(axis=0))
    assert len(names) == 2
