"""Every feature on every learner: one table, with a learner of a user's own file in it, which no code here names."""

import dataclasses
import inspect
import json
from dataclasses import dataclass, replace

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

import multiadvisor as mad
from agents import same
from guide import own_file
from multiadvisor.analysis.episode_report import report
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.moments import moments
from multiadvisor.analysis.stuck import find_stuck
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.cli import main
from multiadvisor.core import plugins
from multiadvisor.core.aggregations import AGGREGATIONS
from multiadvisor.core.plannings import PLANNINGS
from multiadvisor.envs.registry import TASKS
from multiadvisor.explorer.bundle import episode_pack, run_pack
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.onefile import html
from multiadvisor.learners.gvf.gvf_spec import Aims, Goals
from multiadvisor.learners.kinds import LEARNERS, register_learner
from multiadvisor.learners.protocol import Decider, Learner
from multiadvisor.runs.jobs import perform
from multiadvisor.runs.sweep_grid import parse_grid
from multiadvisor.runs.trace import explain_step, replay
from multiadvisor.studies.study import OWN as OWN_STUDIES

STEPS, MORE = 96, 48
SMALL = {"hidden": (4,), "buffer_size": 64, "batch_size": 4, "learning_starts": 16, "updates_at_once": 1}
OFFERED = {
    name: part for name, part in {**vars(Decider), **vars(Learner)}.items() if part.__doc__ and not name.startswith("_")
}


# ---- tasks -----------------------------------------------------------------------------------------------------------
class Still(gymnasium.Wrapper):
    """Whatever is done, nothing happens."""

    def reset(self, **how):
        seen, info = super().reset(**how)
        self.seen = seen * 0
        return self.seen, info

    def step(self, action):
        return self.seen, 0.0, False, False, {}


def limited(env, still):
    return gymnasium.wrappers.TimeLimit(Still(env) if still else env, 20)


def ice(still: bool = False) -> mad.Task:
    """The frozen lake, and its time."""
    advisors = [mad.Advisor("goal"), mad.Advisor("time", reward=lambda t: -1.0, weight=0.01)]
    return mad.Task.from_gymnasium(limited(FrozenLakeEnv(is_slippery=False), still), advisors)


def aims(x, look):
    return Aims(np.array([1, 15]), np.ones(2))


def lake(still: bool = False) -> mad.Task:
    """The frozen lake with a general value function for each of its cells, and two advisors that point at cells."""
    goals = Goals(16, np.arange(16), int, aims, lambda x, y, r: np.array([r, 0.0]))
    return replace(ice(still), goals=goals)


def swing(still: bool = False) -> mad.Task:
    """A pendulum."""
    advisors = [
        mad.Advisor("upright", reward=lambda t: float(t.next_observation[0])),
        mad.Advisor("slow", reward=lambda t: -abs(float(t.next_observation[2])), weight=0.1),
    ]
    return mad.Task.from_gymnasium(limited(PendulumEnv(), still), advisors)


MADE = {"ice": ice, "lake": lake, "swing": swing}


# ---- learners --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """A task that a learner learns, its small settings, and what it refuses."""

    task: str
    settings: dict = dataclasses.field(default_factory=dict)
    planning: str = "empathic"
    observes: str = ""
    """Why it does not learn from what others play."""
    reweights: str = ""
    """Why it does not go on with other weights."""


LOOP = "is a compiled world, which pays and ends its advisors inside"
WHOLE, DEPEND = "learns from whole episodes", "empathic values depend on the weights"
CASES = {
    "tabular": Case("ice", planning="egocentric"),
    "tabular in a world": Case("three-fruits", planning="egocentric", observes=LOOP),
    "linear": Case("three-fruits", observes=LOOP, reweights="weights are in the values it learned"),
    "dqn": Case("ice", SMALL, reweights=DEPEND),
    "sac": Case("swing", SMALL),
    "gvf": Case("lake", planning="egocentric"),
    "monte-carlo": Case("ice", {"untried": 0.5}, observes=WHOLE, reweights=DEPEND),
    "monte-carlo in a world": Case("three-fruits", observes=WHOLE, reweights=DEPEND),
}


@pytest.fixture(scope="module", autouse=True)
def registered():
    """The user's learner, and the tasks; all of them are gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "IMPORTED", [])
        kept = [(registry, dict(registry)) for registry in (TASKS, LEARNERS, PLANNINGS, AGGREGATIONS, OWN_STUDIES)]
        module = plugins.import_own(str(own_file()))
        register_learner(module.MONTE_CARLO)
        for name, build in MADE.items():
            mad.register_task(name)(build)
        yield
        for registry, before in kept:
            registry.clear()
            registry.update(before)


def kind(name):
    """The learner of a case."""
    return LEARNERS[name.split()[0]]


def new(name, **options):
    case = CASES[name]
    own, task = kind(name).settings(**case.settings), mad.make(case.task, **options)
    return mad.MultiAdvisor(task, learner=own, planning=case.planning, gamma=0.9, epsilon=0.3, seed=3)


@pytest.fixture(scope="module")
def trained(registered):
    """Each learner after some steps; nobody changes these."""
    made = {}

    def find(name):
        if name not in made:
            made[name] = new(name).learn(STEPS, progress=False)
        return made[name]

    return find


def first_state(agent):
    if agent.task.world is not None:
        return agent.task.initial_state()
    return agent.task.adapter.env.reset(seed=1)[0]


def fits(agent, action):
    env = agent.task.adapter and agent.task.adapter.env
    return env.action_space.contains(action) if env else action in range(len(agent.task.actions))


def said(call):
    """The sentence with which a call is refused; empty where it is not."""
    try:
        call()
    except mad.BadInput as error:
        return str(error)
    return ""


# ---- features --------------------------------------------------------------------------------------------------------
def learns(agent, name, folder):
    own = agent.settings.learner_settings
    assert own.name == kind(name).name
    assert STEPS <= agent.steps <= STEPS + own.ahead
    assert agent.episodes > 0
    assert not same(agent, new(name))
    assert (agent.losses is None) != own.network


def learns_the_same_from_the_same_seed(agent, name, folder):
    assert same(agent, new(name).learn(STEPS, progress=False))


def acts(agent, name, folder):
    state = first_state(agent)
    assert fits(agent, agent.act(state))
    assert np.array_equal(agent.act(state), agent.act(state))
    assert 0 <= agent.exploring <= 1


def explores(agent, name, folder):
    agent = new(name).learn(STEPS, progress=False)
    assert all(fits(agent, agent.act(first_state(agent), explore=True)) for _ in range(5))


def observes(agent, name, folder):
    case, agent, before = CASES[name], new(name), 0
    state = first_state(agent)
    action = agent.act(state)
    why = said(lambda: agent.observe(state, action, 0.0, state, terminated=False))
    assert case.observes in why
    assert agent.steps == before + (not case.observes)
    assert bool(why) == bool(case.observes)


def evaluates(agent, name, folder):
    before, seen = {key: array.copy() for key, array in agent.tensors().items()}, agent.evaluate(2)
    assert seen.score == agent.evaluate(2).score
    assert {*seen.advisors} == {*agent.task.names}
    assert all(np.array_equal(before[key], array) for key, array in agent.tensors().items())


def goes_on_after_an_evaluation(agent, name, folder):
    one, other = new(name).learn(STEPS, progress=False), new(name).learn(STEPS, progress=False)
    one.evaluate(1)
    assert same(one.learn(MORE, progress=False), other.learn(MORE, progress=False))


def advises(agent, name, folder):
    names, advice = agent.advice(first_state(agent))
    assert names
    assert {*names} <= {advisor.name for advisor in agent.advisors}
    assert len(advice) == len(names)
    assert np.isfinite(advice).all()


def decides(agent, name, folder):
    decider, state = agent.decider, first_state(agent)
    told = decider.decide(state)
    assert told.values.shape == (len(told.advisors), len(decider.choices))
    assert len(told.weights) == len(told.advisors) <= len(decider.asked)
    assert len(decider.decide(state, values=False).advisors) == 0
    assert not told.explored


def is_explained(agent, name, folder):
    told = agent.explain(first_state(agent))
    assert told.sentence
    assert "  " not in told.sentence, "somebody has no name"
    assert json.dumps(told.as_dict())
    assert told.sentence in str(told)


def is_recorded(agent, name, folder):
    trace, seen = record(agent, 2, seed=1), agent.evaluate(2, seeds=(1,)).played
    assert trace.length.tolist() == seen.length.tolist()
    assert trace.score == pytest.approx(seen.score, rel=1e-5)
    trace.save(folder / "episodes.trace")
    read = read_trace(folder / "episodes.trace")
    assert np.array_equal(read.action, trace.action)
    replay(read, agent.task)
    assert explain_step(agent, read, 0, 0).sentence


def is_reported(agent, name, folder):
    told = report(agent, 2)
    assert json.dumps(told.as_dict())
    assert all(advisor in str(told) for advisor in agent.task.names if agent.settings.learner_settings.per_advisor)


def has_moments(agent, name, folder):
    found = moments(play(agent, 2), 2)
    assert found
    assert all(str(moment) and json.dumps(moment.as_dict()) for moment in found)


def is_found_stuck(agent, name, folder):
    still = CASES[name].task in MADE
    found = find_stuck(play(new(name, still=True).learn(STEPS, progress=False) if still else agent, 2))
    assert not still or [one.episode for one in found] == [0, 1]
    explores = agent.settings.learner_settings.explores
    assert all("explore" not in one.advice or explores in one.advice for one in found)
    assert all("gamma for entropy" not in one.advice for one in found)
    assert all(str(one) and json.dumps(one.as_dict()) for one in found)


def is_on_the_page(agent, name, folder):
    assert f'"{kind(name).name}"'.encode() in run_pack(agent, "mine")
    assert len(episode_pack(record(agent, 1, advice=True), 0, agent)) > 100
    library = Library(episodes=1)
    assert kind(name).name in html(library, [library.add_agent(agent, "mine").id], 0)


def is_saved_and_loaded(agent, name, folder):
    agent.save(folder / "run", {"note": 1})
    again = mad.load(folder / "run")
    assert again.settings == agent.settings
    assert same(again, agent)
    state = first_state(agent)
    assert np.array_equal(again.act(state), agent.act(state))


def is_resumed(agent, name, folder):
    agent.save(folder / "run")
    again = mad.load(folder / "run")
    again.learn(STEPS + MORE - agent.steps, progress=False)
    whole = new(name)
    assert same(again, whole.learn(STEPS + MORE, progress=False))


def is_swept(agent, name, folder):
    case = CASES[name]
    own = {"name": kind(name).name, **{key: list(v) if isinstance(v, tuple) else v for key, v in case.settings.items()}}
    lines = [f"{key} = {json.dumps(value)}" for key, value in own.items()]
    grid = parse_grid(
        f'task = "{case.task}"\nseeds = 2\n[settings]\nplanning = "{case.planning}"\nepsilon = 0.3\n'
        f"[schedule]\nsteps = {STEPS}\neval_every = {STEPS}\neval_episodes = 1\n[learner]\n" + "\n".join(lines)
    )
    grid.check_tasks()
    results = [perform(run.job.kind, run.job.config, folder / run.job.id, lambda share: None) for run in grid.runs()]
    assert [result["steps"] >= STEPS for result in results] == [True, True]
    assert results[0]["sha256"] != results[1]["sha256"]
    assert results[0]["settings"]["learner"]["name"] == own["name"]


def is_reweighted(agent, name, folder):
    case, agent = CASES[name], new(name).learn(STEPS, progress=False)
    advisor = agent.task.names[-1]
    why = said(lambda: agent.reweight(**{advisor: 0.5}))
    assert case.reweights in why
    assert bool(why) == bool(case.reweights)
    assert (agent.task.weights[-1] == 0.5) != bool(why)
    agent.learn(MORE, progress=False).evaluate(1)


def is_trained_by_the_command(agent, name, folder, capsys):
    case = CASES[name]
    own = {key: ",".join(map(str, v)) if isinstance(v, tuple) else v for key, v in case.settings.items()}
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in own.items()]
    how = [f"--planning={case.planning}", f"--steps={STEPS}", f"--eval-every={STEPS}", "--eval-episodes=1"]
    line = ["train", case.task, f"--learner={kind(name).name}", *flags, *how, f"--out={folder / 'run'}", "--json"]
    assert main(line) == 0
    assert json.loads(capsys.readouterr().out)["steps"] >= STEPS
    assert mad.load(folder / "run").settings.learner == kind(name).settings(**case.settings)
    assert main(["evaluate", str(folder / "run"), "--episodes=1", "--json"]) == 0


def keeps_the_protocol(agent, name, folder):
    assert {*OFFERED} > {"steps", "consult", "decide", "run", "evaluate", "explore", "observe", "tensors", "restore"}
    for part, promised in OFFERED.items():
        own = getattr(agent._learner, part)
        assert callable(own) != isinstance(promised, property), part
        if callable(own):
            assert ["self", *inspect.signature(own).parameters] == [*inspect.signature(promised).parameters], part


def is_asked_for_nothing_else(agent, name, folder):
    """A learner behind a fence that lets only the protocol through is as good as the learner itself."""

    class Fence:
        def __init__(self, learner):
            self._behind = learner

        def __getattr__(self, part):
            assert part in OFFERED or part in Learner.__annotations__, f"the learner is asked for {part!r}"
            return getattr(self._behind, part)

    agent = new(name)
    agent._learner = Fence(agent._learner)
    agent.learn(STEPS, progress=False)
    for feature in (acts, evaluates, advises, decides, is_explained, is_recorded, is_reported, has_moments):
        feature(agent, name, folder)


FEATURES = [
    learns, learns_the_same_from_the_same_seed, acts, explores, observes, evaluates, goes_on_after_an_evaluation,
    advises, decides, is_explained, is_recorded, is_reported, has_moments, is_found_stuck, is_on_the_page,
    is_saved_and_loaded, is_resumed, is_swept, is_reweighted, is_trained_by_the_command, keeps_the_protocol,
    is_asked_for_nothing_else,
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.__name__)
def test_every_feature_on_every_learner(feature, name, trained, tmp_path, capsys):
    told = {"capsys": capsys} if "capsys" in inspect.signature(feature).parameters else {}
    feature(trained(name), name, tmp_path, **told)


def test_the_table_has_every_learner(registered):
    assert {kind(name).name for name in CASES} == {*LEARNERS}


def test_a_name_is_taken_once_and_is_the_same_in_the_settings(registered):
    for name, text in (("dqn", "called 'dqn' is registered already"), ("other", "call themselves 'monte-carlo'")):
        assert text in said(lambda name=name: register_learner(replace(LEARNERS["monte-carlo"], name=name)))


def test_what_a_learner_cannot_do_of_the_common_settings_is_refused(registered):
    for name, value in (("planning", "agnostic"), ("noise", 1.0)):
        assert f"knows no {name} but" in said(lambda: mad.Settings(learner="monte-carlo", **{name: value}))  # noqa: B023


def test_the_keywords_of_an_agent_are_the_settings():
    """None stands for what `Settings` says; what no learner and no agent knows is refused by its name."""
    given = [one for one in inspect.signature(mad.MultiAdvisor).parameters.values() if one.kind is one.KEYWORD_ONLY]
    public = {one.name: one.default for one in given if not one.name.startswith("_")}
    assert public == {"advisors": None, **{field.name: None for field in dataclasses.fields(mad.Settings)}}
    assert mad.MultiAdvisor("two-goal", learner="tabular").settings == mad.Settings(learner="tabular")
    for field in dataclasses.fields(mad.Settings):
        other = {"planning": "agnostic", "aggregation": "max", "learner": "tabular"}.get(field.name, 1)
        changed = dataclasses.asdict(mad.MultiAdvisor("two-goal", **{field.name: other}).settings)
        assert changed == dataclasses.asdict(mad.Settings(**{"learner": "tabular", field.name: other}))
