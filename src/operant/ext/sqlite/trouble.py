"""What SQLite and the file system report, in words for a person."""

from __future__ import annotations

import errno
import os

import apsw

from operant.sdk import StoreStopped

CHECK = "Run `operant doctor`."

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
_PASSING = (apsw.FullError, apsw.BusyError, apsw.LockedError)
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_RIGHTS = {errno.EACCES, errno.EPERM, errno.EROFS}
_FILES = {errno.EMFILE, errno.ENFILE}


def explained(error: apsw.Error, number: int = 0) -> StoreStopped:
    """Put what SQLite says into words; `number` is the system's own error where it is known."""
    match error:
        case apsw.FullError():
            return _full()
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return _closed()
        case apsw.CantOpenError() | apsw.IOError() if number:
            return of_system(number)
        case apsw.CantOpenError():
            return StoreStopped(
                "The database cannot be opened.", "Check the rights of the home and the number of open files."
            )
        case apsw.IOError():
            return StoreStopped("The disk reports an error.", "Check the disk; Operant goes on when it works again.")
        case apsw.BusyError() | apsw.LockedError():
            return StoreStopped("Another program holds the database.", "End it; Operant goes on by itself.")
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreStopped("The database is damaged.", f"Stop Operant. {CHECK}")
        case _:
            return StoreStopped(f"SQLite failed: {error}.", CHECK)


def of_system(number: int) -> StoreStopped:
    """Put the system's own error into words."""
    if number in _FULL:
        return _full()
    if number in _RIGHTS:
        return _closed()
    if number in _FILES:
        return StoreStopped("Too many files are open.", "Raise the limit (`ulimit -n`); Operant goes on by itself.")
    return StoreStopped(
        f"The disk reports an error: {os.strerror(number)}.", "Check it; Operant goes on when it works again."
    )


def needs_reopening(error: apsw.Error) -> bool:
    """Tell whether the connection must go: after a failed fsync the same descriptor would report success."""
    return not isinstance(error, _PASSING)


def _full() -> StoreStopped:
    return StoreStopped("The disk is full.", "Free some space; Operant goes on by itself.")


def _closed() -> StoreStopped:
    return StoreStopped("The home cannot be written to.", "Make it writable; Operant goes on by itself.")
