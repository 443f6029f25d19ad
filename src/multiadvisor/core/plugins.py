"""Files of the user's own that are imported before anything else: they register plannings, aggregations, tasks, parts.

Only who calls the command or the function names them. No grid, checkpoint or trace ever does: files are data.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from multiadvisor.errors import BadInput, in_one_line, similar

IMPORTED: list[str] = []
"""What was imported here, for worker processes to import it too."""


def import_own(name: str) -> ModuleType:
    """Import a file, `folder/mine.py`, or a module that Python finds, `mine`; once in a process."""
    path = Path(name)
    is_file = path.suffix == ".py" or path.is_file()
    module = _from_file(path.resolve()) if is_file else _from_path(name)
    known = str(path.resolve()) if is_file else name
    if known not in IMPORTED:
        IMPORTED.append(known)
    return module


def own_object(named: str, flag: str) -> Any:
    """What FILE.py:NAME names in a file of the user's own, imported as he asks for it; `flag`: where he did."""
    file, colon, name = named.rpartition(":")
    if not colon or not file or not name:
        raise BadInput(f"{flag} is {named!r}: write FILE.py:NAME")
    module = import_own(file)
    if not hasattr(module, name):
        public = {one: what for one, what in vars(module).items() if not one.startswith("_")}
        own = [one for one, what in public.items() if not isinstance(what, ModuleType)]
        meant = "".join(f"did you mean {file}:{one}?" for one in similar(name, own)) or f"{flag} names something in it"
        raise BadInput(f"{file!r} has no {name!r}: {meant}")
    return getattr(module, name)


def _from_path(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise BadInput(f"cannot import {name!r}: name a file, such as mine.py, or a module that Python finds")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from None
        raise BadInput(
            f"cannot import {name!r}: Python finds no such module; to name a file, write {name}.py"
        ) from None
    except Exception as error:
        raise _broken(name, error) from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadInput(f"cannot import {str(path)!r}: there is no such file")
    name = path.stem
    if not name.isidentifier():
        raise BadInput(f"cannot import {str(path)!r}: a module's name has letters, digits and underscores only")
    # numba finds compiled code again by the name of its module, which therefore has to be a module that can be found
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None or Path(found.origin).resolve() != path:
        raise BadInput(f"cannot import {str(path)!r}: another module is called {name!r}, give the file another name")
    return _from_path(name)


def _broken(name: str, error: Exception) -> BadInput:
    places = [place for place in traceback.extract_tb(error.__traceback__) if "importlib" not in place.filename]
    if isinstance(error, SyntaxError):  # which says where it is, and nothing of it has run
        places = []
    where = f" ({Path(places[-1].filename).name}:{places[-1].lineno})" if places else ""
    return BadInput(f"cannot import {name!r}: {in_one_line(error)}{where}")


def imported(place: Any) -> Any:
    """What `module:name` stands for; anything else is itself."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
