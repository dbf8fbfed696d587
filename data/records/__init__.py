"""Records: one pydantic model a table. Start reading in `__init__.pyi`, which names all.

A module is imported when a name of it is: a command that only reads needs few of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
