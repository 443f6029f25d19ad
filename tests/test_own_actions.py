"""Actions are the environment's own, wherever its action space begins: act, explain, traces, tables and networks."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

import multiadvisor as mad
from multiadvisor.explorer.bundle import game_pack
from multiadvisor.runs.trace import explain_turn, read_trace, record, replay

STARTS = [-7, -1, 0, 5]
NETWORK = mad.DeepSettings(hidden=(8,), starts=32, batch=16, updates_at_once=1, epsilon_turns=100)


class Corridor(gymnasium.Env):
    """Four places in a row; the action above the first one leads on, every other number is refused."""

    action_space: spaces.Discrete

    def __init__(self, start=0):
        self.action_space = spaces.Discrete(2, start=start)
        self.observation_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.turns = 0, 0
        return self.at, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.turns += 1
        self.at = self.at + 1 if action == self.action_space.start + 1 else 0
        return self.at, float(self.at == 3), self.at == 3, self.turns == 20, {}


def trained(start, deep=None, turns=600):
    task = mad.Task.from_gymnasium(Corridor(start), [mad.Focus("end")], name="corridor")
    return mad.MultiAdvisor(task, gamma=0.8, alpha=0.5, epsilon=0.3, deep=deep).learn(turns, progress=False)


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
    assert agent.evaluate(games=1).score == 1.0
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
        with pytest.raises(mad.BadInput, match="unknown action"):
            agent.explain(0, action=outside)


@pytest.mark.parametrize("start", STARTS)
def test_a_trace_keeps_the_environments_numbers(start, tmp_path):
    agent = trained(start)
    record(agent, games=2, seed=1, epsilon=0.5).save(tmp_path / "games.trace")
    trace = read_trace(tmp_path / "games.trace")
    replay(trace, agent.task)
    assert set(trace.action) == {start, start + 1}
    assert set(trace.choice) == {0, 1}
    seen = trace.turn(0, 0)
    assert seen.action == trace.action[0]
    assert explain_turn(agent, trace, 0, 0).action == f"action {seen.action}"
    assert explain_turn(agent, trace, 0, 0, against=2 * start + 1 - seen.action).action == f"action {seen.action}"
    sent = trace.choice[trace.span(0)].astype("<i4").tobytes()  # the page looks them up in the list of names
    assert sent in game_pack(trace, 0, agent)


def test_a_network_speaks_the_environments_numbers_too():
    agent = trained(5, NETWORK)
    assert agent.act(0) in (5, 6)
    assert agent.act(0) == 5 + int(np.argmax(agent.preferences(0)))
    assert agent.explain(0).action == f"action {agent.act(0)}"
    trace = record(agent, games=1)
    assert set(trace.action) <= {5, 6}
    replay(trace, agent.task)


def test_a_vector_environment_gets_its_own_actions_and_so_does_the_caller():
    env = SyncVectorEnv([lambda: Corridor(-7)] * 3)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env, [mad.Focus("end")]), deep=NETWORK)
    agent.learn(200, progress=False).evaluate(games=3)
    assert agent.act(0) == -7 + int(np.argmax(agent.preferences(0)))
    assert agent.explain(0, action=-7, against=-6).action == "action -7"
