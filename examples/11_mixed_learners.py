"""An ensemble of advisors that each learn in their own way: a table, a linear function and a network on one cart.

Run it: python examples/11_mixed_learners.py (needs the extra "deep")
"""

import gymnasium
import numpy as np

import multiadvisor as mad
from multiadvisor.learners.ensembles.ensemble import Ensemble

env = gymnasium.make("CartPole-v1")


def advisor(name, reward, discretise=None, **how):
    """An agent with one advisor: its own reward, view and learner."""
    task = mad.Task.from_gymnasium(gymnasium.make("CartPole-v1"), [mad.Advisor(name, reward)], discretise=discretise)
    return mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, **how)


def layers(*hidden):
    return mad.DQN(hidden=hidden, learning_starts=200, train_freq=4, target_update_interval=200, learning_rate=2e-3)


falls = mad.Bins([-0.21, -2.0], [0.21, 2.0], [8, 8])  # the pole's angle and speed
ensemble = Ensemble(
    {
        "fall": advisor("fall", lambda t: -float(t.terminated), lambda o: falls(o[2:]), alpha=0.2),  # a table
        "middle": advisor(
            "middle", lambda t: 0.24 - 0.1 * abs(float(t.next_observation[0])), learner=layers()
        ),  # linear
        "upright": advisor(
            "upright", lambda t: 0.21 - abs(float(t.next_observation[2])), learner=layers(32)
        ),  # a network
    },
    epsilon=0.05,
)


def balanced(episodes=20):
    """The mean number of steps of greedy episodes."""
    steps = 0
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 + episode)
        over = False
        while not over:
            observation, _, terminated, truncated, _ = env.step(ensemble.act(observation))
            steps, over = steps + 1, terminated or truncated
    return steps / episodes


print(f"before: {balanced():.0f} steps")
observation, _ = env.reset(seed=0)
for _ in range(15_000):
    action = ensemble.act(observation, explore=True)
    following, reward, terminated, truncated, info = env.step(action)
    ensemble.observe(observation, action, reward, following, terminated, truncated, info)
    observation = env.reset()[0] if terminated or truncated else following
after = balanced()
print(f"after:  {after:.0f} steps, more than {100 if after > 100 else 0}")
names, advice = ensemble.advice(np.array([0.0, 0.0, 0.1, 0.5]))
for name, values in zip(names, advice, strict=True):
    print(f"{name:8} of a pole that falls to the right: left {values[0]:+.3f}, right {values[1]:+.3f}")
