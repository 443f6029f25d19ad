"""The documents cannot go stale: their programs run, print what they say, and their links lead somewhere.

A block of Python that is followed at once by a block of text prints exactly that text. The blocks of one document are
one program, as a reader would type them one after the other.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import forks

ROOT = Path(__file__).resolve().parents[1]
AT_THE_ROOT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
DOCUMENTS = [*(ROOT / name for name in AT_THE_ROOT), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = {
    "01_pac_boy.py": ["77 advisors", "bit for bit? True"],
    "02_own_environment.py": ["no defect found in task 'courier'", "100% terminated", "121"],
    "03_attractor.py": ["0.49  0.7253  0.7253  0.7203  0.7253   N      100%",
                        "0.51  0.7753  0.7753  0.7803  0.7753   S        0%"],
    "04_compiled_world.py": ["no defect found in task 'warehouse'", "100% terminated"],
    "05_will_it_get_stuck.py": ["gamma 0.45  attractor at the start: unstable  says: goes on  finished: 100%",
                                "gamma 0.90  attractor at the start: unstable  says: stuck    finished:   0%",
                                "0.50          9.4%          0.0%            0.0%",
                                "empathic   at gamma 0.9: compromise"],
    "06_why_did_it_do_that.py": ["finished, replayed exactly", "not finished, replayed exactly",
                                 "its last 100 steps are spent in (5, 5); 100 of them in an attractor"],
    "09_your_own_planning.py": ["egocentric  sum                0%", "soft        max              100%",
                                "soft        approval"],
    "07_deep_advisors.py": ["main engine", "an episode, before its weight 0.3", "what speaks for "],
    "10_hopper.py": ["('forward', 'ctrl', 'survive') 3 episodes", "of all the pushing", "effort ten times as "
                                                                                        "expensive"],
    "11_mixed_learners.py": ["before: 9 steps", "more than 100"],
    "12_diagnose.py": ["torque hardly matters", "drop it, or raise its weight"],
    "08_own_loop.py": ["30000 transitions observed; 20 episodes: score -13.00", "loaded, it has observed 30000"],
}  # fmt: skip
MARK = "---- end of a block ----"
NEEDS = {"mo_gymnasium": "mo_gymnasium", "Hopper": "mujoco"}  # what no other test needs may be missing
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A program, and what it should print (None: not said)."""

    line: int
    code: str
    output: str | None


def blocks(document: str) -> list[Block]:
    fences = [(match.group(1), match.group(2), match.start(), match.end()) for match in _FENCE.finditer(document)]
    found = []
    for k, (language, body, start, end) in enumerate(fences):
        if language == "python":
            follows = (
                k + 1 < len(fences) and fences[k + 1][0] == "text" and not document[end : fences[k + 1][2]].strip()
            )
            found.append(Block(document.count("\n", 0, start) + 1, body, fences[k + 1][1] if follows else None))
    return found


def run(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    # Gymnasium warns about its own spaces
    return forks.run([script], folder, PYTHONWARNINGS="ignore")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_example_runs(name: str, tmp_path: Path) -> None:
    if "Hopper" in (ROOT / "examples" / name).read_text():
        pytest.importorskip("mujoco")  # some 100 MB that no other test needs
    done = run(ROOT / "examples" / name, tmp_path)
    assert done.returncode == 0, done.stderr
    for part in EXAMPLES[name]:
        assert part in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", [d for d in DOCUMENTS if blocks(d.read_text("utf-8"))], ids=lambda path: path.name)
def test_programs_print_what_the_document_says(path: Path, tmp_path: Path) -> None:
    programs = blocks(path.read_text("utf-8"))
    for sign, module in NEEDS.items():
        if importlib.util.find_spec(module) is None:
            absent = {"code": "import gymnasium\n\nimport multiadvisor as mad\n", "output": None}
            programs = [block._replace(**absent) if sign in block.code else block for block in programs]
    script = tmp_path / "document.py"
    script.write_text("".join(f"{b.code}\nprint({MARK!r})\n" for b in programs), "utf-8")
    done = run(script, tmp_path)
    assert done.returncode == 0, f"a program of {path.name} fails:\n{done.stderr}"
    printed = done.stdout.split(MARK + "\n")
    assert len(printed) == len(programs) + 1
    for block, output in zip(programs, printed, strict=False):
        if block.output is not None:
            assert output == block.output, f"{path.name}, line {block.line}: the program prints something else"


def test_links_lead_somewhere() -> None:
    links = [(path, target) for path in DOCUMENTS for target in _LINK.findall(_FENCE.sub("", path.read_text("utf-8")))]
    for path, target in links:
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.is_file(), f"{path.name} links to {target}, which does not exist"
        assert file.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(file.read_text("utf-8")), f"{path.name}: {name} has no heading for #{anchor}"


def anchors(document: str) -> set[str]:
    """The headings' anchors, as they are made where the documents are shown."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def maker(name: str) -> Any:
    """The program in docs/ that makes a page, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(document: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    return document.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_readme_installs_before_its_first_program() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    first = text.index("```python")
    assert 0 < text.index("source .venv/bin/activate") < text.index("make setup") < first


def test_what_is_set_up_runs_every_section_of_the_readme_or_the_section_names_the_extra() -> None:
    needs = {"multiadvisor explore": "explorer", "--learner dqn": "deep", "gymnasium:mo-": "mo", "Ray": "ray",
             "multiadvisor reproduce": "video", "sweep plot": "plots"}  # fmt: skip
    make, text = (ROOT / "Makefile").read_text("utf-8"), (ROOT / "README.md").read_text("utf-8")
    recipe = make.partition("installed-reproduce: ")[2].partition("touch")[0]
    installed = re.search(r"--editable '\.\[([\w,]+)\]'", recipe)
    assert installed is not None
    for heading in re.findall(r"^## (.+)$", text, re.MULTILINE):
        body = section(text, heading)
        for sign, extra in needs.items():
            if sign in body and heading != "Where to go next":
                assert extra in installed[1].split(",") or f"extra `{extra}`" in body, f"{heading} needs {extra}"


def test_the_readme_fits_on_three_screens() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 3 * 45


def test_marks_for_figures_stand_where_the_report_puts_them() -> None:
    places = {
        "README.md": ["verdicts"],
        "docs/results.md": ["verdicts", "dqn", "results", "tail", "linear", "mazes", "value-function-default"],
        "docs/the-paper-checked.md": ["claims"],
    }
    for path, names in places.items():
        text = (ROOT / path).read_text("utf-8")
        for name in names:
            assert len(re.findall(rf"<!-- {name}: .*? -->\n.*?<!-- end of {name} -->", text, re.DOTALL)) == 1


@pytest.mark.slow
def test_the_grid_of_the_documents_is_the_example_and_gives_what_is_shown(tmp_path: Path) -> None:
    body = section((ROOT / "docs" / "from-one-machine-to-many.md").read_text("utf-8"), "A grid of Pac-Boy")
    [grid] = [text for language, text in _FENCE.findall(body) if language == "toml"]
    [shown] = [text for language, text in _FENCE.findall(body) if language == "console"]
    assert grid == (ROOT / "examples" / "grid.toml").read_text("utf-8")
    done = forks.run(["-m", "multiadvisor", "sweep", ROOT / "examples" / "grid.toml", "--workers", 2], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown.partition("\n")[2].partition("$ ")[0]


def test_the_maze_of_the_documents_is_the_example_and_every_symbol_is_explained() -> None:
    from multiadvisor.envs.worlds.board import SYMBOLS, parse_maze

    text, maze = (ROOT / "docs" / "mazes.md").read_text("utf-8"), (ROOT / "examples" / "maze.txt").read_text("utf-8")
    assert f'"""\\\n{maze}"""' in text
    assert [line[3] for line in text.splitlines() if re.match(r"\| `.` \|", line)] == list(SYMBOLS)
    assert "`.` beside\nan `F` holds none" in text
    fixed = parse_maze(maze.replace("...#..G", "F..#..G"))
    assert [fixed.name(cell) for cell in fixed.fruit] == ["(4, 0)"], "as the document says"


def test_images_are_small() -> None:
    images = list((ROOT / "docs" / "images").iterdir())
    assert images
    for image in images:
        largest = {".png": 300_000, ".webp": 60_000, ".gif": 2_000_000}
        assert image.suffix in largest
        assert image.stat().st_size < largest[image.suffix]


def test_documents_name_no_place_of_one_machine() -> None:
    for path in [*DOCUMENTS, *(ROOT / "examples").glob("*.py")]:
        found = re.findall(r"(?<![\w.:])/(?:work|tmp|home|root|Users)/\S*", path.read_text("utf-8"))
        assert not found, f"{path.name} names {found[0]}"


def test_every_planning_and_aggregation_is_explained() -> None:
    from multiadvisor.learners.tabular.switch import SHIPPED_AGGREGATIONS, SHIPPED_PLANNINGS

    text = (ROOT / "docs" / "plannings-and-aggregations.md").read_text("utf-8")
    for heading, known in (("The plannings", SHIPPED_PLANNINGS), ("The aggregations", SHIPPED_AGGREGATIONS)):
        listed = re.findall(r"^\| `(\w+)(?::\w)?` \|", section(text, heading), re.MULTILINE)
        assert listed == [one.name for one in known]


def test_citation_names_this_version_and_the_paper() -> None:
    from multiadvisor.version import VERSION

    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {VERSION}\n" in text
    assert re.findall(r"family-names: (.+)", text) == ["Laroche", "Fatemi", "Romoff", "van Seijen"]
    assert 'title: "Multi-Advisor Reinforcement Learning"' in text


SHELL = ("multiadvisor ", "make ", "pip ", "git ", "python ", "python3 ", "ray ", "JAX_PLATFORMS=")
_UNTRIED = r"(?:<!-- not run: ([^\n]+) -->\n\n?)?"
_FENCED, _INDENTED = r"^```(?:sh|bash)\n(.*?)^```$", r"((?:^ {4}[^\n]*\S[^\n]*\n)+)"
_SHELL_BLOCK = re.compile(rf"{_UNTRIED}(?:{_FENCED}|{_INDENTED})", re.MULTILINE | re.DOTALL)
_OTHER_FENCE = re.compile(r"^```(?!sh\n|bash\n)\w*\n.*?^```$", re.MULTILINE | re.DOTALL)


class Shell(NamedTuple):
    """A block for a shell, and why the tests do not run it: empty where they do."""

    text: str
    untried: str


def shell_blocks(document: str) -> list[Shell]:
    """What is fenced as sh, and what is indented and begins with a command, after a comment perhaps."""
    found = []
    for why, fenced, indented in _SHELL_BLOCK.findall(_OTHER_FENCE.sub("", document)):
        words = [line.strip() for line in (fenced or indented).splitlines() if not line.strip().startswith("#")]
        if fenced or (words and words[0].startswith(SHELL)):
            found.append(Shell(fenced or indented, why))
    return found


def commands(document: str) -> list[str]:
    """Every line of a block that calls our command, without its comment, with lines that are continued."""
    text = re.sub(r" *\\\n *", " ", document)
    return [
        re.sub(r"\s+#.*$", "", line)
        for line in re.findall(r"^ *(?:\$ )?multiadvisor ([a-z]+(?: .*)?)$", text, re.MULTILINE)
    ]


def test_every_command_line_is_understood() -> None:
    """Its flags are known, and their values of the right kind; what may take long is not run."""
    from multiadvisor.cli import COMMANDS
    from multiadvisor.commands import sweep
    from multiadvisor.commands.parsing import parse

    for line in (line for path in DOCUMENTS for line in commands(path.read_text("utf-8"))):
        words = shlex.split(line)
        if words[0] not in COMMANDS or "CartPol-v1" in words:  # a list of all of them, and a mistake that is shown
            continue
        parser = importlib.import_module(f"multiadvisor.commands.{words[0]}").parser()
        if words[0] == "sweep" and words[1] in sweep.LOOKS:
            parser, words = sweep.LOOKS[words[1]][0](), words[1:]
        given = [word for k, word in enumerate(words) if "--import" not in words[max(k - 1, 0) : k + 1]]
        parse(parser, given[1:])


MINE = """
import gymnasium
import multiadvisor as mad
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv


class Robot(FrozenLakeEnv):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {**info, "reward_ctrl": -0.1}


def act(observation):
    return [0.0, 0.0, 0.0]


def load(file):
    return act


for name in ("Cart-v0", "Warehouse-v0"):
    gymnasium.register(name, Robot)
"""
GRID = """
task = "two-goal"
seeds = 2
schedule = {steps = 100, eval_every = 50, eval_episodes = 2}
settings = {gamma = {low = 0.1, high = 0.9}}
"""
BRIEF = {
    "train": ["--steps", "60", "--eval-every", "60", "--eval-episodes", "1"], "evaluate": ["--episodes", "1"],
    "explain": ["--step", "0", "--seed", "0"], "diagnose": ["--steps", "40", "--branches", "2", "--pairs", "20"],
    "check": ["--steps", "60"], "solve": [], "explore": [], "sweep": [], "tasks": [],
}  # fmt: skip
"""What is said besides, so that a command shown on a page takes seconds; blocks with others are marked."""
FINISHED = {"why-did-it-do-that.md": "pac-boy", "mazes.md": "pac-boy"}
"""The task of runs that a page does not train itself, if it is not CartPole."""


def as_run(line: str) -> list[str] | None:
    """A command as the tests run it: briefly; None where they cannot, so that its block is marked."""
    name, *words = shlex.split(line)
    serves = name == "explore" and "--export" not in words
    if name not in BRIEF or serves:
        return None
    words = [word for word in words if word != "--watch"]
    for flag, value in (("--boards", "20"), ("--trials", "2"), ("--workers", "1"), ("--episode", "0")):
        if flag in words:
            words[words.index(flag) + 1] = value
    brief = [] if name == "check" and "--run" in words else BRIEF[name]
    brief = brief[:2] if "--trace" in words else brief  # which has its own seed
    environment = name == "train" and ("-v" in words[0] or ".py" in words[0])
    return [name, *words, *brief, *(["--max-episode-steps", "30"] if environment else [])]


def test_every_block_is_run_or_says_that_it_is_not() -> None:
    """Programs are python, and what they print text; all else is marked, for readers of the source: not run."""
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        fences = re.findall(_UNTRIED + r"^```(\w*)\n.*?^```$", text, re.MULTILINE | re.DOTALL)
        for why, language in fences:
            assert language in {"python", "py", "text", "console", "sh", "bash", "toml", "json"}, language
            assert (language == "py") <= bool(why), f"{path.name}: a block of {language} is neither run nor marked"
            assert not (language == "python" and why), "it is run"
        for block in shell_blocks(text):
            lines = [line.strip() for line in re.sub(r" *\\\n *", " ", block.text).splitlines()]
            told = [line for line in lines if line and not line.startswith("#")]
            run = [line for line in commands(block.text) if as_run(line) is not None]
            assert block.untried or len(run) == len(told), f"{path.name}: mark what is not run: {told}"


def test_what_is_marked_as_not_run_is_there() -> None:
    """Targets of make, extras and programs, in blocks and in the text."""
    make, project = ((ROOT / name).read_text("utf-8") for name in ("Makefile", "pyproject.toml"))
    extras = re.findall(r"^(\w+) = \[", project.partition("[project.optional-dependencies]")[2], re.MULTILINE)
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        shell = "\n".join(block.text for block in shell_blocks(text))
        shell += "".join(re.findall(r"`[^`\n]+`", text))
        for target in re.findall(r"(?:^ *|`)make ([a-z-]+)", shell, re.MULTILINE):
            assert re.search(rf"^{target}:", make, re.MULTILINE), f"{path.name}: make {target}"
        for extra in ",".join(re.findall(r"'\.\[([\w,]+)\]'", text)).split(","):
            assert extra in ["", *extras], f"{path.name}: the extra {extra}"
        for program in re.findall(r"(?:^ *|=\w+ |`)python ((?!cleanrl)[\w/]+\.py)", text, re.MULTILINE):
            assert (ROOT / program).is_file(), f"{path.name}: {program}"


def test_a_block_is_found_and_what_is_not_run_is_told() -> None:
    text = "See:\n\n    make test\n\n<!-- not run: slow -->\n```sh\nmultiadvisor tasks\n```\n\n    no command\n"
    assert shell_blocks(text) == [("    make test\n", ""), ("multiadvisor tasks\n", "slow")]
    assert shell_blocks("```python\nif x:\n\n    make (1)\n```\n") == []


def test_what_a_mistake_is_answered_is_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    from multiadvisor.cli import main

    [shown] = [body for language, body in _FENCE.findall((ROOT / "docs" / "command-line.md").read_text("utf-8"))
               if language == "console"]  # fmt: skip
    line, _, answer = shown.partition("\n")
    assert main(line.split()[2:]) == 2
    assert capsys.readouterr().err == answer


def test_common_errors_are_those_that_there_are() -> None:
    """The longest part of each message that names nothing of a user's stands in the package."""
    from test_words import strings

    said = " ".join(strings(path) for path in sorted((ROOT / "src" / "multiadvisor").rglob("*.py")))
    said = re.sub(r"\s+", " ", said)
    names = ["X", "Box", "dqn", "sac", "tabular", "alpha", "gamma", "learning_rate", "jax"]
    varies = rf"'[^']*'|\.\.\.|\(.*|\[\d\]|[\d,]*\d|: .*|\b(?:{'|'.join(names)}|info:\S+)\b"
    cells = re.findall(r"^\| `(.+?)` \|", (ROOT / "docs" / "common-errors.md").read_text("utf-8"), re.MULTILINE)
    assert len(cells) >= 20
    for cell in cells:
        part = max(re.split(varies, cell), key=len).strip()
        assert part in said, f"no error says {part!r}"


@pytest.mark.slow
@pytest.mark.filterwarnings(  # of MuJoCo, where there is no display and EGL draws
    "ignore:Exception ignored in. <function GLContext:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("nothing_imported")
@pytest.mark.filterwarnings("ignore:.*GLContext.__del__:pytest.PytestUnraisableExceptionWarning")  # without a screen
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_of_the_documents_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other in one folder; those that show what they print are tested elsewhere."""
    from multiadvisor.cli import main

    monkeypatch.chdir(tmp_path)
    for name in ("mine", "my_module", "my_package"):
        (tmp_path / f"{name}.py").write_text(MINE)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copy(ROOT / "examples" / "maze.txt", tmp_path)
    for name in ("10", "20"):  # a policy's checkpoints
        (tmp_path / "models" / name).mkdir(parents=True)
    shown = "\n".join(block.text for block in shell_blocks(path.read_text("utf-8")) if not block.untried)
    robots = importlib.util.find_spec("mujoco") is None
    for line in commands(shown):
        if robots and ("Hopper" in line or "runs/hopper" in line):
            continue
        words = as_run(line)
        assert words is not None, line
        (tmp_path / "grid.toml").write_text(GRID.replace("{low = 0.1, high = 0.9}", "0.9"))
        (tmp_path / "tune.toml").write_text(GRID)
        if words[0] != "train":
            for run in {word for word in words if word.startswith("runs/") and not Path(word).exists()}:
                make = ["train", FINISHED.get(path.name, "CartPole-v1"), *BRIEF["train"], "--out", run]
                assert main(make) == 0
        code = main(words)
        assert code == 0 or (words[0], code) == ("check", 1), line


def test_the_flags_are_those_of_the_commands() -> None:
    assert (ROOT / "docs" / "flags.md").read_text("utf-8") == maker("from_parser").page(), "run docs/from_parser.py"


def test_every_command_is_explained() -> None:
    from multiadvisor.cli import COMMANDS

    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    for command in COMMANDS:
        assert f"\n## {command}\n" in text
