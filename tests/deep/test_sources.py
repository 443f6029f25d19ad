"""What the network sees, and that every transition in memory is one that happened."""

import dataclasses
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import Counter

import multiadvisor as mad
from agents import remembered
from multiadvisor.analysis.episodes import record
from multiadvisor.envs.observation_encoder import encoder_of_space
from multiadvisor.runs.trace import replay
from refusal import refused


def advisors(*states):
    return [mad.Advisor(f"advisor {k}", state=state) for k, state in enumerate(states)]


# ---- what is seen ----------------------------------------------------------------------------------------------------
def test_numbers_are_shown_as_they_are():
    encoder = encoder_of_space(spaces.Box(-1, 1, (3,), np.float64), advisors(None, 2, [0, -1]), image=False)
    assert (encoder.shape, encoder.scale, encoder.dtype) == ((3,), 1.0, np.float32)
    assert encoder.masks == ((1, 1, 1), (0, 0, 1), (1, 0, 1))
    assert encoder.convert([0.5, -1, 7]).tolist() == [0.5, -1.0, 7.0]
    refused(r"the shape \(2,\) was given where \(3,\) is expected", encoder.convert, np.zeros(2))
    for space in (spaces.Box(-1, 1, (3,)), spaces.MultiDiscrete([2, 3, 2])):
        refused("picks components 3 of an observation of 3", encoder_of_space, space, advisors(3), image=False)


def test_choices_are_one_hot_and_an_advisor_picks_whole_numbers_of_them():
    encoder = encoder_of_space(spaces.Discrete(3, start=5), advisors(None), image=False)
    assert [encoder.convert(np.int64(k)).tolist() for k in (5, 7)] == [[1, 0, 0], [0, 0, 1]]
    for wrong in (4, 8, 5.0, [5, 6]):
        refused("observation", encoder.convert, wrong)
    encoder = encoder_of_space(spaces.MultiDiscrete([2, 3, 2]), advisors(None, 1, [0, 2], -1), image=False)
    assert encoder.convert(np.array([1, 2, 0])).tolist() == [0, 1, 0, 0, 1, 1, 0]
    assert encoder.masks[1:] == ((0, 0, 1, 1, 1, 0, 0), (1, 1, 0, 0, 0, 1, 1), (0, 0, 0, 0, 0, 1, 1))


def test_images_have_their_channels_first_and_bytes_are_scaled():
    space = spaces.Box(0, 255, (6, 5, 3), np.uint8)
    picture = np.arange(90, dtype=np.uint8).reshape(6, 5, 3)
    for image in (True, False):
        encoder = encoder_of_space(space, advisors(None, 1), image=image)
        assert encoder.scale == 1 / 255
        assert encoder.convert(picture).reshape(3, 6, 5).tolist() == picture.transpose(2, 0, 1).tolist()
        channel = np.array(encoder.masks[1]).reshape(3, -1)
        assert channel.all(axis=1).tolist() == [False, True, False]
        assert not channel[[0, 2]].any()
    assert encoder.shape == (90,)
    assert encoder_of_space(space, advisors(None), image=True).shape == (3, 6, 5)
    assert encoder_of_space(spaces.Box(0, 1, (4, 6, 5), np.uint8), advisors(None), image=True)[:3] == (
        (4, 6, 5),
        np.uint8,
        1.0,
    )
    refused("convolutions need images", encoder_of_space, spaces.Box(0, 1, (4,)), advisors(None), image=True)


def test_dictionaries_are_laid_flat():
    space = spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3)})
    encoder = encoder_of_space(space, advisors(None), image=False)
    assert encoder.convert({"a": np.array([0.5, 1.0], np.float32), "b": 2}).tolist() == [0.5, 1.0, 0, 0, 1]
    refused("does not fit its space", encoder.convert, {"a": np.zeros(2, np.float32)})
    refused("have no fixed length", encoder_of_space, spaces.Sequence(spaces.Discrete(2)), advisors(None), image=False)


def test_state_functions_add_their_numbers():
    def both(observation):
        return int(observation[0]) + int(observation[1]), observation[0]

    def one(observation):
        return observation[1]

    encoder = encoder_of_space(spaces.Box(0, 255, (2,), np.uint8), advisors(None, both, one, both), image=False)
    assert encoder.masks == ((1, 1, 0, 0, 0), (0, 0, 1, 1, 0), (0, 0, 0, 0, 1), (0, 0, 1, 1, 0))
    np.testing.assert_allclose(encoder.convert(np.array([51, 102], np.uint8)), [0.2, 0.4, 153, 51, 102], rtol=1e-6)
    word = advisors(lambda observation: "left")
    refused("a network cannot see: return a number", encoder_of_space, spaces.Discrete(2), word, image=False)
    wild = encoder_of_space(spaces.Box(0, 1, (2,)), advisors(lambda observation: [0] * len(observation)), image=False)
    refused("shape|gave 3 numbers where it gave 2 before", wild.convert, np.zeros(3))


# ---- the memory of a run ---------------------------------------------------------------------------------------------
def transitions(agent):
    """(before, action, reward, after, ended, over) of every step in memory, by episode."""
    seen = remembered(agent)
    parts = (seen.observation, seen.action, seen.reward, seen.next_observation, seen.ended, seen.over)
    return list(zip(*(part.tolist() for part in parts), strict=True))


def check_counter(agent, steps, vector, first=0):
    """Every transition of Counter: the step after, in the same episode, by that action, with that reward and end."""
    found = transitions(agent)
    assert len(found) == steps
    for (step, episode, _), action, reward, (then, same, last), ended, over in found:
        assert (then, same, last) == (step + 1, episode, action + first)
        assert reward == ([then, -(action + first)] if vector else [then])
        terminated = over and then == 3
        assert ended == [int(terminated)] * len(reward)
        assert not over or then in (3, 5)
    assert {over for *_, over in found} == {False, True}
    assert {bool(ended[0]) for *_, ended, over in found if over} == {False, True}


SMALL = mad.DQN(hidden=(4,), learning_starts=16, batch_size=8, buffer_size=400, train_freq=4, updates_at_once=2)
SEVERAL = dataclasses.replace(SMALL, n_envs=3)


@pytest.mark.slow
@pytest.mark.parametrize("vector", [False, True])
def test_single_episodes_side_by_side(vector):
    env = gymnasium.make("tests/Counter-v0", vector=vector, start=1)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env), learner=SEVERAL).learn(150)
    check_counter(agent, 150, vector, first=1)
    agent.evaluate(3)
    check_counter(agent.learn(30), 180, vector, first=1)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_vector_environment_also_after_evaluations_and_when_taken_up_again(mode, tmp_path):
    def task():
        env = SyncVectorEnv([lambda: Counter(start=1)] * 3, autoreset_mode=mode)
        return mad.Task.from_gymnasium(env, name="counter")

    agent = mad.MultiAdvisor(task(), learner=SMALL).learn(60)
    assert agent.steps >= 60
    check_counter(agent, agent.steps, False, first=1)
    seen = agent.evaluate(7)
    lengths = seen.played.length.tolist()
    assert len(lengths) == 7
    assert set(lengths) == {3, 5}
    assert seen.played.score.tolist() == [sum(range(1, length + 1)) for length in lengths]
    assert seen.played.terminated.tolist() == [int(length == 3) for length in lengths]
    agent.learn(31)
    agent.evaluate(2)
    agent.evaluate(2)
    agent.learn(10)
    agent.save(tmp_path / "a")
    loaded = mad.load(tmp_path / "a", task())
    assert loaded.steps == agent.steps
    for one in (agent, loaded):
        one.learn(40)
        steps = [(step[0], step[3]) for step in transitions(one)]
        assert len(steps) == one.steps
        for (step, episode, _), (then, same, _) in steps:
            assert (then, same) == (step + 1, episode)


@pytest.mark.slow
def test_vector_rewards_of_a_vector_environment_by_component():
    from mo_gymnasium.wrappers.vector import MOSyncVectorEnv

    env = MOSyncVectorEnv([lambda: Counter(vector=True)] * 2)
    task = mad.Task.from_gymnasium(env, [mad.Advisor("step", reward=0), mad.Advisor("cost", reward=1, weight=0.5)])
    agent = mad.MultiAdvisor(task, learner=SMALL).learn(90)
    check_counter(agent, agent.steps, True)
    found = agent.evaluate(4)
    assert list(found.advisors) == ["step", "cost"]
    assert set(found.played.returns[:, 0]) <= {6.0, 15.0}


def test_a_vector_environment_knows_the_names_of_its_episodes():
    import mo_gymnasium
    from mo_gymnasium.wrappers.vector import MOSyncVectorEnv

    treasure = [lambda: mo_gymnasium.make("deep-sea-treasure-v0")] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert mad.Task.from_gymnasium(MOSyncVectorEnv(treasure)).names == ("treasure", "time")
        refused("MOSyncVectorEnv", mad.Task.from_gymnasium, SyncVectorEnv(treasure))


@pytest.mark.slow
def test_vector_environments_of_gymnasium_itself():
    env = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env), learner=SMALL).learn(200)
    for before, _, _, after, _, _ in transitions(agent):
        # x' = x + 0.02 v, and so for the angle: true of every transition, and of none across two episodes
        np.testing.assert_allclose(after[0], before[0] + 0.02 * before[1], atol=1e-5)
        np.testing.assert_allclose(after[2], before[2] + 0.02 * before[3], atol=1e-5)


class Dictionary(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Dict({"all": env.observation_space, "step": spaces.Discrete(6)})

    def observation(self, observation):
        return {"all": observation, "step": int(observation[0])}


@pytest.mark.slow
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_dictionaries_in_a_vector_environment(mode):
    env = SyncVectorEnv([lambda: Dictionary(Counter())] * 2, autoreset_mode=mode)
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env), learner=SMALL).learn(30)
    for before, _, _, after, _, _ in transitions(agent):
        assert after[0] == before[0] + 1
        assert before[3 + int(before[0])] == after[3 + int(after[0])] == 1


def test_what_a_vector_environment_cannot_have():
    def deep(env, advisors=None, **more):
        return mad.MultiAdvisor(mad.Task.from_gymnasium(env, advisors), learner=mad.DQN(**more))

    env = SyncVectorEnv([Counter] * 2, autoreset_mode=AutoresetMode.DISABLED)
    refused("does not reset itself", deep, env)
    env = SyncVectorEnv([Counter] * 2)
    refused("leave envs out", deep, env, n_envs=4)
    refused("needs an environment of single episodes", deep, env, [mad.Advisor("own", reward=lambda transition: 1.0)])
    refused("learner='dqn'", mad.MultiAdvisor, mad.Task.from_gymnasium(env), learner="tabular")


@pytest.mark.slow
def test_advisors_with_functions_of_the_transition():
    """Own rewards, ends and activity: each in memory as the functions say."""
    task = mad.Task.from_gymnasium(Counter(), [
        mad.Advisor("sum", reward=lambda t: t.observation[0] + t.next_observation[0] + 10 * t.action),
        mad.Advisor("early", ended=lambda t: t.next_observation[0] >= 2, active=lambda seen: seen[0] < 2),
    ])  # fmt: skip
    agent = mad.MultiAdvisor(task, learner=SMALL).learn(120)
    seen = remembered(agent)
    step, early = seen.observation[:, 0], seen.observation[:, 0] < 2
    assert np.array_equal(seen.reward.T, [2 * step + 1 + 10 * seen.action, (step + 1) * early])
    assert np.array_equal(seen.active.T, [np.ones_like(step), early])
    assert np.array_equal(seen.ended[early, 1], step[early] + 1 == 2)  # later it has no part
    assert agent.advice(np.array([3.0, 1, 0]))[0] == ("sum",)
    assert agent.advice(np.array([0.0, 1, -1]))[0] == ("sum", "early")


def test_an_advisor_that_shows_the_network_an_array_can_be_recorded():
    """Nobody looks for a row of a table where a network sees the observation."""
    advisors = [mad.Advisor("place", state=lambda o: np.asarray(o[:2])), mad.Advisor("all")]
    task = mad.Task.from_gymnasium("CartPole-v1", advisors)
    agent = mad.MultiAdvisor(task, learner=mad.DQN(hidden=(4,)))
    trace = record(agent, episodes=2)
    replay(trace, task)
    assert trace.score.tolist() == agent.evaluate(episodes=2).played.score.tolist()
