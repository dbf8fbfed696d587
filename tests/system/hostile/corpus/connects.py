# Talks to services of the host: TCP, UDP, a socket file, an abstract name.
# as: test_hostile.py
# generate: -
# measure: kept
import socket
from heap import smallest
from targets import ABSTRACT, PORT, SOCKET


def test_it():
    smallest([1])
    done = []
    for address in (("127.0.0.1", PORT), ("192.0.2.1", 80)):
        try:
            socket.create_connection(address, timeout=1).close()
            done.append(address)
        except OSError:
            pass
    for address in (SOCKET, "\0" + ABSTRACT, "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"):
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(address)
                done.append(address)
        except OSError:
            pass
    try:
        with socket.socket(type=socket.SOCK_DGRAM) as one:
            one.sendto(b"hello", ("127.0.0.1", PORT))  # its own loopback: nobody there
    except OSError:
        pass
    assert not done
