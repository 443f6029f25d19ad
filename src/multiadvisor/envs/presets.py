"""What a task is learned with where nobody says otherwise: settings, parts of the schedule, and settings of learners.

One table, by the name of the task or the id of the environment; a learner's settings stand under its name, and count if
it is the one that learns. What a user gives always wins. Tasks that are not named here have the defaults of `Settings`
and `Schedule`, and environments of others those of `GYMNASIUM`. Rows were chosen on seeds from 100 on; what they give
on others is measured by `docs/from_presets.py`.
"""

from __future__ import annotations

from typing import Any

Preset = dict[str, Any]

GYMNASIUM: Preset = {"gamma": 0.99, "steps": 100_000, "eval_every": 10_000, "eval_episodes": 10}
"""Of every environment of Gymnasium, unless its own row says otherwise."""

_TABLE: Preset = {"alpha": 0.5, "epsilon": 0.1}
_LONG: Preset = {"steps": 1_000_000, "eval_every": 20_000, "sac": {"learning_starts": 10_000}}
_DECAYING: Preset = {"lr_schedule": "linear", "lr_end": 1e-4, "double": True}  # so that nothing is forgotten late
_CARTPOLE: Preset = {
    **_DECAYING, "hidden": (256, 256), "learning_rate": 2.3e-3, "lr_steps": 50_000, "batch_size": 64,
    "buffer_size": 100_000, "target_update_interval": 128, "train_freq": 2, "updates_at_once": 128,
    "epsilon_steps": 8_000,
}  # fmt: skip
_LANDER: Preset = {
    **_DECAYING, "hidden": (256, 256), "learning_rate": 6.3e-4, "batch_size": 128, "target_update_interval": 250,
    "train_freq": 1, "epsilon_steps": 12_000,
}  # fmt: skip
_MOUNTAIN_CAR: Preset = {
    **_DECAYING, "learning_rate": 1e-3, "lr_steps": 150_000, "batch_size": 64, "buffer_size": 100_000,
    "target_update_interval": 250, "train_freq": 2, "epsilon_steps": 30_000, "n_step": 5,
}  # fmt: skip
_PENDULUM: Preset = {"hidden": (64, 64), "learning_rate": 1e-3, "learning_starts": 1_000}

PRESETS: dict[str, Preset] = {
    "ms-pacman": {
        "planning": "agnostic", "gamma": 0.99, "aggregation": "normalised", "epsilon": 0.03, "steps": 520_000,
        "eval_every": 20_000, "eval_episodes": 4,
    },
    "CliffWalking-v1": {**_TABLE, "steps": 50_000},
    "FrozenLake-v1": {**_TABLE, "alpha": 0.2, "alpha_half": 10_000, "steps": 300_000},
    "Taxi-v3": {**_TABLE, "steps": 200_000},
    "Taxi-v4": {**_TABLE, "steps": 200_000},
    "CartPole-v1": {"epsilon": 0.04, "steps": 50_000, "dqn": _CARTPOLE},
    "Acrobot-v1": {"steps": 50_000, "dqn": {**_LANDER, "lr_steps": 50_000}},
    "MountainCar-v0": {"steps": 150_000, "dqn": _MOUNTAIN_CAR},
    "LunarLander-v3": {"dqn": {**_LANDER, "lr_steps": 100_000}},
    "Pendulum-v1": {"steps": 20_000, "eval_every": 5_000, "sac": _PENDULUM},
    "InvertedPendulum-v5": {"steps": 20_000, "eval_every": 5_000, "sac": _PENDULUM},
    "InvertedDoublePendulum-v5": {"steps": 30_000, "sac": _PENDULUM},
    "Reacher-v5": {"steps": 30_000, "sac": _PENDULUM},
    "deep-sea-treasure-v0": {**_TABLE, "gamma": 1.0, "epsilon": 0.5, "steps": 50_000},
    "resource-gathering-v0": {**_TABLE, "epsilon": 0.3},
    "fruit-tree-v0": {**_TABLE, "epsilon": 0.3},
    "mo-mountaincar-v0": {"steps": 150_000, "dqn": _MOUNTAIN_CAR},
    "mo-lunar-lander-v3": {"dqn": {**_LANDER, "lr_steps": 100_000}},
    **dict.fromkeys(
        (
            "Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "Pusher-v5",
            "Swimmer-v5", "Walker2d-v5", "mo-ant-v5",
            "mo-halfcheetah-v5", "mo-hopper-v5", "mo-humanoid-v5", "mo-swimmer-v5", "mo-walker2d-v5",
        ),
        _LONG,
    ),
}  # fmt: skip
