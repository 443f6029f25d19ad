"""Ms. Pac-Man on the Atari 2600 as an environment: one step is one cell, or what four steps of the emulator bring.

Four frames a step, and with a probability the machine repeats the last action instead of the one it is given
(sticky actions). Episodes are cut off after 27,000 steps, half an hour. While everything stands still, as before an
episode and after a life is lost, the step goes on.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from multiadvisor.core.optional_dependencies import require
from multiadvisor.envs.worlds.atari import ram as memory
from multiadvisor.errors import BadInput

ACTIONS = ("up", "right", "left", "down")
_FIRST = 2  # the emulator's number of the first of them: 0 and 1 are to do nothing and to fire
STICKY, FRAMES, LIMIT = 0.25, 4, 27_000
_STEP = 4  # steps of the emulator in which something moved


class MsPacman(gymnasium.Env[np.ndarray, Any]):
    """The real episode, in an emulator; the observation is read from its memory (see `ram`)."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 as Gymnasium has it
    render_mode = "rgb_array"

    def __init__(self, sticky: float = STICKY, limit: int = LIMIT) -> None:
        if not 0 <= sticky < 1:
            raise BadInput(f"sticky is {sticky}: give the probability of a repeated action, from 0 to below 1")
        if limit < 1:
            raise BadInput(f"limit is {limit}: an episode has at least 1 step")
        require("atari")
        import ale_py

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._emulator = ale_py.ALEInterface()
        self._emulator.setFloat("repeat_action_probability", float(sticky))
        self._emulator.setInt("frame_skip", FRAMES)
        self._rom: Any = ale_py.roms.get_rom_path("ms_pacman")
        if self._rom is None:
            raise BadInput("this ale-py holds no Ms. Pac-Man: install a newer one, whose package has the game in it")
        self._load(0)
        self._sticky, self._limit, self.steps = sticky, limit, 0
        self.frames = 0  # of all episodes together
        self._ram = np.zeros(128, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))
        self.observation_space = gymnasium.spaces.Box(memory.NOWHERE, 5000, (memory.SIZE,), np.int64)
        self.action_names = ACTIONS

    def __deepcopy__(self, known: dict[int, Any]) -> MsPacman:
        """Another one with the same options, and an emulator of its own that has played nothing yet."""
        return MsPacman(self._sticky, self._limit)

    def _load(self, seed: int) -> None:
        self._emulator.setInt("random_seed", seed)
        self._emulator.loadROM(self._rom)  # which is when the emulator takes up its seed

    def _observe(self) -> np.ndarray:
        return memory.read(self._ram, self._emulator.lives())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        """A new episode; with a seed, everything random is seeded again."""
        super().reset(seed=seed)
        if seed is not None:
            self._load(seed)
        self._emulator.reset_game()
        self._emulator.getRAM(self._ram)
        self.steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Hold a direction until the next cell, a life lost or a new maze."""
        emulator, ram, code = self._emulator, self._ram, _FIRST + int(action)
        cell, lives, maze = memory.cell_in(ram), emulator.lives(), int(ram[0])
        before, moved, reward = ram[memory.MOVING].tobytes(), 0, 0.0
        over = cut = False
        while not (over or cut) and moved < _STEP:
            reward += emulator.act(code)
            self.steps += 1
            self.frames += FRAMES
            emulator.getRAM(ram)
            now = ram[memory.MOVING].tobytes()
            moved += now != before
            before, over, cut = now, emulator.game_over(), self.steps >= self._limit
            if memory.cell_in(ram) != cell or emulator.lives() != lives or ram[0] != maze:
                break
        return self._observe(), reward, over, cut and not over, {"steps": self.steps}

    @property
    def maze(self) -> int:
        """The number of the maze, from 0."""
        return int(self._ram[0])

    def render(self) -> np.ndarray:
        """The picture on the screen [210, 160, 3]."""
        return self._emulator.getScreenRGB()
