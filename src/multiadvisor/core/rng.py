"""Random numbers without a hidden state: each is a function of (seed, stream, step, purpose).

A draw is a 64-bit word: the key of the stream is advanced by the step, the step's key by the purpose, each time through
a bijective finaliser (the one of SplitMix64). So a run depends on its seed alone, whatever the batch, the worker or
the number of steps it was cut into, and any draw can be made again on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from multiadvisor.core.compiling import compiled

# Streams of a run: training and evaluation never share a draw.
TRAINING, EVALUATION, ENVIRONMENT = 1, 2, 3

# Purposes within a step. A world of one's own draws with WORLD, WORLD + 1, ... up to NOISE.
CHOICE = 0  # explore or not, which action, which of the tied ones
NEXT_CHOICE = 1  # which of the tied actions the aggregator would take in the next state
EPISODE = 2  # the start of an episode: the world's reset draws from a key of its own
WORLD = 16
NOISE = 1 << 40  # + advisor

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1342543DE82EF95)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32, _S11 = (np.uint64(shift) for shift in (30, 27, 31, 32, 11))
_LOW32 = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)


@compiled
def mix(word):
    """A bijection of 64-bit words that leaves no visible pattern."""
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@compiled
def step_key(key, step):
    """The key of one step of a stream."""
    return mix(key + np.uint64(step) * _GOLDEN)


@compiled
def draw(key, purpose):
    """64 random bits for one purpose of the step whose key this is."""
    return mix(key + np.uint64(purpose) * _STEP)


@compiled
def below(word, count):
    """A whole number in 0 .. count - 1 from the low half of a word."""
    return np.int64(((word & _LOW32) * np.uint64(count)) >> _S32)


@compiled
def uniform(word):
    """A float64 in [0, 1) from the high bits of a word."""
    return np.float64(word >> _S11) * (1.0 / 9007199254740992.0)


@compiled
def high_half(word):
    """A float64 in [0, 1) from the high 32 bits: whether to explore."""
    return np.float64(word >> _S32) * (1.0 / 4294967296.0)


@compiled
def low_half(word):
    """A float64 in [0, 1) from the low 32 bits: which of the tied actions."""
    return np.float64(word & _LOW32) * (1.0 / 4294967296.0)


def stream_key(seed: int, stream: int, index: int = 0) -> np.uint64:
    """The key of a stream: `index` counts runs, evaluations or episodes within it.

    >>> len({int(stream_key(seed, TRAINING)) for seed in (0, 1, 1)})
    2
    """
    word = 0
    for part in (seed, stream, index):
        word = _mix_python(word + part * int(_STEP) + int(_GOLDEN))
    return np.uint64(word)


def training_keys(seeds: Sequence[int], episodes: int) -> np.ndarray:
    """The keys [N] of the episodes that each of several runs plays side by side."""
    return np.array([stream_key(seed, TRAINING, episode) for seed in seeds for episode in range(episodes)], np.uint64)


def evaluation_index(evaluation: int, episode: int) -> int:
    """The number of one episode of an evaluation among all episodes of all evaluations.

    >>> len({evaluation_index(evaluation, episode) for evaluation in range(3) for episode in range(3)})
    9
    """
    return ((1 + evaluation) << 32) + episode


def episode_key(seed: int, evaluation: int, episode: int) -> np.uint64:
    """The key of one episode of an evaluation whose episodes are played side by side; the first is everybody's
    first."""
    return stream_key(seed, EVALUATION, evaluation_index(evaluation, episode) if episode else evaluation)


def draw_python(key: int, step: int, purpose: int) -> int:
    """`draw` of a step on Python's whole numbers, for those who draw seldom: nothing has to be compiled for it.

    >>> draw_python(5, 3, CHOICE) == int(draw(np.uint64(step_key(np.uint64(5), 3)), CHOICE))
    True
    """
    return _mix_python(_mix_python(key + step * int(_GOLDEN)) + purpose * int(_STEP))


def environment_seed(seed: int, stream: int, index: int) -> int:
    """A seed of 31 bits for `reset` of a Python environment."""
    return int(stream_key(seed, stream, index)) >> 33


def evaluation_seed(seed: int, evaluation: int, episode: int) -> int:
    """The seed with which a Python environment begins one episode of an evaluation."""
    return environment_seed(seed, EVALUATION, evaluation_index(evaluation, episode))


def _mix_python(word: int) -> int:
    """`mix` on Python's whole numbers: a key is needed before anything is compiled."""
    mask = (1 << 64) - 1
    word &= mask
    word = ((word ^ (word >> 30)) * int(_M1)) & mask
    word = ((word ^ (word >> 27)) * int(_M2)) & mask
    return word ^ (word >> 31)


# ---- normal draws by the ziggurat (Marsaglia and Tsang 2000, in the form of Doornik 2005), 256 layers ----------------
_TAIL = 3.6541528853610088
_AREA = 0.00492867323399


def _layers() -> np.ndarray:
    edges = np.zeros(257)
    edges[0], edges[1] = _AREA / math.exp(-0.5 * _TAIL**2), _TAIL
    for layer in range(2, 256):
        edges[layer] = math.sqrt(-2.0 * math.log(_AREA / edges[layer - 1] + math.exp(-0.5 * edges[layer - 1] ** 2)))
    return edges


_EDGES = _layers()  # [257], falling from beyond the tail to 0


@compiled
def _normal_rare(word, layer, value):
    """The one case in a hundred that falls outside a layer's rectangle."""
    while True:
        word = mix(word + _GOLDEN)
        if layer == 0:
            while True:
                first = -math.log(1.0 - uniform(word)) / _TAIL
                word = mix(word + _GOLDEN)
                second = -math.log(1.0 - uniform(word))
                word = mix(word + _GOLDEN)
                if second + second > first * first:
                    return math.copysign(_TAIL + first, value)
        top = math.exp(-0.5 * (_EDGES[layer] ** 2 - value**2))
        bottom = math.exp(-0.5 * (_EDGES[layer + 1] ** 2 - value**2))
        if bottom + uniform(word) * (top - bottom) < 1.0:
            return value
        word = mix(word + _GOLDEN)
        layer = np.int64(word & _BYTE)
        value = (2.0 * uniform(word) - 1.0) * _EDGES[layer]
        if abs(value) < _EDGES[layer + 1]:
            return value


@compiled
def normal(word):
    """A standard normal float64 from one word (more are derived from it where the first is rejected)."""
    layer = np.int64(word & _BYTE)
    value = (2.0 * uniform(word) - 1.0) * _EDGES[layer]
    if abs(value) < _EDGES[layer + 1]:
        return value
    return _normal_rare(word, layer, value)
