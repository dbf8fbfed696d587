"""Asks callgrind from inside: valgrind's client requests as machine code, without a compiler.

A request is a sequence of instructions that do nothing on a processor and that valgrind recognises. What
they mean is documented in valgrind's manual and in its headers valgrind.h and callgrind.h. Python 3.6 to
3.14, standard library only; x86-64 and aarch64 (the latter was never tried).
"""

import mmap
import platform
import struct

try:
    import ctypes
except ImportError:  # an interpreter built without libffi
    ctypes = None

RUNNING_ON_VALGRIND = 0x1001
_TOOL = ord("C") << 24 | ord("T") << 16
ZERO, TOGGLE, DUMP, START, STOP = _TOOL + 1, _TOOL + 2, _TOOL + 3, _TOOL + 4, _TOOL + 5

_MARK = "48c1c703 48c1c70d 48c1c73d 48c1c733 4887db"  # rol $3, $13, $61, $51 of rdi; xchg rbx, rbx
# a function of two arguments: the address of the request, and the answer where nobody listens
_ASK = {
    # mov rax, rdi; mov rdx, rsi; ...; mov rax, rdx; ret
    "x86_64": "4889f8 4889f2 " + _MARK + " 4889d0 c3",
    # mov x4, x0; mov x3, x1; ror x12 by 3, 13, 51, 61; orr x10, x10, x10; mov x0, x3; ret
    "aarch64": "e40300aa e30301aa 8c0dcc93 8c35cc93 8ccdcc93 8cf5cc93 4a010aaa e00303aa c0035fd6",
}
_PAGE = 256 * 1024


class Unavailable(Exception):
    """Callgrind cannot be asked here; the text says why."""


class Requests(object):
    """Callgrind as seen by the program that it runs.

    Raises:
        Unavailable: there is no ctypes, or the process is not run by callgrind.
    """

    def __init__(self):
        machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
        if ctypes is None:
            raise Unavailable("this interpreter has no ctypes, through which callgrind is asked")
        if machine not in _ASK:
            raise Unavailable("no client requests are known for processors of the kind %s" % machine)
        self.machine = machine
        self._kept = []  # what machine code points to
        self._code = mmap.mmap(-1, _PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._begin = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._ask = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)(self.place(_ASK[machine]))
        self._label = ctypes.create_string_buffer(b"perfquarry")
        if not self._ask(self.request(RUNNING_ON_VALGRIND), 0):
            raise Unavailable("the process does not run under valgrind")
        self._zero, self._start, self._stop = self.request(ZERO), self.request(START), self.request(STOP)
        self._dump = self.request(DUMP, ctypes.addressof(self._label))

    def place(self, code):
        """Address of these instructions (hexadecimal), in memory that can be executed."""
        self._code.seek((self._code.tell() + 15) // 16 * 16)
        address = self._begin + self._code.tell()
        self._code.write(bytes(bytearray.fromhex(code)))
        return address

    def request(self, number, argument=0):
        """Address of a request."""
        words = (ctypes.c_uint64 * 6)(number, argument)
        self._kept.append(words)
        return ctypes.addressof(words)

    def zero(self):
        """Counts from nothing again."""
        self._ask(self._zero, 0)

    def dump(self):
        """Writes the next file, and counts from nothing again."""
        self._ask(self._dump, 0)

    def start(self):
        """Counts from now on; until then the program runs several times faster."""
        self._ask(self._start, 0)

    def stop(self):
        """Counts no more."""
        self._ask(self._stop, 0)

    def caller(self, *, toggling):
        """A way to call Python functions that callgrind can tell from others: its function and its address.

        The function takes a callable, a tuple and a dictionary. With `toggling`, callgrind collects
        nothing but what happens inside.

        Raises:
            Unavailable: not on this kind of processor.
        """
        if self.machine != "x86_64":
            raise Unavailable("Python functions can only be told apart on x86-64")
        target = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
        call = "48b8" + _word(target) + "ffd0"  # mov rax, PyObject_Call; call rax
        if toggling:
            # mov rax, request; xor edx, edx; ...
            toggle = "48b8" + _word(self.request(TOGGLE)) + "31d2" + _MARK
            # push rdi, rsi, rdx; ...; pop rdx, rsi, rdi; sub rsp, 8; call; push rax; ...; pop rax; add rsp, 8; ret
            code = "575652" + toggle + "5a5e5f" + "4883ec08" + call + "50" + toggle + "58" + "4883c408c3"
        else:
            code = "4883ec08" + call + "4883c408c3"
        address = self.place(code)
        kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object)
        return kind(address), address, address + len(bytearray.fromhex(code))


def _word(number):
    return "".join("%02x" % byte for byte in bytearray(struct.pack("<Q", number)))
