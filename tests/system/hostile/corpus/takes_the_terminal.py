# Takes the terminal and types into it.
# as: test_hostile.py
# generate: -
# measure: kept
import fcntl, os, termios
from heap import smallest


def test_it():
    smallest([1])
    done = []
    try:
        done.append(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        pass
    for descriptor in range(16):
        try:
            fcntl.ioctl(descriptor, termios.TIOCSTI, b"x")
            done.append(descriptor)
        except OSError:
            pass
    assert not done
