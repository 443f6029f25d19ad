"""What a checkpoint says of an agent, checked before anything is made of it: its task, its settings, its record."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.core.aggregator import unregistered
from multiadvisor.core.identity import difference, only_in_weights, other_task, same
from multiadvisor.core.validation import Arrays
from multiadvisor.envs.registry import PREFIX, TASKS, checked_options, environment_id, make
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.kinds import LEARNERS
from multiadvisor.settings import Settings, described
from multiadvisor.storage.checkpoint import read_checkpoint
from multiadvisor.task import BY_ADVISOR, Task

IMPORT_IT = "import the file that registers it first, on the command line with --import FILE.py"
_FIELDS: dict[str, type] = {
    "format": int, "kind": str, "version": str, "task": dict, "settings": object, "steps": object, "record": dict,
    "values": dict,
}  # fmt: skip
_TASK_FIELDS = {"name": str, "maker": str, "by_hand": str, "options": dict, "identity": dict}


class SavedAgent(NamedTuple):
    """A checkpoint whose parts are of the kinds that they should be."""

    folder: Path
    task: dict[str, Any]
    """As `Task.as_data` gave it."""
    settings: Settings
    steps: int
    record: dict[str, Any]
    tensors: Arrays

    def refuse(self, reason: str) -> BadInput:
        """An error that names the folder."""
        return _refused(self.folder, reason)

    def task_again(self, named: str | None) -> Task:
        """The task, made from its data. Only a user who names it himself gives leave to import a module."""
        name, maker, data = self.task["name"], self.task["maker"], dict(self.task["options"])
        if named is not None and not {named, named.removeprefix(PREFIX)} & {name, maker}:
            raise self.refuse(f"is of task {short(maker or name)!r} and not of {named.removeprefix(PREFIX)!r}")
        if not maker:
            raise self.refuse(
                f"was made for task {short(name)!r}, which cannot be recreated from data, as "
                f"{short(self.task['by_hand'], 200)}: give task= (--task FILE.py:NAME)"
            )
        if environment_id(maker) is None and maker not in TASKS:
            raise self.refuse(f"was made for task {short(maker)!r}, which is not registered here: {IMPORT_IT}")
        own = {what: data.pop(what) for what in BY_ADVISOR if what in data}
        try:
            modules = named is not None and maker in (named, named.removeprefix(PREFIX))
            task = make(maker, **checked_options(maker, data, modules), **own)
        except (BadInput, TypeError) as error:
            raise BadInput(
                f"the task of the checkpoint {str(self.folder)!r} cannot be recreated: {short(str(error), 300)}"
            ) from None
        if not same(self.task["options"], task.options) or self.task["by_hand"]:
            differing = difference(self.task["options"], task.options) or "it says that it cannot be made from them"
            raise BadInput(
                f"the options in the checkpoint {str(self.folder)!r} are not as its task has them: {differing}"
            )
        return dataclasses.replace(task, name=name)

    def task_in(self, env: Any) -> Task:
        """The task with an environment of the user's, where its advisors are plain data."""
        data, options = self.task["identity"], dict[str, Any]()
        with contextlib.suppress(AttributeError, KeyError, TypeError):  # of a file that says nothing of the kind
            options["advisors"] = [{**one, "weight": data["weights"][one["name"]]} for one in data["advisors"]]
            options["bins"] = data["known"]["discretise"]["bins"]
        if not any("kind" in str(one) for one in options.get("advisors", ())):
            return make(env, **options)
        raise self.refuse("has advisors with functions: give the task, load(folder, mad.make(env, advisors=...))")

    def differs_in_weights(self, task: Task, reweight: bool | None) -> bool:
        """Whether a task differs from the saved one in its weights, and may; any other task is refused."""
        reweighted = reweight is not False and only_in_weights(self.task["identity"], task.identity)
        if differing := other_task(self.task, task, reweighted):
            raise self.refuse(
                f"was made for task {short(self.task['name'])!r} with other advisors, weights or options than the "
                f"given {short(task.name)!r} ({differing}): load it with the task it was made for"
            )
        return reweighted


def read_agent(folder: Path) -> SavedAgent:
    """Load, or say what is wrong."""
    header, tensors = read_checkpoint(folder)
    for part, fields in ((header, _FIELDS), (header.get("task", {}), _TASK_FIELDS)):
        if {*part} != {*fields}:
            raise _refused(folder, f"lacks or misnames a field: {short(sorted({*part} ^ {*fields})[0])!r}")
        for name, kind in fields.items():
            if not isinstance(part[name], kind):
                raise _refused(folder, f"holds no valid {name}: restore it from a copy")
    settings = settings_of(folder, header["settings"])
    return SavedAgent(folder, header["task"], settings, header["steps"], header["record"], tensors)


def settings_of(folder: Path, settings: Any) -> Settings:
    """The settings in a checkpoint, in full; what is not registered here is named, with the way out."""
    whose = f"the settings in the checkpoint {str(folder)!r} are"
    if not isinstance(settings, dict):
        raise BadInput(f"{whose} no table: restore it from a copy")
    try:
        lacking = unregistered(settings) or _unregistered_learner(settings)
        found: Settings | None = None if lacking else described(Settings, settings, {})
    except BadInput as error:
        raise BadInput(f"{whose} not those of an agent: {error}") from None
    if found is None:
        raise _refused(folder, f"was made with {lacking}, which is not registered here: {IMPORT_IT}")
    if differing := difference(settings, dataclasses.asdict(found)):
        raise BadInput(f"{whose} not as an agent has them: {differing}")
    return found


def _unregistered_learner(settings: dict[str, Any]) -> str | None:
    """The learner of these settings, read from a file, where it is not registered here."""
    given = settings.get("learner")
    name = given.get("name") if isinstance(given, dict) else None
    return f"the learner {short(name)!r}" if isinstance(name, str) and name not in LEARNERS else None


def _refused(folder: Path, reason: str) -> BadInput:
    return BadInput(f"the checkpoint {str(folder)!r} {reason}")
