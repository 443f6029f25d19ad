"""The environments' names in Gymnasium; the environments themselves are loaded when one is made."""

from __future__ import annotations

ENVIRONMENTS = {
    "PacBoy": "pac-boy",
    "FruitGrid": "fruit-grid",
    "ThreeFruits": "three-fruits",
    "FourFruits": "four-fruits",
    "TwoGoal": "two-goal",
    "DollarsAndEuros": "dollars-and-euros",
    "Bridge": "bridge",
    "ResourceScheduling": "resource-scheduling",
    "RandomMDP": "random-mdp",
}
_HOME = "multiadvisor.worlds.environments"


def register() -> None:
    """Make every task known to Gymnasium, as `multiadvisor/PacBoy-v0` and, with a vector reward, `mo-PacBoy-v0`.

    >>> import gymnasium
    >>> register()
    >>> gymnasium.make("multiadvisor/mo-TwoGoal-v0").unwrapped.reward_names
    ('goal 1', 'goal 2')
    """
    from gymnasium.envs.registration import register, registry

    for name, task in ENVIRONMENTS.items():
        for prefix, kind in (("", ""), ("mo-", "MO")):
            identifier = f"multiadvisor/{prefix}{name}-v0"
            if identifier not in registry:  # Gymnasium warns of a name that is given twice
                register(
                    id=identifier,
                    entry_point=f"{_HOME}:{kind}WorldEnv",
                    vector_entry_point=f"{_HOME}:{kind}WorldVectorEnv",
                    disable_env_checker=kind == "MO",  # the checker takes every reward for a number
                    kwargs={"task": task},
                )
