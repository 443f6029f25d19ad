"""The negotiation dialogue of Laroche and Feraud (2017), after Laroche and Genevay: two players agree on an option.

    gymnasium.make("multiadvisor/Negotiation-v0")

Each player has a private cost for every option. The user speaks first and proposes the option it likes best; then the
system, which learns, answers, and so on in turn. Each understands another option than was said with the probability
`error`, and the system is told how clearly it heard.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from multiadvisor.errors import BadInput

ACCEPT, INSIST, PROPOSE, REPEAT, END = range(5)
ACTIONS = ("accept", "insist", "new proposal", "ask to repeat", "end")
FEATURES = ("clarity", "cost of what was heard", "cost of a new proposal", "time", "proposals made")
CLARITY = 0.2  # the standard deviation of what a recognition score is made of


class Negotiation(gymnasium.Env[np.ndarray, Any]):
    """A dialogue; what the system sees is five numbers between 0 and 1, `FEATURES`."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 as Gymnasium has it
    action_names = ACTIONS

    def __init__(
        self, options: int = 4, error: float = 0.3, cooperation: float = 1.0, patience: int = 20,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        if not 2 <= options <= 100:
            raise BadInput(f"a negotiation about {options} options cannot be: choose 2 to 100")
        if not 0.0 <= error < 1.0:
            raise BadInput(f"error is {error}: choose a probability of at least 0 and below 1")
        if not 0.0 <= cooperation <= 1.0:
            raise BadInput(f"cooperation is {cooperation}: choose it between 0 and 1")
        if patience < 1:
            raise BadInput(f"patience is {patience}: let the user wait for at least 1 step")
        if render_mode not in (None, "ansi"):
            raise BadInput(f"render_mode is {render_mode!r}: a dialogue is shown as text, choose 'ansi'")
        self.options, self.error, self.cooperation, self.patience = options, error, cooperation, patience
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = spaces.Box(0.0, 1.0, (len(FEATURES),), np.float64)

    # ---- speech ------------------------------------------------------------------------------------------------------
    def _understood(self, option: int) -> tuple[int, float]:
        """An option as the other hears it, and how clearly: a score that is higher, on average, where it is right."""
        wrong = self.np_random.random() < self.error
        heard = (option + 1 + int(self.np_random.integers(self.options - 1))) % self.options if wrong else option
        return heard, 1.0 / (1.0 + math.exp(-self.np_random.normal(0.0 if wrong else 1.0, CLARITY)))

    def _user_says(self) -> None:
        self.heard, self.clarity = self._understood(self.wanted)
        self._say("user", f"option {self.wanted}", f"the system hears option {self.heard}, clarity {self.clarity:.2f}")

    def _say(self, who: str, what: str, note: str = "") -> None:
        self.lines.append(f"{who}: {what}" + (f"  ({note})" if note else ""))

    # ---- Gymnasium ---------------------------------------------------------------------------------------------------
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Two players with new costs, and the user's first proposal."""
        super().reset(seed=seed)
        self.costs = self.np_random.random((2, self.options))  # [system, user]
        self.mine = self.costs[0].argsort()  # [options] the system's, the cheapest first
        self.rank = self.costs[1].argsort().argsort()  # [options] the user's, 0 for the cheapest
        self.wanted = int(self.costs[1].argmin())
        self.elapsed = self.proposals = 0
        self.lines: list[str] = []
        self._user_says()
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        own, least = self.costs[0], self.costs[0].min()
        following = own[self.mine[min(self.proposals, self.options - 1)]]
        return np.array([
            self.clarity, own[self.heard] - least, following - least, 0.1 * self.elapsed / (0.1 * self.elapsed + 1.0),
            self.proposals / self.options,
        ])  # fmt: skip

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """The system's act, and the user's answer."""
        self.elapsed += 1
        reward, over = 0.0, self.elapsed >= self.patience
        if action == ACCEPT:
            self._say("system", f"accepts option {self.heard}")
            reward, over = self._agreed(self.heard, self.wanted), True
        elif action == END:
            self._say("system", "ends the dialogue")
            over = True
        elif action == REPEAT:
            self._say("system", "asks to repeat")
            self._user_says()
        else:
            self.proposals = min(self.proposals + (action == PROPOSE or self.proposals == 0), self.options)
            proposed = int(self.mine[self.proposals - 1])
            heard, _ = self._understood(proposed)
            self._say("system", f"refuses, and proposes option {proposed}", f"the user hears option {heard}")
            if self.rank[heard] <= self.elapsed // 2:  # the longer it takes, the less the user insists
                self._say("user", f"accepts option {heard}")
                reward, over = self._agreed(proposed, heard), True
            else:
                self._user_says()
        return self._seen(), reward, over, False, {}

    def _agreed(self, system: int, user: int) -> float:
        """What an agreement is worth to the system, which cares for the user as far as it cooperates."""
        if system != user:
            self._say("--", f"a misunderstanding: option {system} for the one, {user} for the other")
            return -1.0
        own, other = 1.0 - self.costs[:, system]
        self._say("--", f"agreed on option {system}")
        return float((own + self.cooperation * other) / (1.0 + self.cooperation))

    def render(self) -> str:
        """The dialogue so far, with the costs."""
        table = [f"option {k}: system {a:.2f}, user {b:.2f}" for k, (a, b) in enumerate(self.costs.T)]
        return "\n".join([*table, *self.lines])
