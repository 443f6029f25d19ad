"""Which term of my reward matters? A policy of anyone's, here three lines by hand, diagnosed."""

import numpy as np

import multiadvisor as mad

terms = [mad.Advisor("angle", reward=lambda t: -(np.arctan2(t.observation[1], t.observation[0]) ** 2)),
         mad.Advisor("speed", reward=lambda t: -0.1 * t.observation[2] ** 2),
         mad.Advisor("torque", reward=lambda t: -0.001 * t.action[0] ** 2)]  # fmt: skip
spin = lambda seen: [2.0 if seen[2] > 0 else -2.0]  # noqa: E731
print(mad.diagnose("Pendulum-v1", spin, terms, gamma=0.9, steps=4_000, branches=40))
