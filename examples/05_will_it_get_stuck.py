"""Will it get stuck? What the theory lab says about a task, and what happens when agents with these values play.

Egocentric advisors only: for each task the gamma at which attractors begin, then episodes on both sides of it.
"""

import numpy as np

import multiadvisor as mad
from multiadvisor.analysis import theory

# 1. The built-in tasks: the verdict, and greedy episodes with the exact values.
for name in ("two-goal", "three-fruits", "four-fruits", "resource-scheduling"):
    task = mad.make(name)
    mdp = theory.enumerate_task(task)
    start = int(mdp.start.argmax())
    critical = theory.critical_gamma(mdp)
    print(
        f"{name}: " + ("no attractor was found" if critical is None else f"attractors from gamma = {critical:.4f} on")
    )
    for gamma in (0.3, 0.45, 0.55, 0.9):
        solution = theory.solve(mdp, "egocentric", gamma)
        here = [found for found in theory.attractors(solution) if found.state == start]
        kind = ("stable" if here[0].stable else "unstable") if here else "none"
        stuck = "stuck" if theory.stuck_states(solution)[start] else "goes on"
        played = theory.exact_agent(task, "egocentric", gamma).evaluate(episodes=100)
        print(
            f"  gamma {gamma:.2f}  attractor at the start: {kind:8}  says: {stuck:7}  finished: "
            f"{played.terminated:4.0%}"
        )

# 2. Pac-Boy's maze: how often is a random board a trap?
print("\nPac-Boy without ghosts, 500 random boards\n gamma  has an attractor  a stable one  episodes that end stuck")
for row in theory.trap_shares(mad.make("pac-boy", ghosts=False), (1 / 3, 0.4, 0.5, 0.6, 0.7, 0.9), 500):
    print(
        f"  {row['gamma']:.2f}        {row['attractor']:6.1%}        {row['stable']:6.1%}          {row['stuck']:6.1%}"
    )

# 3. Your own MDP. A mediator: five parties, each with its own proposal, which ends the talks and pays that
# party 1; a compromise ends them too and pays everybody 0.7; and one may talk on.
parties = 5
actions = ("talk on", "compromise", *(f"proposal {k + 1}" for k in range(parties)))
transition = np.zeros((1, len(actions), 1))
transition[0, 0, 0] = 1.0
end = np.array([[0.0] + [1.0] * (parties + 1)])
reward = np.zeros((parties, 1, len(actions)))
reward[:, 0, 1] = 0.7
reward[np.arange(parties), 0, 2 + np.arange(parties)] = 1.0
talks = theory.FiniteMDP.from_arrays(transition, reward, end=end, name="talks", actions=actions)
print(f"\ntalks: attractor from gamma = {theory.critical_gamma(talks):.4f} on, where hope for 1 outweighs 0.7 at once")
for planning in ("egocentric", "empathic"):
    solution = theory.solve(talks, planning, 0.9)
    print(f"  {planning:10} at gamma 0.9: {actions[int(solution.preferences[0].argmax())]}")
