"""Pac-Boy with 77 advisors: train, evaluate, look closer at the episodes, keep the agent."""

import tempfile

import numpy as np

import multiadvisor as mad

task = mad.make("pac-boy")
print(f"{task.n} advisors, for example {task.names[0]!r} and {task.names[-1]!r}; actions {', '.join(task.actions)}\n")

print("five agents of one million transitions each, then 2,000 greedy episodes of each:")
for planning, gamma in (("egocentric", 0.4), ("egocentric", 0.9), ("agnostic", 0.9), ("empathic", 0.9)):
    episodes = []
    for seed in range(5):
        agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, seed=seed).learn(1_000_000, progress=False)
        episodes.append(agent.evaluate(episodes=2000).played)
    score = np.concatenate([played.score for played in episodes])
    touches = np.concatenate([task.metrics(played.returns)["touches"] for played in episodes])
    many = touches >= 5
    share = touches[many].sum() / touches.sum()
    print(
        f"  {planning:10} {gamma}: score {score.mean():5.2f} (median {np.median(score):4.1f}); 5 touches or more in "
        f"{many.mean():.2%} of episodes, which hold {share:.0%} of all, {touches.max():.0f} at most"
    )

with tempfile.TemporaryDirectory() as folder:
    agent.save(folder)
    again = mad.load(folder)
    agent.learn(10_000, progress=False)
    again.learn(10_000, progress=False)
    same = np.array_equal(agent.values("ghost 1"), again.values("ghost 1"))
    print(f"\nsaved, loaded, and both went on for 10,000 transitions: the same values, bit for bit? {same}")
