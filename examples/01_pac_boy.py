"""Pac-Boy with 77 advisors: train, evaluate, look closer at the games, keep the agent."""

import tempfile

import numpy as np

import multiadvisor as mad

task = mad.make("pac-boy")
print(f"{task.n} advisors, for example {task.names[0]!r} and {task.names[-1]!r}; actions {', '.join(task.actions)}\n")

print("one million transitions each, then 2,000 greedy games:")
for planning, gamma in (("egocentric", 0.4), ("egocentric", 0.9), ("agnostic", 0.9), ("empathic", 0.9)):
    agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, seed=0).learn(1_000_000, progress=False)
    seen = agent.evaluate(games=2000)
    touches = task.measures(seen.played.returns)["touches"]
    print(
        f"  {planning:10} {gamma}: score {seen.score:5.2f} (median {np.median(seen.played.score):4.1f}), "
        f"{seen.turns:5.1f} turns, {seen.finished:4.0%} finished, "
        f"games with 5 touches or more {np.mean(touches >= 5):.1%}, most in one game {touches.max():.0f}"
    )

with tempfile.TemporaryDirectory() as folder:
    agent.save(folder)
    again = mad.load(folder)
    agent.learn(10_000, progress=False)
    again.learn(10_000, progress=False)
    same = np.array_equal(agent.values("ghost 1"), again.values("ghost 1"))
    print(f"\nsaved, loaded, and both went on for 10,000 transitions: the same values, bit for bit? {same}")
