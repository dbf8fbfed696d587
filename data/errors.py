"""Every error the program raises on purpose.

    PerfquarryError
    ├── InputError (ValueError)            bad usage or input: exit code 2
    │   ├── UnknownRepository (LookupError)
    │   └── UnknownTask (LookupError)
    ├── StoreError (OSError)               a table cannot be read or written
    │   └── SchemaTooNew
    └── InfrastructureError (RuntimeError) our machinery failed, never the code under test; may be retried
        ├── SandboxUnavailable
        ├── GitFailed
        ├── EnvironmentFailed              uv or the index failed for a reason that is not the commit's
        ├── MachineBusy (TimeoutError)         another timing held the machine for too long
        └── ServerUnavailable (ConnectionError)

A failing build, test or workload is data (a row with a reason), never one of these.
"""


class PerfquarryError(Exception):
    """Base of all; its text says what was done, to what, and what to do next."""


class InputError(PerfquarryError, ValueError):
    """Bad usage or input: the command ends with exit code 2 and nothing was changed."""


class UnknownRepository(InputError, LookupError):
    """A name that is neither in the registry, nor a URL, nor a path."""


class UnknownTask(InputError, LookupError):
    """A task id that no table of this home holds."""


class StoreError(PerfquarryError, OSError):
    """A table cannot be read or written."""


class SchemaTooNew(StoreError):
    """A part was written by a newer perfquarry than this one."""


class InfrastructureError(PerfquarryError, RuntimeError):
    """Our machinery failed (disk, sandbox, git, index, server); never a label of the code under test."""


class SandboxUnavailable(InfrastructureError):
    """The sandbox itself could not start."""


class GitFailed(InfrastructureError):
    """git ended with an error that is not about the contents of one commit."""


class EnvironmentFailed(InfrastructureError):
    """uv or the package index failed for a reason that is not the commit's."""


class MachineBusy(InfrastructureError, TimeoutError):
    """Another timing held the machine's measurement lock for too long."""


class ServerUnavailable(InfrastructureError, ConnectionError):
    """The Prefect server cannot be reached or started."""
