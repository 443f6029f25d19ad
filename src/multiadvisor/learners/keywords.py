"""What `MultiAdvisor` takes besides the fields of `Settings`, with types, so that editors know every keyword."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from multiadvisor.envs.spaces import Bins
    from multiadvisor.task import Advisor


class Keywords(TypedDict, total=False):
    """The settings of this package's learners, by name, and what `make` takes for any task.

    Learners and tasks that a user registers are given theirs too; a type checker cannot know these, and knows them in
    `learner=Mine(...)` and `make("mine", ...)`.
    """

    # NetworkSettings
    hidden: tuple[int, ...]
    learning_rate: float
    lr_schedule: str
    lr_end: float
    lr_steps: int
    batch_size: int
    buffer_size: int
    learning_starts: int
    train_freq: int
    updates_at_once: int
    n_envs: int
    # DQN
    split: str
    torso: str
    convolutions: tuple[int, ...]
    strides: tuple[int, ...]
    target_update_interval: int
    double: bool
    loss: str
    n_step: int
    clip_norm: float
    clip_rewards: bool
    random_start: bool
    epsilon_schedule: str
    epsilon_start: float
    epsilon_steps: int
    # SAC
    critics: str
    advisors_train_freq: int
    tau: float
    temperature: float
    target_entropy: float | None
    # make
    remainder: bool
    components: Sequence[str] | None
    bins: Bins | str | None
    discretise: Callable[[Any], Hashable] | None
    extra_advisor: Advisor | None
    action_names: Sequence[str] | None
    max_episode_steps: int | None
    wrappers: Sequence[Any] | None
    weights: Mapping[str, float] | None
    gammas: Mapping[str, float] | None
    alphas: Mapping[str, float] | None
