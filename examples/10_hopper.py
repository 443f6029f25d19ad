"""Hopper with an advisor for each term of its reward: who wants what from the next push, and new weights later.

Needs multiadvisor[deep,mujoco]. About 20 seconds; a hopper that runs takes a million transitions and 256 x 256 units.
"""

import gymnasium

import multiadvisor as mad

task = mad.Task.from_gymnasium("Hopper-v5", "info:reward_*")
agent = mad.MultiAdvisor(task, gamma=0.99, seed=0, learner=mad.SAC(hidden=(64, 64), learning_starts=1_000))
agent.learn(8_000)
print(task.names, agent.evaluate(episodes=3))
state, _ = gymnasium.make("Hopper-v5").reset(seed=0)
print(agent.explain(state))
agent.reweight(ctrl=10.0).learn(1_000)
print("with effort ten times as expensive:", agent.evaluate(episodes=3))
