"""Your own planning and aggregation, each in one place, compared with the built-in ones.

The functions on arrays are what networks, the solver and explanations call; their twins, on single numbers, are
compiled into the loop that learns with tables. The two are compared before they are used.
docs/plannings-and-aggregations.md explains the rules they follow. Copied to a file mine.py it serves the command too:

    multiadvisor train three-fruits --import mine.py --planning soft --aggregation approval --out runs/mine
    multiadvisor evaluate runs/mine --import mine.py
"""

import math

import multiadvisor as mad

HEAT = 0.1


# A planning: which action does an advisor expect in the next state? Here: its own Boltzmann policy, between
# egocentric (no heat) and agnostic (much of it).
def soft_value(q, ahead):
    best = q[0]
    for action in range(q.shape[0]):
        best = max(best, q[action])
    worth, total = 0.0, 0.0
    for action in range(q.shape[0]):
        chance = math.exp((q[action] - best) / HEAT)
        worth += chance * q[action]
        total += chance
    return worth / total


@mad.register_planning("soft", compiled=soft_value)
def soft(advice, ahead):
    """Each advisor expects its own Boltzmann policy."""
    xp = advice.__array_namespace__()  # NumPy or JAX
    chances = xp.exp((advice - advice.max(axis=1, keepdims=True)) / HEAT)
    return chances / chances.sum(axis=1, keepdims=True)


# An aggregation: how does the aggregator combine the advice? Here: approval voting.
def fill_approval(table, rows, weights, m, parameter, preferences):
    actions = table.shape[1]
    for action in range(actions):
        preferences[action] = 0.0
    for i in range(m):
        mean = 0.0
        for action in range(actions):
            mean += table[rows[i], action] / actions
        for action in range(actions):
            if table[rows[i], action] > mean + 1e-9:
                preferences[action] += weights[i]


@mad.register_aggregation("approval", compiled=fill_approval)
def approval(advice, weights, parameter):
    """Each advisor gives w_j to every action that it finds better than the mean."""
    better = advice > (advice / advice.shape[-1]).sum(axis=-1, keepdims=True) + 1e-9
    return (weights[..., None] * better).sum(axis=-2)


if __name__ == "__main__":
    task = mad.make("three-fruits")
    print("planning    aggregation  finished  steps")
    for planning, aggregation in (("egocentric", "sum"), ("egocentric", "max"), ("empathic", "sum"),
                                  ("soft", "sum"), ("soft", "max"), ("soft", "approval")):  # fmt: skip
        agent = mad.MultiAdvisor(task, planning=planning, aggregation=aggregation, gamma=0.9, seed=0)
        seen = agent.learn(100_000, progress=False).evaluate(episodes=100)
        print(f"{planning:11} {aggregation:11} {seen.terminated:9.0%} {seen.length:6.1f}")
