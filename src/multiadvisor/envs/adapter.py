"""Any Gymnasium environment as a task: rewards to signals, who is active and who has ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from multiadvisor.envs.env_lock import lock_of
from multiadvisor.envs.info_terms import Terms
from multiadvisor.envs.local_states import LocalStates, NoTable
from multiadvisor.envs.names import reward_components
from multiadvisor.envs.spaces import BoxActions, MultiDiscreteActions, is_image
from multiadvisor.envs.step import begin_episode, check_ends, copied, five, no_reward
from multiadvisor.errors import BadInput, failed, short
from multiadvisor.task import Advisor, Transition, nothing

CONTINUOUS = (
    "tables are learned with a finite choice of actions, and these are continuous: leave bins and discretise out"
)


class Adapter(LocalStates):
    """Reads one environment for n advisors; it holds no values.

    It fills `firsts`, the first rows of the local states, `signals`, the rewards, and who is active or has ended.
    Without a `table` nobody looks for local states: networks see the observation itself.
    """

    def __init__(
        self, env: Any, advisors: Sequence[Advisor], discretise: Callable[[Any], Hashable] | None, table: bool = True
    ) -> None:
        self.env, self.observation = env, None
        self.made_here = False  # from its name alone, so that another one made from it is the same
        self.lock = lock_of(env)  # taken by whoever steps it
        self.vector = hasattr(env, "single_action_space")  # a vector environment, which only networks can learn in
        self.space = getattr(env, "single_observation_space", env.observation_space)  # of one observation
        self.sees_images = is_image(self.space)
        self._read_actions(env.single_action_space if self.vector else env.action_space)
        super().__init__(advisors, self.space, discretise, self._refusal())
        if not table:
            self.without_views()
        self._read_rewards()
        n = len(self.advisors)
        self._active = [(j, advisor.active) for j, advisor in enumerate(self.advisors) if advisor.active is not None]
        self._advises = [(j, advisor.advises) for j, advisor in enumerate(self.advisors) if advisor.advises is not None]
        self._ended = [(j, advisor.ended) for j, advisor in enumerate(self.advisors) if advisor.ended is not None]
        self._asks = bool(self._active or self._advises)
        self._plain = not (self._rewards or self._ended)
        self.varies = bool(self._active)  # whether it depends on the state who is active
        self._had_part = np.ones(n, np.int64)  # where the last step began
        self.bind(np.ones(n, np.int64), np.ones(n, np.int64), np.zeros(n, np.int64))

    # ---- the environment's spaces and rewards ------------------------------------------------------------------------
    def _read_actions(self, choice: Any) -> None:
        """How actions are counted: a finite choice, several of them at once, or real numbers."""
        from gymnasium import spaces

        self.first_action, self.box, self.several = 0, None, None
        if isinstance(choice, spaces.Discrete):
            self.actions, self.first_action = int(choice.n), int(choice.start)
        elif isinstance(choice, spaces.MultiDiscrete | spaces.MultiBinary):
            self.several = MultiDiscreteActions(choice)  # of which all combinations count
            self.actions = self.several.count
        elif isinstance(choice, spaces.Box):
            self.box = BoxActions(choice)  # continuous actions
            self.actions = self.box.size
        else:
            raise BadInput(
                f"the environment's actions are {type(choice).__name__}, and those that can be learned are Discrete, "
                "MultiDiscrete, MultiBinary and Box: wrap the environment so that it has such ones"
            )
        self._counted = self.box is None and self.several is None  # actions are numbers, and stay so

    def _refusal(self) -> BadInput | None:
        """Why there can be no table, whatever the observations are."""
        if self.box is not None:
            return NoTable(CONTINUOUS)
        if self.vector:
            return NoTable("tables are learned in single episodes, not in a vector environment: choose learner='dqn'")
        return None

    def _read_rewards(self) -> None:
        """Where each advisor's reward is among the signals: the environment's own first, then one for each advisor."""
        self.components = reward_components(self.env)
        self._rewards: list[tuple[int, Advisor]] = []
        places = [self._reward_source(j, advisor) for j, advisor in enumerate(self.advisors)]
        self.source = np.array(places, np.int64)
        self.terms = Terms(self.advisors, self.source, self.components)
        self.signals = np.zeros(max(self.components, 1) + len(self.advisors))
        self._vector = self.signals[: self.components]
        self._reward_seen = False

    def _reward_source(self, j: int, advisor: Advisor) -> int:
        size = max(self.components, 1)
        if advisor.reward is nothing or isinstance(advisor.reward, str):
            return size + j
        if advisor.reward is None:
            if self.components:
                raise BadInput(
                    f"advisor {advisor.name!r} takes the scalar reward, but the environment pays a vector of "
                    f"{self.components}: give reward=0 to {self.components - 1}, or a function"
                )
            return 0
        if isinstance(advisor.reward, int):
            if not 0 <= advisor.reward < self.components:
                raise BadInput(
                    f"advisor {advisor.name!r} takes component {advisor.reward} of the reward, but the environment "
                    "pays " + (f"a vector of {self.components}" if self.components else "a scalar: give a function")
                )
            return advisor.reward
        if not callable(advisor.reward):
            raise BadInput(
                f"the reward of {advisor.name!r} is no index, info:KEY or function of the transition; numbers to "
                f"multiply rewards with are weights={{{advisor.name!r}: ...}}"
            )
        self._rewards.append((size + j, advisor))
        return size + j

    def fresh(self, table: bool = True, env: Any = None) -> Adapter:
        """Another one on the same environment, or on another one like it, that has counted nothing yet."""
        if table and self.refusal is not None:
            raise self.refusal
        return Adapter(self.env if env is None else env, self.advisors, self.discretise, table)

    def copies(self, count: int) -> list[Any]:
        """So many environments like this one; a single one of the user's is taken as it is."""
        import gymnasium

        if count == 1 and not self.made_here:
            return [self.env]
        try:
            if self.env.spec is None:
                raise ValueError("it is not registered")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return [gymnasium.make(self.env.spec, disable_env_checker=True) for _ in range(count)]
        except Exception as error:  # whatever an environment's constructor may raise
            if count == 1:
                return [self.env]
            raise BadInput(
                f"the environment cannot be made {count} times ({short(str(error), 200)}): register it with "
                "Gymnasium, or leave n_envs at 1"
            ) from None

    # ---- stepping ----------------------------------------------------------------------------------------------------
    def bind(self, active: np.ndarray, advises: np.ndarray, ended: np.ndarray) -> None:
        """Where to write who is active [n], who of them advises [n], and whose own part has ended [n]."""
        active[:], advises[:], ended[:] = 1, 1, 0
        self.now_active, self.now_advises, self.has_ended = active, advises, ended

    def reset(self, seed: int | None) -> None:
        """Start an episode, with this seed where one is given, and look around."""
        self.arrive(begin_episode(self.env, seed))

    def arrive(self, observation: Any) -> None:
        """Look around where an episode stands."""
        self.observation = observation if self._plain else copied(observation)
        self.locate(observation)
        if self._asks:
            self._ask(observation)

    def played(self, action: Any) -> Any:
        """The environment's own action, or an array of them, of the learner's."""
        if self.box is not None:
            return self.box.to_environment(action)
        return action + self.first_action if self.several is None else self.several.to_environment(action)

    def step(self, action: Any, result: Any = None) -> tuple[bool, bool]:
        """Make a step, fill the signals, see who has ended and where everybody is: terminated, truncated.

        The action is counted from 0, or for a box of them each number is from -1 to 1. `result`: what the step gave,
        where somebody else has made it.
        """
        if self._counted:  # few look-ups: tables learn from a step in less time than this one takes
            action = given = action + self.first_action
        else:
            action = self.played(action)
            given = action if self._plain else action.copy()  # the environment may change it in place
        if result is None:
            result = self.env.step(given)
        if type(result) is not tuple or len(result) != 5:  # one call less, of all that a step costs here
            result = five(result)
        observation, reward, terminated, truncated, info = result
        if not self._reward_seen:
            self.check_reward(reward)
            check_ends(terminated, truncated)
        try:
            if self.components:
                self._vector[...] = reward
            else:
                self.signals[0] = reward
        except (TypeError, ValueError, OverflowError):
            raise no_reward(reward) from None
        if not self._plain:
            transition = Transition(self.observation, action, reward, observation, terminated, truncated, info)
            for place, advisor in self._rewards:
                try:
                    paid = advisor.reward(transition)  # type: ignore[operator, misc]
                except Exception as error:
                    raise failed(f"the reward of advisor {advisor.name!r}", error, info) from error
                try:
                    self.signals[place] = paid
                except (TypeError, ValueError, OverflowError):
                    raise no_reward(paid, advisor) from None
            for j, ended in self._ended:
                try:
                    self.has_ended[j] = 1 if ended(transition) else 0
                except Exception as error:
                    raise failed(f"the ended of advisor {self.advisors[j].name!r}", error) from error
        if self.terms.any:
            self.terms.fill(self.signals, info)
        # functions of a transition look at it after the next step, which may change it in place
        self.observation = observation if self._plain else copied(observation)
        self.locate(observation)
        if self._asks:
            self._had_part[:] = self.now_active
            self._ask(observation)
        return terminated, truncated

    @property
    def paid(self) -> np.ndarray:
        """What the last step paid to each advisor [n]: nothing to one that was not active where it began."""
        paid = self.signals[self.source]
        return np.where(self._had_part, paid, 0.0) if self._active else paid

    def active_in(self, observation: Any) -> np.ndarray:
        """Who has a part in the state with this observation [n] uint8."""
        active = np.ones(len(self.advisors), np.uint8)
        for j, function in self._active:
            active[j] = 1 if function(observation) else 0
        return active

    def check_reward(self, reward: Any) -> None:
        """Once: a wrapper may have made a number of a vector, or the environment may not have declared its vector."""
        size = np.size(reward) if np.ndim(reward) else 0
        if size != self.components:
            if not self.components:
                raise BadInput(
                    f"the environment pays a vector of {size}, and declares no reward_space: set its reward_space to "
                    f"gymnasium.spaces.Box(low, high, ({size},))"
                )
            paid = f"one of {size}" if size else "a number"
            raise BadInput(
                f"the environment's reward_space is of a vector of {self.components}, but it pays {paid}: correct one "
                "of them, or take off the wrapper that changes the reward"
            )
        self._reward_seen = True

    def look(self, observation: Any) -> None:
        """The first row of every view's local state, and who is active."""
        self.locate(observation)
        if self._asks:
            self._ask(observation)

    def _ask(self, observation: Any) -> None:
        j, what = 0, "active"
        try:
            for j, active in self._active:
                self.now_active[j] = 1 if active(observation) else 0
            what = "advises"
            for j, advises in self._advises:
                self.now_advises[j] = 1 if advises(observation) else 0
        except Exception as error:
            raise failed(f"the {what} of advisor {self.advisors[j].name!r}", error) from error
