"""Files that appear whole or not at all, and the errors of all that reads and writes them."""

import fcntl
import os
import stat


class Problem(Exception):
    """What the user can mend, in one line."""


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Problem(f"load: cannot read {path}, {error.strerror}") from None


def write(path, *parts):
    """Writes under a temporary name in the same folder, flushes, and takes the place of `path`.

    The name is one that Gradstone's own writers remove when they find it left behind, unlocked.
    """
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}-0.gradstone_tmp"
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            raise Problem(f"save: {path} is not a regular file; give the path of a file")
        with open(temporary, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.exists(target):  # a private file stays private
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            os.rename(temporary, target)
    except OSError as error:
        raise Problem(f"save: cannot write {path}, {error.strerror}; what stood there before is "
                      "unchanged") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
