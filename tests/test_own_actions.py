"""Actions are the environment's own, wherever its action space begins: act, explain, traces, tables and networks."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.errors import BadInput
from multiadvisor.explorer.bundle import episode_pack
from multiadvisor.runs.trace import explain_step, replay
from refusal import refused

STARTS = [-7, -1, 0, 5]
NETWORK = mad.DQN(hidden=(8,), learning_starts=32, batch_size=16, updates_at_once=1, epsilon_steps=100)


class Corridor(gymnasium.Env):
    """Four places in a row; the action above the first one leads on, every other number is refused."""

    action_space: spaces.Discrete

    def __init__(self, start=0):
        self.action_space = spaces.Discrete(2, start=start)
        self.observation_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.at, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.steps += 1
        self.at = self.at + 1 if action == self.action_space.start + 1 else 0
        return self.at, float(self.at == 3), self.at == 3, self.steps == 20, {}


def trained(start, learner=None, steps=600):
    task = mad.Task.from_gymnasium(Corridor(start), [mad.Advisor("end")], name="corridor")
    alpha = 0.5 if learner is None else None
    return mad.MultiAdvisor(task, gamma=0.8, alpha=alpha, epsilon=0.3, learner=learner).learn(steps)


def own_loop(agent, env):
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
        if terminated or truncated:
            return reward
    raise AssertionError("no end")


@pytest.mark.parametrize("start", STARTS)
def test_a_loop_of_ones_own_plays_what_evaluate_plays(start):
    agent = trained(start)
    assert agent.evaluate(episodes=1).score == 1.0
    assert own_loop(agent, Corridor(start)) == 1.0
    assert agent.act(0) == start + 1
    assert isinstance(agent.act(0), int)


@pytest.mark.parametrize("start", STARTS)
def test_an_explanation_takes_the_environments_numbers(start):
    agent = trained(start)
    names = agent.task.actions
    assert names == (f"action {start}", f"action {start + 1}")
    assert (agent.explain(0).action, agent.explain(0).against) == (names[1], names[0])
    asked = agent.explain(0, action=start, against=start + 1)
    assert (asked.action, asked.against) == names
    assert asked.table(start + 1, start) == asked.table(names[1], names[0])
    for outside in (start - 1, start + 2):
        refused("unknown action", agent.explain, 0, action=outside)


@pytest.mark.parametrize("start", STARTS)
def test_a_trace_keeps_the_environments_numbers(start, tmp_path):
    agent = trained(start)
    record(agent, episodes=2, seed=1, epsilon=0.5).save(tmp_path / "episodes.trace")
    trace = read_trace(tmp_path / "episodes.trace")
    replay(trace, agent.task)
    assert set(trace.action) == {start, start + 1}
    assert set(trace.choice) == {0, 1}
    seen = trace.step(0, 0)
    assert seen.action == trace.action[0]
    assert explain_step(agent, trace, 0, 0).action == f"action {seen.action}"
    assert explain_step(agent, trace, 0, 0, against=2 * start + 1 - seen.action).action == f"action {seen.action}"
    sent = trace.choice[trace.span(0)].astype("<i4").tobytes()  # the page looks them up in the list of names
    assert sent in episode_pack(trace, 0, agent)


@pytest.mark.slow
def test_a_network_uses_the_environments_numbers_too():
    agent = trained(5, NETWORK)
    assert agent.act(0) in (5, 6)
    assert agent.act(0) == 5 + int(np.argmax(agent.preferences(0)))
    assert agent.explain(0).action == f"action {agent.act(0)}"
    trace = record(agent, episodes=1)
    assert set(trace.action) <= {5, 6}
    replay(trace, agent.task)


@pytest.mark.slow
def test_a_vector_environment_gets_its_own_actions_and_so_does_the_caller():
    env = SyncVectorEnv([lambda: Corridor(-7)] * 3)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, [mad.Advisor("end")]), learner=NETWORK)
    agent.learn(200).evaluate(episodes=3)
    assert agent.act(0) == -7 + int(np.argmax(agent.preferences(0)))
    assert agent.explain(0, action=-7, against=-6).action == "action -7"


# ---- several choices at once -----------------------------------------------------------------------------------------
class Panel(gymnasium.Env):
    """Two switches, of which one combination pays; what is seen is a dictionary, or a number."""

    def __init__(self, space=None, wanted=(1, 4), plain=True):
        self.action_space = space or spaces.MultiDiscrete([2, 3], start=[0, 2])
        self.wanted, self.plain, self.steps = np.array(wanted), plain, 0
        light = spaces.Box(0, 1, (2,), np.float32)
        self.observation_space = spaces.Discrete(1) if plain else spaces.Dict(light=light, places=spaces.Discrete(3))

    def see(self):
        return 0 if self.plain else {"light": np.ones(2, np.float32), "places": self.steps % 3}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.steps += 1
        hits = (np.asarray(action) == self.wanted).astype(float)
        info = {"reward_first": hits[0], "reward_second": hits[1]}
        return self.see(), float(hits.sum()), False, self.steps == 5, info


def panel(steps=400, learner=None, **how):
    task = mad.Task.from_gymnasium(Panel(**how), "info:reward_*", name="panel")
    alpha = 0.5 if learner is None else None
    return mad.MultiAdvisor(task, gamma=0.0, alpha=alpha, epsilon=0.5, learner=learner).learn(steps)


def test_several_choices_are_one_list_and_come_back_as_they_are(tmp_path):
    agent, env = panel(), Panel()
    assert agent.task.actions == ("0/2", "0/3", "0/4", "1/2", "1/3", "1/4")
    chosen = agent.act(0)
    assert chosen.tolist() == [1, 4]
    assert env.action_space.contains(chosen)
    assert agent.evaluate(episodes=2).score == 10.0
    told = agent.explain(0, against=np.array([0, 4]))
    assert (told.action, told.against) == ("1/4", "0/4")
    record(agent, episodes=1, epsilon=0.5).save(tmp_path / "panel.trace")
    replay(read_trace(tmp_path / "panel.trace"), agent.task)
    before = agent.advice(0)[1][0, 1]
    for _ in range(20):
        agent.observe(0, np.array([0, 3]), 0.0, 0, False, info={"reward_first": 5.0, "reward_second": 0.0})
    assert before < 1 < agent.advice(0)[1][0, 1]
    with pytest.raises(BadInput, match=r"action is array\(\[0, 5\]\): give one of the environment's, Multi"):
        agent.observe(0, np.array([0, 5]), 0.0, 0, False)


@pytest.mark.slow
@pytest.mark.parametrize("vector", [False, True])
def test_a_network_chooses_several_things_at_once(vector):
    """And sees a dictionary; in a vector environment as well."""
    space, deep = spaces.MultiBinary(2), dataclasses.replace(NETWORK, learning_rate=0.02)
    if not vector:
        agent = panel(300, deep, space=space, wanted=(1, 0), plain=False)
    else:
        envs = SyncVectorEnv([lambda: Panel(space, (1, 0), False) for _ in range(3)])
        task = mad.Task.from_gymnasium(envs, "info:reward_*", name="panels")
        agent = mad.MultiAdvisor(task, gamma=0.0, epsilon=0.5, learner=deep).learn(300)
    chosen = agent.act({"light": np.ones(2, np.float32), "places": 1})
    assert (chosen.tolist(), chosen.dtype) == ([1, 0], np.int8)
    assert agent.evaluate(episodes=2).score == 10.0


def test_too_many_combinations_are_one_line():
    with pytest.raises(BadInput, match="100000 combinations, and at most 1000 are learned") as error:
        mad.Task.from_gymnasium(Panel(spaces.MultiDiscrete([10] * 5)))
    assert len(str(error.value).splitlines()) == 1
