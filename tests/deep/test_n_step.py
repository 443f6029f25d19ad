"""What a network learns from, with rewards summed over several steps: against a plain loop over what the environments
themselves wrote down."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from multiadvisor.learners.dqn.backend import jax
from multiadvisor.learners.dqn.dqn_update import losses


class Diary(gymnasium.Env):
    """Writes down every step. An observation is (environment, step, way); episodes end, or are cut off, now and
    then."""

    made, steps = 0, {}

    def __init__(self):
        self.observation_space = spaces.Box(-1e9, 1e9, (3,), np.float64)
        self.action_space = spaces.Discrete(3)
        Diary.made += 1
        self.name, self.number = Diary.made, 0

    def see(self):
        self.number += 1
        return np.array([self.name, self.number, self.np_random.integers(5)], np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length, self.now = 0, self.see()
        return self.now, {}

    def step(self, action):
        before, self.now, self.length = self.now, self.see(), self.length + 1
        reward = self.np_random.normal(size=3)
        chance = self.np_random.random()
        terminated, truncated = bool(chance < 0.1), bool(0.1 < chance < 0.15 or self.length == 9)
        Diary.steps[tuple(before[:2])] = (int(action), reward, self.now, terminated, truncated)
        return self.now, float(reward.sum()), terminated, truncated, dict(zip("abc", reward.tolist(), strict=True))


gymnasium.register("tests/Diary-v0", Diary)


def asleep(observation):
    return observation[2] != 1


def parts_with(transition):
    return bool(transition.next_observation[2] == 3)


GAMMAS = (0.5, 0.9, 1.0)
ADVISORS = [
    mad.Advisor("a", reward="info:a", gamma=GAMMAS[0], weight=2.0),
    mad.Advisor("b", reward="info:b", gamma=GAMMAS[1], active=asleep),
    mad.Advisor("c", reward="info:c", gamma=GAMMAS[2], weight=-1.0, ended=parts_with),
]


def there(j, observation):
    """Whether advisor j has a say."""
    return j != 1 or asleep(observation)


def plain_path(j, observation, ends, steps):
    """What advisor j gets from here in at most so many steps, times what its last value counts, and where that is."""
    total, factor, now = 0.0, 1.0, observation
    alone = False  # nothing that comes is its own any more
    for _ in range(steps):
        _, reward, after, terminated, truncated = Diary.steps[tuple(now[:2])]
        if not alone:
            total += factor * reward[j]
            factor *= GAMMAS[j]
        if terminated or (ends and j == 2 and after[2] == 3) or not there(j, after):
            alone = True
        now = after
        if terminated or truncated or tuple(now[:2]) not in Diary.steps:  # its last step is the newest of all
            break
    return total, 0.0 if alone else factor, now


def vector(mode):
    return gymnasium.vector.SyncVectorEnv(
        [Diary] * 3, autoreset_mode=getattr(gymnasium.vector.AutoresetMode, mode), copy=True
    )


CASES = {
    "one": lambda: ("tests/Diary-v0", ADVISORS, 1),
    "four": lambda: ("tests/Diary-v0", ADVISORS, 4),
    "vector, the next episode waits": lambda: (vector("NEXT_STEP"), ADVISORS[:2], 1),
    "vector, the next episode is dealt at once": lambda: (vector("SAME_STEP"), ADVISORS[:2], 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize(("case", "planning", "double"), [
    ("one", "egocentric", False), ("four", "empathic", True), ("four", "agnostic", False),
    ("vector, the next episode waits", "empathic", False), ("vector, the next episode is dealt at "
                                                            "once", "egocentric", True),
])  # fmt: skip
def test_targets_are_those_of_a_plain_loop(case, planning, double, steps):
    env, advisors, envs = CASES[case]()
    task = mad.Task.from_gymnasium(env, advisors)
    deep = mad.DQN(
        hidden=(7,), n_step=steps, batch_size=64, learning_starts=150, updates_at_once=2, train_freq=2, buffer_size=170,
        n_envs=envs, double=double, loss="squared",
    )  # fmt: skip
    agent = mad.MultiAdvisor(task, planning=planning, gamma=0.7, learner=deep, seed=steps)
    learner, tried = agent._learner, np.zeros(5, int)
    update, weights = learner._update, np.array([advisor.weight for advisor in advisors])

    def watched(state, batch, rates):
        first = type(batch)(*(part[0] for part in batch))
        loss = np.asarray(losses(state.network, state.target, first, learner._rules(), double, False))[0]
        own, judge, value = advice(state, first, double)
        error = np.zeros(own.shape[:2])
        for b, now in enumerate(first.observation[0].astype(float)):
            action, _, _, terminated, truncated = Diary.steps[tuple(now[:2])]
            assert first.action[0, b] == action
            for j in range(len(advisors)):
                total, factor, last = plain_path(j, now, len(advisors) == 3, steps)
                assert np.array_equal(last, first.next_observation[0, b])
                if planning == "egocentric":
                    follows = value[b, j, judge[b, j].argmax()]
                elif planning == "agnostic":
                    follows = value[b, j].mean()
                else:
                    heard = weights * [there(i, last) for i in range(len(advisors))]
                    follows = value[b, j, (heard[:, None] * judge[b]).sum(axis=0).argmax()]
                if there(j, now):
                    error[b, j] = own[b, j, action] - (total + factor * follows)
                tried[:] += [1, terminated, truncated, factor == 0 and not terminated, not there(j, now)]
        np.testing.assert_allclose(loss, np.square(error).mean(axis=0), rtol=2e-4)
        return update(state, batch, rates)

    learner._update = watched
    agent.learn(260)
    assert tried.min() > 10, "too little was tried"


def advice(state, batch, double):
    """The learning network's advice here, who judges what follows, and what that is worth: [B, n, A] each."""
    learning, target = (jax.tree.map(np.array, each) for each in (state.network, state.target))
    here, ahead = (part.astype(np.float32) for part in (batch.observation, batch.next_observation))
    return [part[0] for part in (learning(here), (learning if double else target)(ahead), target(ahead))]
