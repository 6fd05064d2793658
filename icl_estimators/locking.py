"""One writer to a folder at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from icl_estimators.files import require_writable
from icl_estimators.validation import InputError

__all__ = ["sole_writer"]


@contextmanager
def sole_writer(folder: Path, part: str = "") -> Iterator[None]:
    """Hold a folder while a block writes to it; the same thread may hold it several times over.

    The lock is the operating system's (``flock``), on the hidden file ``.lock`` in the folder. It ends with the process
    that holds it, however that ends, so that the lock of a dead writer is ignored. On a network file system it is as
    good as that system's locks: NFS has them between machines from version 4 on.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    part : str
        What is written, where several may write to a folder at once because each writes files of its own: a training
        run's name.

    Raises
    ------
    InputError
        If another process or thread holds it, or the folder cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, sole_writer(Path(folder)):
    ...     print([path.name for path in Path(folder).iterdir()])
    ['.lock']
    """
    require_writable(folder)
    path = folder.resolve() / (f".{part}.lock" if part else ".lock")
    lock = FileLock(path, timeout=0, is_singleton=True)
    what = f"{part} in {folder}" if part else str(folder)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process is writing to {what}: wait until it ends, stop it, or name another folder with "
            "--out (--force does not override a run that is still working)"
        ) from None
    except OSError as error:
        raise InputError(f"cannot lock {what}: {error.strerror}; name another folder with --out") from None
    try:
        yield
    finally:
        if lock.lock_counter == 1:  # who has opened the file that is removed here sees that it is gone
            with suppress(OSError):  # Windows: the file is open
                path.unlink()
        lock.release()
