"""Tasks from Gymnasium environments, by name or from one's own, and back: which environment it is, as plain data.

What `make("CartPole-v1", ...)` takes as options is all that a task of plain data consists of: arguments of the
environment, its limit, wrappers, advisors and bins. So the options found here for an environment of one's own are what
a checkpoint needs to make it again; where there is something else in it, the reason why it cannot be is kept instead.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from multiadvisor.core.identity import NotPlain, advisor_data, known, plain
from multiadvisor.core.optional_dependencies import lacking, missing
from multiadvisor.envs.adapter import CONTINUOUS, Adapter
from multiadvisor.envs.info_terms import first_info, found_advisors, key_of, term
from multiadvisor.envs.names import action_names, component_names, observation_names, reward_components
from multiadvisor.envs.presets import GYMNASIUM
from multiadvisor.envs.registry import FOR_RUNS, OPTIONS, PREFIX, TASKS, defaults_of, own_options
from multiadvisor.envs.spaces import Bins
from multiadvisor.envs.step import wrappers_of
from multiadvisor.errors import BadInput, neighbour, short, similar, unknown
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import REMAINDER, Advisor, Task, check_advisors

DEFAULT_LIMIT = 10_000
"""Steps after which episodes are cut off where the environment names no limit: its greedy player may be stuck for
ever."""
WRAPPERS = (
    "TimeLimit", "ClipReward", "FlattenObservation", "FrameStackObservation", "GrayscaleObservation",
    "MaxAndSkipObservation", "RescaleObservation", "ReshapeObservation", "ResizeObservation", "TimeAwareObservation",
    "AtariPreprocessing",
)  # fmt: skip
"""Wrappers of Gymnasium that are put on again by name: they follow from their arguments, and write no files."""
_IDLE = ("PassiveEnvChecker", "OrderEnforcing")  # these change nothing of the task
_WITHOUT_EFFECT = ("render_mode",)


# ---- an environment as data ------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class _Layers:
    """An environment taken apart."""

    base: Any
    usual: dict[str, Any]
    """Arguments of the base environment as it is registered, and as its constructor has them, and ..."""
    arguments: dict[str, Any]
    """... what this one was made with."""
    wrappers: list[tuple[Any, dict[str, Any] | None]]
    """The wrappers that matter, from the inside, with their arguments; None where they keep no record of them."""


def _layers(env: Any) -> _Layers:
    import gymnasium

    around, wrappers = wrappers_of(env), list[tuple[Any, dict[str, Any] | None]]()
    env = around[-1].env if around else env
    for wrapper in reversed([wrapper for wrapper in around if type(wrapper).__name__ not in _IDLE]):
        given = getattr(wrapper, "_saved_kwargs", None)  # Gymnasium's own record, RecordConstructorArgs
        wrappers.append((wrapper, given if given is None else {k: v for k, v in given.items() if k != "env"}))
    spec = getattr(env, "spec", None)
    registered = None if spec is None else gymnasium.registry.get(spec.id)
    usual = _defaults(type(env)) | ({} if registered is None else registered.kwargs)
    usual, given = ({k: v for k, v in part.items() if k not in _WITHOUT_EFFECT}
                    for part in (usual, {} if spec is None else spec.kwargs))  # fmt: skip
    arguments = {} if spec is None else usual | given
    inner = getattr(env, "task", None)
    if isinstance(inner, Task):  # our own worlds as environments: what a file holds counts, and not its name
        arguments |= {name: inner.options[name] for name in arguments if name in inner.options}
    return _Layers(env, usual, arguments, wrappers)


def _defaults(kind: type) -> dict[str, Any]:
    """The defaults of a constructor, where it shows them."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def described(env: Any) -> dict[str, Any]:
    """All that can be known of an environment: id, arguments, wrappers. What is no plain data stands as its kind.

    >>> import gymnasium
    >>> described(gymnasium.make("CliffWalking-v1", max_episode_steps=200))["wrappers"]
    [['TimeLimit', {'max_episode_steps': 200}]]
    """
    if hasattr(env, "single_action_space"):
        episodes = getattr(env.unwrapped, "envs", None)
        return {"episodes": int(env.num_envs), "each": described(episodes[0]) if episodes else None}
    layers = _layers(env)
    spec = getattr(layers.base, "spec", None)
    return {
        "id": None if spec is None else spec.id,
        "class": type(layers.base).__name__,
        "arguments": {name: known(value) for name, value in layers.arguments.items()},
        "wrappers": [
            [type(wrapper).__name__, None if given is None else {name: known(value) for name, value in given.items()}]
            for wrapper, given in layers.wrappers
        ],
    }


def _environment_options(env: Any) -> dict[str, Any]:
    """The options that make this environment again; NotPlain where there are none."""
    import gymnasium

    if hasattr(env, "single_action_space"):
        raise NotPlain("it is a vector environment")
    layers = _layers(env)
    spec = getattr(layers.base, "spec", None)
    if spec is None:
        raise NotPlain("its environment is not registered with Gymnasium")
    registered = gymnasium.registry.get(spec.id)
    if registered is None:
        raise NotPlain(f"its environment {spec.id!r} is no longer registered")
    options = {}
    for name, value in layers.arguments.items():
        if name in layers.usual and known(value) == known(layers.usual[name]):
            continue
        if name in OPTIONS or isinstance(value, tuple):
            raise NotPlain(f"the argument {name!r} of its environment cannot be given as an option")
        options[name] = plain(value, f"the argument {name!r} of its environment")
    wrappers = [(type(wrapper).__name__, type(wrapper), given) for wrapper, given in layers.wrappers]
    limit = -1
    if wrappers and wrappers[0][0] == "TimeLimit":
        limit = (wrappers.pop(0)[2] or {}).get("max_episode_steps", -1)
    if limit != (registered.max_episode_steps or -1) or (limit == -1 and _may_never_end(env)):
        options["max_episode_steps"] = limit
    before = [wrapper.name for wrapper in registered.additional_wrappers]
    if before == [name for name, _, _ in wrappers[: len(before)]]:
        wrappers = wrappers[len(before) :]
    for name, kind, given in wrappers:
        if given is None or name not in WRAPPERS or kind is not getattr(gymnasium.wrappers, name, None):
            raise NotPlain(f"its environment is wrapped in {name}")
        arguments = {k: plain(v, f"the argument {k!r} of its wrapper {name}") for k, v in given.items()}
        options.setdefault("wrappers", []).append([name, arguments])
    return options


def _advisor_options(advisor: Advisor) -> dict[str, Any]:
    """An advisor as data, without what is as usual; functions are refused."""
    data = advisor_data(advisor)
    for name, value in data.items():
        if isinstance(value, dict) and "bins" not in value:
            kind = value.get("kind", "array")
            more = "" if kind == "function" else ", which is no plain data"
            raise NotPlain(f"the {name} of its advisor {advisor.name!r} is a {kind}{more}")
    return data if advisor.weight == 1.0 else {**data, "weight": float(advisor.weight)}


_PLAIN: dict[str, tuple[type, ...]] = {
    "reward": (int, str), "states": (int,), "weight": (int, float), "gamma": (int, float), "alpha": (int, float),
    "planning": (str,), "table": (str,), "group": (str,), "name": (str,), "state": (int, list, dict),
}  # fmt: skip
"""What the fields of an advisor of plain data may be."""


def _advisor_from(data: Any, space: Any) -> Advisor:
    """An advisor of plain data."""
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise BadInput(f"an advisor is {short(repr(data))}: give a table with its name")
    advisor = Advisor(**data)  # which refuses unknown fields
    for name, value in data.items():
        fits = not isinstance(value, bool) and isinstance(value, _PLAIN.get(name, ()))
        if isinstance(value, dict):
            fits = fits and list(value) == ["bins"] and isinstance(value["bins"], str)
        if isinstance(value, list):
            fits = fits and all(type(k) is int for k in value)
        if not fits:
            raise BadInput(f"the {name} of advisor {short(data['name'])!r} is {short(repr(value))}: that cannot be")
    state = data.get("state")
    if isinstance(state, dict | list):
        state = Bins.parse(state["bins"], space) if isinstance(state, dict) else tuple(state)
        advisor = dataclasses.replace(advisor, state=state)
    check_advisors([advisor])
    return advisor


def _task_options(
    env: Any, advisors: Sequence[Advisor], discretise: Callable[[Any], Hashable] | None
) -> tuple[dict[str, Any], str]:
    """The options that make the task again, and an empty text; or none, and why that cannot be."""
    try:
        options = _environment_options(env)
        if isinstance(discretise, Bins):
            options["bins"] = str(discretise)
        elif discretise is not None:
            raise NotPlain("its discretise= is a function")
        data = [_advisor_options(advisor) for advisor in advisors]
    except NotPlain as reason:
        return {}, str(reason)
    usual = component_names(env)
    if data == [{"name": advisor.name, "reward": k} for k, advisor in enumerate(advisors)] and len(data) == len(usual):
        if [advisor.name for advisor in advisors] != usual:
            options["components"] = [advisor.name for advisor in advisors]
    elif usual or data != [{"name": "reward"}]:
        options["advisors"] = data
    return options, ""


# ---- making ----------------------------------------------------------------------------------------------------------
def _not_made(identifier: str, error: Exception) -> BadInput:
    """Why there is no such environment; where MO-Gymnasium is missing it may be one of those."""
    import gymnasium

    why = f"no environment {short(identifier)!r} can be made"
    reason = short(str(error).partition("\n")[0], 200)
    absent = missing("mo")
    if "mo_gymnasium" in absent and isinstance(error, gymnasium.error.UnregisteredEnv):
        reason = "" if identifier.startswith("mo-") else f"{reason.rstrip('.')}; and "
        return BadInput(f"{why}: {reason}{lacking('mo')}")
    if "Box2D" in absent and isinstance(error, gymnasium.error.DependencyNotInstalled) and "Box2D" in reason:
        return BadInput(f"{why}: {lacking('mo')}")
    if missing("mujoco") and isinstance(error, gymnasium.error.DependencyNotInstalled) and "mujoco" in reason.lower():
        return BadInput(f"{why}: {lacking('mujoco')}")
    plain = {name.lower(): name for name in gymnasium.registry}
    if identifier.lower() in plain:
        return BadInput(f"{why}: did you mean {plain[identifier.lower()]!r}?")
    if Path(identifier, "agent.json").is_file():
        return BadInput(f"{short(identifier)!r} is the folder of a run, and no environment: {FOR_RUNS}")
    module, colon, name = identifier.rpartition(":")
    if colon and Path(f"{module.replace('.', '/')}.py").is_file():
        return BadInput(f"{why}: nothing is registered as {name!r}; what a file names is {module}.py:{name}")
    if isinstance(error, gymnasium.error.NameNotFound | gymnasium.error.NamespaceNotFound):
        reason += f" If a module registers it, MODULE:{short(identifier)} imports that first"
    return BadInput(f"{why}: {reason}")


def limit_note(name: str) -> str:
    """What to say where an environment has no limit, and was given one."""
    return (
        f"{name} has no step limit of its own: episodes are cut off after {DEFAULT_LIMIT:,} steps; max_episode_steps "
        "(--max-episode-steps) sets another limit"
    )


def make_environment(identifier: str, /, **options: Any) -> tuple[Any, str]:
    """A registered environment with its limit and wrappers, and what there is to say of it."""
    import gymnasium

    if identifier not in gymnasium.registry:
        with contextlib.suppress(ImportError):
            import mo_gymnasium  # noqa: F401

    wrappers, limit = options.pop("wrappers", []), options.pop("max_episode_steps", None)
    if limit is not None and limit != -1:
        limit = whole_number("max_episode_steps", limit, 1)
    note, (file, _, named) = "", identifier.rpartition(":")
    if file.endswith(".py"):
        raise BadInput(f"{identifier!r} is how the command line names it: here, import {named} and give {named}()")

    def made(limit: int | None) -> Any:
        return gymnasium.make(identifier, limit, **{"disable_env_checker": True, **options})

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what an environment has to say of its own spaces helps nobody here
            env = made(limit)
            spec = env.spec
            if limit is None and spec is not None and spec.max_episode_steps is None and _may_never_end(env):
                env.close()
                env = made(DEFAULT_LIMIT)
                note = limit_note(identifier)
    except gymnasium.error.Error as error:
        raise _not_made(identifier, error) from None
    except TypeError as error:
        for name in options:
            if neighbour(name, OPTIONS):
                raise unknown("option", name, OPTIONS) from None
            if name in {item.name for item in dataclasses.fields(Settings)}:
                raise BadInput(f"{name} is a setting of the agent: MultiAdvisor(..., {name}=...)") from None
            if (takes := own_options(identifier)) and name not in takes and similar(name, takes):
                raise unknown(f"option of environment {identifier!r}:", name, takes) from None
        words = short(str(error).partition(" was raised from")[0], 200)
        raise BadInput(f"environment {short(identifier)!r} does not take these options: {words}") from None
    except Exception as error:  # whatever its own code, or a package it misses, may raise
        words = f"{type(error).__name__}: {short(str(error), 200)}"
        raise BadInput(f"environment {short(identifier)!r} cannot be made: {words}") from None
    for wrapper in wrappers if isinstance(wrappers, list | tuple) else [wrappers]:
        env = _wrapped(env, wrapper)
    return env, note


def _may_never_end(env: Any) -> bool:
    """Not so for our own worlds, whose tasks have limits."""
    return not isinstance(getattr(env.unwrapped, "task", None), Task)


def _wrapped(env: Any, wrapper: Any) -> Any:
    import gymnasium

    try:
        if not isinstance(wrapper, list | tuple):
            raise BadInput(
                f"the wrapper {short(repr(wrapper))} is no pair such as ('ClipReward', {{'max_reward': 1.0}}): give "
                "one, or the environment wrapped by yourself"
            )
        name, arguments = wrapper
        if name not in WRAPPERS:
            raise unknown("wrapper", name, WRAPPERS)
        as_given = {k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()}
        return getattr(gymnasium.wrappers, name)(env, **as_given)
    except BadInput:
        raise
    except Exception as error:  # a wrapper's own complaint, or no pair at all
        words = f"{type(error).__name__}: {short(str(error), 200)}"
        raise BadInput(f"the wrapper {short(repr(wrapper))} cannot be put on: {words}") from None


def _given_advisors(env: Any, given: Any, remainder: bool) -> list[Advisor] | None:
    """Advisors from what was given: advisors, tables of plain data, and texts that name terms in info; None where
    nothing was.

    A step is made where a term is named, so that what is not there is known before anything is learned.
    """
    if given is None:
        if remainder:
            raise BadInput(
                "remainder is what the advisors leave of the reward, and none are given: give advisors='info:reward_*'"
            )
        return None
    if isinstance(given, Mapping):  # rewards by the advisors' names
        fields = {name: what if isinstance(what, Mapping) else {"reward": what} for name, what in given.items()}
        given = [Advisor(name, **own) for name, own in fields.items()]
    if not isinstance(given, Iterable) or isinstance(given, set | frozenset):  # sets have another order in each process
        raise BadInput(
            f"advisors are {short(repr(given))}: give rewards by name, a list of advisors, or 'info:reward_*'"
        )
    parts = given.split(",") if isinstance(given, str) else list(given)
    space = getattr(env, "single_observation_space", env.observation_space)
    own = {name: Advisor(name, reward=k) for k, name in enumerate(component_names(env))}
    parts = [part if isinstance(part, Advisor | str) else _advisor_from(part, space) for part in parts]
    parts = [own.get(part.strip(), part) if isinstance(part, str) else part for part in parts]
    info = first_info(env) if any(isinstance(part, str) or key_of(part.reward) for part in parts) else {}
    advisors: list[Advisor] = []
    taken: dict[Any, Advisor | str] = {}  # terms, and the first pattern or advisor that takes each
    for part in parts:
        found = found_advisors(part.strip(), info) if isinstance(part, str) else [part]
        for advisor in found:
            if key := key_of(advisor.reward):
                term(advisor, key, info)
                first = taken.setdefault(advisor.reward, part)
                if first is not part and (isinstance(first, str) or isinstance(part, str)):
                    both = [one.strip() if isinstance(one, str) else f"advisor {one.name!r}" for one in (first, part)]
                    raise BadInput(
                        f"the term {advisor.reward} would be paid twice, by {both[0]} and by {both[1]}: let one of "
                        "them take it"
                    )
        advisors += found
    return [*advisors, Advisor("remainder", reward=REMAINDER)] if remainder else advisors


def _names(env: Any, adapter: Adapter) -> tuple[str, ...]:
    """Of the actions: the environment's own names of all of them, or those of several choices at once."""
    names = action_names(env, adapter.actions, adapter.first_action, adapter.box is not None)
    return names if adapter.several is None or names[0] != "action 0" else adapter.several.names


def task_from_gymnasium(
    env: Any, advisors: Any, name: str | None, discretise: Callable[[Any], Hashable] | None, remainder: bool,
    components: Any, bins: Any, options: dict[str, Any],
) -> Task:  # fmt: skip
    """See `Task.from_gymnasium`."""
    if advisors is not None and components is not None:
        raise BadInput("the task has advisors and components as well: give one of them")
    if not isinstance(remainder, bool):
        raise BadInput(f"remainder is {short(repr(remainder))}: give true or false")
    if bins is not None and discretise is not None:
        raise BadInput("the task has bins and discretise= as well: give one of them")
    by_name, note = env.removeprefix(PREFIX) if isinstance(env, str) else None, ""
    if by_name is not None:
        env, note = make_environment(by_name, **options)
    elif options:
        option = short(next(iter(options)))
        limits = option == "max_episode_steps"
        how = "wrap this one in gymnasium.wrappers.TimeLimit" if limits else "make this one with it"
        raise BadInput(f"option {option!r} is for an environment given by its name: {how}")
    _check_spaces(env)
    given = advisors if components is None else _component_advisors(env, components)
    discretise = discretise if bins is None else _bins(bins, env)
    chosen = _given_advisors(env, given, remainder)
    if chosen is None:
        names = component_names(env)
        chosen = [Advisor(part, reward=k) for k, part in enumerate(names)] or [Advisor("reward")]
    check_advisors(chosen)
    adapter = Adapter(env, chosen, discretise)
    if adapter.box is not None and discretise is not None and adapter.refusal is not None:
        raise adapter.refusal
    adapter.made_here = by_name is not None
    spec = env.spec or getattr(env.unwrapped, "spec", None)
    data, by_hand = _task_options(env, chosen, discretise)
    named = by_name or (None if spec is None else spec.id)
    if name is None and named is None:
        name = "vector environment" if adapter.vector else type(env.unwrapped).__name__
    called = f"{PREFIX if named in TASKS else ''}{named}"
    return Task(
        name=name or called, maker="" if by_hand else called, by_hand=by_hand, note=note, actions=_names(env, adapter),
        observation_names=observation_names(env), advisors=tuple(chosen), adapter=adapter, options=data,
        known={"environment": described(env), "discretise": known(discretise)},
        defaults=GYMNASIUM if named is None else defaults_of(called),
    )  # fmt: skip


def _check_spaces(env: Any) -> None:
    """Refuse an environment that does not say what its actions and observations are."""
    from gymnasium import Space

    for name in ("action_space", "observation_space"):
        if not isinstance(getattr(env, name, None), Space):
            raise BadInput(f"{type(env.unwrapped).__name__} has no {name}: set it to a space of gymnasium.spaces")


def _bins(bins: Any, env: Any) -> Bins:
    """As they were given; where no bins would do, that comes before anything of these."""
    from gymnasium import spaces

    if isinstance(env.action_space, spaces.Box):
        raise BadInput(CONTINUOUS)
    text = ",".join(map(str, bins)) if isinstance(bins, list | tuple) else str(bins)
    return bins if isinstance(bins, Bins) else Bins.parse(text, env.observation_space)


def _component_advisors(env: Any, components: Any) -> list[Advisor]:
    if isinstance(components, str) or not all(isinstance(part, str) and part for part in components):
        raise BadInput(f"components are {short(repr(components))}: give a list of names")
    count = reward_components(env)
    if len(components) != count:
        kind = f"a vector of {count}" if count else "a number"
        raise BadInput(f"{len(components)} components were named, but the environment's reward is {kind}")
    return [Advisor(part, reward=k) for k, part in enumerate(components)]
