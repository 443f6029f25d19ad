"""Rules of the house that a reader would otherwise have to remember."""

import ast
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import multiadvisor
from agents import LEARNED
from multiadvisor.commands.benchmark import KINDS, measure_named
from multiadvisor.core.aggregations import AGGREGATIONS
from multiadvisor.core.compiling import INLINED

SOURCE = Path(multiadvisor.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
# Each layer may import itself and what stands before it.
LAYERS = [
    {"errors", "version", "core"},
    {"settings", "learners.kinds"},
    {"task", "learners.protocol", "learners.gvf.gvf_spec"},
    {"envs"},
    {"learners", "storage"},
    {"agent", "learners.ensembles"},
    {"analysis.theory"},
    {"explain", "analysis"},
    {"runs", "viz", "diagnosis"},
    {"studies"},
    {"explorer"},
    {"commands", "cli"},
]
HEAVY = {
    "matplotlib": {"plots.py"},
    "jax": {"backend.py"}, "optax": {"backend.py"},
    "torch": set(), "pickle": set(),
    "imageio_ffmpeg": {"video.py"}, "PIL": {"video.py", "pictures.py"},
    "starlette": {"server.py"}, "uvicorn": {"server.py"}, "websockets": set(),
    "yaml": set(), "marshal": set(),
    "ray": {"ray_engine.py"}, "optuna": {"search.py"}, "tensorboardX": {"tensorboard.py"},
    "pyarrow": {"sweep.py", "grid_sweep.py"},
}  # fmt: skip
# The one address in the sources: the paper, for readers of the report to follow. Nothing is ever loaded from there.
CITATION = "https://arxiv.org/abs/1704.00756"


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def imports(path):
    """The modules of all imports outside TYPE_CHECKING."""
    return list(imported(parsed(path)))


def imported(tree):
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            if node.module == "multiadvisor":
                yield from (f"multiadvisor.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"multiadvisor(\.[a-z_]+)+", str(node.value)):
            yield node.value  # a module that is imported by its name


def layer(name):
    parts = name.removeprefix("multiadvisor.").split(".")
    for size in range(len(parts), 0, -1):  # the longest name that is listed
        for depth, names in enumerate(LAYERS):
            if ".".join(parts[:size]) in names:
                return depth
    return None


# `Task.from_gymnasium`, `Task.initial_state`, `MultiAdvisor.explain` and `learn` are conveniences that look upwards,
# lazily; and a worker finds the work of an experiment's job by its name, as a learner is when a task is learned.
UPWARDS = {
    "task": {"envs.gymnasium_tasks", "envs.names", "envs.compiled_env"}, "runs.jobs": {"studies"},
    "agent": {"explain.explanation", "runs.training"}, "learners.kinds": {"learners"},
    "core.aggregations": {"learners.tabular.rules"},
}  # fmt: skip


def test_imports_point_one_way():
    wrong = []
    for path in MODULES:
        own = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if own.rpartition(".")[2] in ("__init__", "__main__"):
            continue
        for name in imports(path):
            if (name or "").startswith("multiadvisor.") and name[13:] not in UPWARDS.get(own, ()):
                assert layer(own) is not None, f"{own} stands in no layer"
                wrong += [f"{own} imports {name}"] if layer(name) > layer(own) else []
    assert wrong == []


def test_nothing_that_runs_foreign_code_or_loads_what_is_heavy():
    wrong = []
    for path in MODULES:
        text, where = path.read_text(), str(path.relative_to(SOURCE))
        for top in ((name or "").split(".")[0] for name in imports(path)):
            wrong += [f"{where} imports {top}"] if not {path.name, where} & HEAVY.get(top, {where}) else []
        for node in ast.walk(parsed(path)):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id
            wrong += [f"{where} calls {called}"] if called in {"eval", "exec", "compile", "__import__"} else []
        if path.name == "page.py":
            text = text.replace(f'PAPER_LINK = "{CITATION}"', "", 1)
        wrong += [f"{where} holds an address"] if re.search(r"https?://", text) else []
    assert wrong == []


def test_a_world_is_asked_by_its_answers_and_not_by_its_type_and_files_have_one_purpose():
    wrong = []
    for path in MODULES:
        text = path.read_text()
        kinds = re.findall(r"isinstance\([^()]*?(\w+Constants)\)", text)
        wrong += [f"{path.name} asks whether a world is of {kind}" for kind in kinds if f"class {kind}" not in text]
        wrong += [f"{path.name} is long"] if len(text.splitlines()) > 600 else []
    assert wrong == []


def test_a_file_and_a_class_have_a_name_of_their_own():
    files = Counter(path.name for path in MODULES if path.name != "__init__.py")
    classes = Counter(
        node.name for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in (files + classes).items() if count > 1] == []


def test_public_names_are_about_twenty_and_documented():
    assert len(multiadvisor.__all__) <= 32
    for name in multiadvisor.__all__:
        assert name == "__version__" or getattr(multiadvisor, name).__doc__
    with pytest.raises(AttributeError):
        multiadvisor.nothing_of_the_kind  # noqa: B018


KINDS_OF_LEARNER = re.compile(
    r"""settings\.(deep|continuous)\b | task\.continuous | task\.goals | bank_of | tables_of | _actor\( | \._learner\b
    | getattr\([\w.]*learner | (if|and|or|not)\ isinstance\([^)]*Learner\b""",
    re.VERBOSE,
)
# What a task is made of belongs to the task and to those who make and identify it; the agent has its one learner.
OWN_KINDS = {"agent.py": {"._learner"}, "task.py": {"task.goals"}, "core/identity.py": {"task.goals"}}


def test_nobody_branches_on_the_kind_of_a_learner():
    """Whoever needs to know asks the learner to decide, or what is registered of it: a new one is one folder."""
    for path in MODULES:
        where = str(path.relative_to(SOURCE))
        if not where.startswith("learners/"):
            found = {match.group(0) for match in KINDS_OF_LEARNER.finditer(path.read_text())}
            assert found <= OWN_KINDS.get(where, set()), f"{where} asks what kind of learner there is"


# What an aggregator learns is one file for each learner that learns it, and one line where it is registered; studies of
# the systems that have it name it, as a user would, and errors the keywords that were called so.
LEARNED_HERE = (
    "core/aggregations.py", "errors.py", "learners/tabular/rules/", "learners/dqn/own_output.py", "studies/",
    "analysis/theory/",  # which has the exact ones
)  # fmt: skip


def test_nobody_names_what_an_aggregator_learns():
    """Whoever needs to know asks its record (`core.learned`), so that a user's own is one file."""
    names = {one for name in LEARNED for one in (name, AGGREGATIONS[name].learned.added)} - {""}
    named = re.compile("|".join(rf"(?<![a-z]){name}(?![a-z])" for name in names), re.IGNORECASE)
    wrong = []
    for path in MODULES:
        where = str(path.relative_to(SOURCE))
        if where.startswith(LEARNED_HERE):
            continue
        with path.open("rb") as file:
            tokens = list(tokenize.tokenize(file.readline))
        words = [token.string for token in tokens if token.type in (tokenize.NAME, tokenize.STRING)]
        wrong += [f"{where} names {word}" for word in words if " " not in word and named.search(word)]
    assert wrong == []


def test_an_edit_of_whatever_is_inlined_voids_the_compile_cache():
    """What the compiled loops' modules import and what is itself to be inlined is in the list of the cache."""
    decorated = re.compile(r"^\s*@(compiled|inside|called)$", re.MULTILINE)
    listed = [SOURCE / f"{name}.py" for name in INLINED]
    for path in [*listed, SOURCE / "learners" / "tabular" / "rules" / "update_rules.py"]:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("multiadvisor"):
                folder = SOURCE.joinpath(*node.module.split(".")[1:])
                for other in (folder.with_suffix(".py"), *(folder / f"{alias.name}.py" for alias in node.names)):
                    inlined = other.is_file() and decorated.search(other.read_text())
                    assert not inlined or other in listed, f"{path.name} may inline {other.name}: add it to INLINED"


def test_the_benchmarks_that_are_listed_are_those_there_are():
    listed = {}
    for name, (module, _) in KINDS.items():
        listed.setdefault(module, []).append(name)
    for module, names in listed.items():
        assert list(measure_named(module).BENCHMARKS) == names
    there = {path.stem for path in (SOURCE.parents[1] / "benchmarks" / "measures").glob("[a-z]*.py")}
    assert there == set(listed)
