"""Your own environment: any Gymnasium environment with discrete actions, and a list of advisors."""

import gymnasium
import numpy as np

import multiadvisor as mad


class Courier(gymnasium.Env):
    """A yard of 6 x 6 cells: each of two parcels pays 1, bumping into the fence costs 0.1; over when both are fetched.

    The observation is [row, column, row and column of parcel 1, is it left?, the same of parcel 2].
    """

    moves = ((-1, 0), (0, -1), (1, 0), (0, 1))

    def __init__(self):
        self.action_space = gymnasium.spaces.Discrete(4)
        self.observation_space = gymnasium.spaces.MultiDiscrete([6, 6, 6, 6, 2, 6, 6, 2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        cells = self.np_random.permutation(36)[:3]
        self.at, *self.parcels = (divmod(int(cell), 6) for cell in cells)
        self.left = [1, 1]
        return self.observe(), {}

    def observe(self):
        return np.array([*self.at, *self.parcels[0], self.left[0], *self.parcels[1], self.left[1]])

    def step(self, action):
        before = self.at
        self.at = tuple(min(max(p + d, 0), 5) for p, d in zip(before, self.moves[action], strict=True))
        reward = -0.1 if self.at == before else 0.0
        for k in (0, 1):
            if self.left[k] and self.at == self.parcels[k]:
                self.left[k], reward = 0, reward + 1.0
        return self.observe(), reward, self.left == [0, 0], False, {}


# ---- the ten lines that matter ---------------------------------------------------------------------------------------
def parcel(k):
    at, left = slice(2 + 3 * k, 4 + 3 * k), 4 + 3 * k
    return mad.Advisor(
        f"parcel {k + 1}", table="parcels",
        state=lambda o: tuple(o[at] - o[:2]),  # distance and direction, and nothing else
        reward=lambda t: float(t.observation[left] - t.next_observation[left]),
        active=lambda o: o[left] == 1, ended=lambda t: t.next_observation[left] == 0,
    )  # fmt: skip


def bump(t):
    return -0.1 if (t.observation[:2] == t.next_observation[:2]).all() else 0.0


env = gymnasium.wrappers.TimeLimit(Courier(), 100)
task = mad.Task.from_gymnasium(
    env, [parcel(0), parcel(1), mad.Advisor("bumps", reward=bump, state=(0, 1))], name="courier"
)

print(mad.check_task(task))
for planning in ("egocentric", "agnostic", "empathic"):
    agent = mad.MultiAdvisor(task, planning=planning, gamma=0.8, seed=0).learn(40_000, progress=False)
    print(f"{planning:10} {agent.evaluate(episodes=100)}")
names = ", ".join(f"{name} {len(agent.values(name))}" for name in task.names)
print(f"local states seen: {names} (both parcels share one table); the whole observation can take {36**3 * 4:,} values")
