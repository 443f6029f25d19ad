"""The paper's three-fruit attractor: above gamma = 1/2 egocentric advisors send Pac-Boy South, into the wall, for ever.

In theory Q_Sigma(South) = 3 gamma^2 and Q_Sigma(North, West, East) = gamma + 2 gamma^3 for egocentric planning.
"""

import multiadvisor as mad
from multiadvisor.envs.render import text

START = [12, 1, 1, 1]  # Pac-Boy's cell, and the three fruits are there

task = mad.make("three-fruits")
print(text(task, START))

for planning in ("egocentric", "empathic"):
    print(f"\n{planning}\n gamma   Q(N)    Q(W)    Q(S)    Q(E)   goes   greedy episodes finished")
    for gamma in (0.3, 0.4, 0.49, 0.51, 0.6, 0.75, 0.9):
        # every action is tried equally often (epsilon 1): what is learned does not depend on it here
        agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, epsilon=1.0, seed=0)
        agent.learn(200_000, progress=False)
        values = agent.preferences(START)
        shown = "  ".join(f"{value:.4f}" for value in values)
        goes = task.actions[agent.act(START)]
        print(f"  {gamma:.2f}  {shown}   {goes}      {agent.evaluate(episodes=100).terminated:4.0%}")
