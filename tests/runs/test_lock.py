"""One process at a time in a folder, whatever became of the one before."""

import os

import pytest

import multiadvisor as mad
from multiadvisor.storage import folder_lock
from multiadvisor.storage.folder_lock import holder_of, locked


def test_it_is_held_by_one_and_says_by_whom(tmp_path):
    path = tmp_path / "a" / "run.lock"
    with locked(tmp_path / "a", "run.lock"):
        assert holder_of(path) == f"process {os.getpid()} on {os.uname().nodename}"
        with (
            pytest.raises(mad.BadInput, match=f"in use by process {os.getpid()} on .*: wait for it, or stop it"),
            locked(tmp_path / "a", "run.lock"),
        ):
            raise AssertionError("two hold one lock")
        assert path.exists(), "who was refused takes nothing away"
    assert holder_of(path) is None
    assert not (tmp_path / "a").exists(), "nothing was put there"


def test_what_was_put_there_stays_and_an_old_folder_too(tmp_path):
    with locked(tmp_path / "new", "run.lock"):
        (tmp_path / "new" / "precious").touch()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["precious"]
    (tmp_path / "old").mkdir()
    with locked(tmp_path / "old", "run.lock"):
        pass
    assert list((tmp_path / "old").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no JSON", b'{"pid": 1, "host": "elsewhere"}'])
def test_what_a_killed_process_left_is_no_lock(tmp_path, content):
    (tmp_path / "run.lock").write_bytes(content)
    assert holder_of(tmp_path / "run.lock") is None
    with locked(tmp_path, "run.lock"):
        assert f"process {os.getpid()}" in holder_of(tmp_path / "run.lock")


def test_a_file_that_its_holder_takes_away_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    """Between opening and locking, the one before ends, and takes file and folder with it."""
    folder, flock, calls = tmp_path / "a", folder_lock.fcntl.flock, []

    def late(handle, how):
        calls.append(how)
        if len(calls) == 1:
            (folder / "run.lock").unlink()
            folder.rmdir()
        flock(handle, how)

    monkeypatch.setattr(folder_lock.fcntl, "flock", late)
    with locked(folder, "run.lock"):
        assert len(calls) == 2
        assert holder_of(folder / "run.lock") is not None


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "run.lock").symlink_to(tmp_path / "missing" / "elsewhere")
    with pytest.raises(mad.BadInput, match="cannot write"), locked(tmp_path, "run.lock"):
        raise AssertionError("a link was followed")
