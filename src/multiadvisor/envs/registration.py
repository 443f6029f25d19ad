"""The tasks' names in Gymnasium; the environments themselves are loaded when one is made."""

from __future__ import annotations

_HOME = "multiadvisor.envs.world_envs"


def environment_name(task: str) -> str:
    """What Gymnasium calls a task; a word without a vowel is an abbreviation.

    >>> environment_name("pac-boy"), environment_name("random-mdp")
    ('PacBoy', 'RandomMDP')
    """
    return "".join(word.capitalize() if set(word) & set("aeiouy") else word.upper() for word in task.split("-"))


def register(task: str, environment: str | None = None) -> None:
    """Make a task known to Gymnasium, as `multiadvisor/PacBoy-v0` and, with a vector reward, `mo-PacBoy-v0`.

    >>> import gymnasium, multiadvisor
    >>> gymnasium.make("multiadvisor/mo-TwoGoal-v0").unwrapped.reward_names
    ('goal 1', 'goal 2')
    """
    from gymnasium.envs.registration import register, registry

    if environment is not None:
        identifier = f"multiadvisor/{environment_name(task)}-v0"
        if identifier not in registry:
            register(id=identifier, entry_point=environment)
        return
    for prefix, kind in (("", ""), ("mo-", "MO")):
        identifier = f"multiadvisor/{prefix}{environment_name(task)}-v0"
        if identifier not in registry:  # Gymnasium warns of a name that is given twice
            register(
                id=identifier,
                entry_point=f"{_HOME}:{kind}WorldEnv",
                vector_entry_point=f"{_HOME}:{kind}WorldVectorEnv",
                disable_env_checker=kind == "MO",  # the checker takes every reward for a number
                kwargs={"task": task},
            )


def register_environments() -> None:
    """Make the environments that are no compiled worlds known to Gymnasium."""
    from gymnasium.envs.registration import register, registry

    if "multiadvisor/Negotiation-v0" not in registry:
        register(id="multiadvisor/Negotiation-v0", entry_point="multiadvisor.envs.worlds.negotiation:Negotiation")
