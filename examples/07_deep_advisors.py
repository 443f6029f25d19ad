"""Deep advisors on a vector reward: which part of the reward fires the engine?

MO-Gymnasium's lunar lander pays four numbers: landing, shaping, and the fuel of two engines. Each gets an advisor, and
one network speaks for all four. With the weights below their sum is the reward of the ordinary LunarLander-v3.
(20,000 transitions are too few to land well: `multiadvisor train --learner dqn` with ten times as many does.)
"""

import mo_gymnasium

import multiadvisor as mad

WEIGHTS = {"landing": 1.0, "shaping": 1.0, "main engine": 0.3, "side engine": 0.03}

task = mad.make("mo-lunar-lander-v3", weights=WEIGHTS)
network = mad.DQN(hidden=(64, 64), epsilon_steps=10_000)
agent = mad.MultiAdvisor(task, planning="empathic", gamma=0.99, seed=0, learner=network)
agent.learn(20_000, progress=False)

seen = agent.evaluate(episodes=3)
print(seen)
for name, value in seen.advisors.items():
    print(f"  {name:12} {value:8.1f} an episode, before its weight {WEIGHTS[name]}")

observation, _ = mo_gymnasium.make("mo-lunar-lander-v3").reset(seed=1)
print(agent.explain(observation))
