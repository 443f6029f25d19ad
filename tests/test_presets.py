"""What is learned with where nobody chooses: one table of data, which whatever is given overrules."""

import dataclasses
import inspect

import gymnasium
import pytest

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.commands.parsing import ENVIRONMENT_FLAGS
from multiadvisor.envs.presets import GYMNASIUM, PRESETS
from multiadvisor.envs.registry import OPTIONS, TASKS, defaults_of
from multiadvisor.learners.kinds import LEARNERS, learner_settings
from multiadvisor.runs.training import RunConfig
from multiadvisor.settings import Schedule, Settings
from multiadvisor.task import BY_ADVISOR
from test_documents import ROOT, maker


@pytest.mark.parametrize("name", PRESETS)
def test_every_row_is_one_of_settings_that_there_are(name):
    parts = {}
    for field, value in {**GYMNASIUM, **PRESETS[name]}.items():
        if field in LEARNERS:
            learner_settings({"name": field, **value})
            continue
        kind = next(kind for kind in (Settings, Schedule) if field in kind.__dataclass_fields__)
        parts.setdefault(kind, {})[field] = value
    for kind, given in parts.items():
        kind(**given)


def test_the_worlds_of_the_paper_have_the_papers_defaults():
    assert {name for name in TASKS if defaults_of(name)} == {"ms-pacman"}
    assert defaults_of("multiadvisor/mo-PacBoy-v0") == {}
    assert mad.MultiAdvisor("pac-boy").settings == Settings(learner="tabular")
    assert mad.MultiAdvisor(gymnasium.make("multiadvisor/TwoGoal-v0")).settings.gamma == 0.9


@pytest.fixture
def hall():
    """Registered, and forgotten afterwards."""
    make = lambda: dataclasses.replace(mad.make("bridge"), defaults={"gamma": 0.7})  # noqa: E731
    mad.register_task("hall", defaults={"gamma": 0.8, "steps": 3})(make)
    yield "hall"
    del TASKS["hall"], PRESETS["hall"]
    for name in ("Hall", "mo-Hall"):
        del gymnasium.registry[f"multiadvisor/{name}-v0"]


def test_a_registered_task_has_the_defaults_of_its_registration(hall):
    assert mad.MultiAdvisor(hall).settings.gamma == 0.8
    run = RunConfig.parse({"task": hall})
    assert (run.settings.gamma, run.schedule.steps) == (0.8, 3)


def test_environments_have_those_of_their_kind_and_their_own():
    lake = mad.MultiAdvisor("FrozenLake-v1").settings
    assert (lake.gamma, lake.alpha, lake.epsilon) == (0.99, PRESETS["FrozenLake-v1"]["alpha"], 0.1)
    pole = mad.MultiAdvisor(gymnasium.make("CartPole-v1")).settings
    assert pole.learner == mad.DQN(**PRESETS["CartPole-v1"]["dqn"])
    assert mad.MultiAdvisor("Pendulum-v1").settings.learner == mad.SAC(**PRESETS["Pendulum-v1"]["sac"])
    assert mad.MultiAdvisor("Blackjack-v1").settings == Settings(gamma=0.99, learner="tabular")


def test_what_is_given_wins():
    assert mad.MultiAdvisor("CartPole-v1", gamma=0.5).settings.gamma == 0.5
    assert mad.MultiAdvisor("CartPole-v1", learner=mad.DQN()).settings.learner == mad.DQN()
    assert mad.MultiAdvisor("CartPole-v1", Settings(gamma=0.7)).settings.gamma == 0.7
    named = mad.MultiAdvisor("CartPole-v1", learner="dqn").settings.learner  # the same learner as without its name
    assert named == mad.DQN(**PRESETS["CartPole-v1"]["dqn"])
    bins = mad.make("CartPole-v1", bins="-2:2:3,-2:2:3,-1:1:3,-2:2:3")  # and so another learner
    assert mad.MultiAdvisor(bins).settings.learner == mad.Tabular()


def test_runs_as_data_and_the_command_have_the_same(tmp_path):
    run = RunConfig.parse({"task": "CartPole-v1", "settings": {"learner": "dqn", "seed": 3}})
    assert (run.settings.gamma, run.schedule.steps, run.schedule.eval_episodes) == (0.99, 50_000, 10)
    assert run.settings.learner == mad.DQN(**PRESETS["CartPole-v1"]["dqn"])
    flags = ["--steps", "200", "--eval-episodes", "1", "--epsilon", "0.2", "--out", str(tmp_path)]
    assert main(["train", "CliffWalking-v1", "--max-episode-steps", "50", *flags]) == 0
    settings = mad.load(tmp_path).settings
    assert (settings.gamma, settings.alpha, settings.epsilon) == (0.99, 0.5, 0.2)


def test_the_page_of_defaults_is_what_the_table_and_the_measurements_say():
    assert (ROOT / "docs" / "defaults.md").read_text("utf-8") == maker("from_presets").page()


# ---- keywords --------------------------------------------------------------------------------------------------------
def test_editors_complete_every_keyword():
    """What is taken is spelt out in the signature, with a type."""
    taken = {
        mad.make: {*OPTIONS, *ENVIRONMENT_FLAGS, *BY_ADVISOR},
        mad.Task.from_gymnasium: {*OPTIONS, *ENVIRONMENT_FLAGS} - {*BY_ADVISOR},
        mad.MultiAdvisor: {field.name for field in dataclasses.fields(Settings)},
        mad.Advisor: {field.name for field in dataclasses.fields(mad.Advisor)},
    }
    for function, names in taken.items():
        parameters = inspect.signature(function).parameters
        assert names <= {*parameters}
        assert all(parameter.annotation is not parameter.empty for parameter in parameters.values())
