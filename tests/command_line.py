"""Commands as they are typed: their exit code and what they print; whatever cannot be done is one line."""

import json

from multiadvisor.cli import main


def typed(capsys, *words):
    """(exit code, stdout, stderr) of `multiadvisor WORDS`, without what was printed before."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


def printed(capsys, *words):
    """The JSON of a command that succeeds."""
    code, out, error = typed(capsys, *words, "--json")
    assert code == 0, error
    return json.loads(out)


def refused(capsys, said, *words):
    """A command that is refused in one line, in which this is said; the line."""
    code, out, error = typed(capsys, *words)
    assert (code, out, len(error.splitlines())) == (2, "", 1), (words, error)
    assert said in error, words
    return error
