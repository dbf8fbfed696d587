"""Every error the program raises on purpose.

    PerfquarryError
    ├── InputError (ValueError)            bad usage or input: exit code 2
    │   ├── UnknownRepository (LookupError)
    │   └── UnknownTask (LookupError)
    ├── StoreError (OSError)               a table cannot be read or written
    │   └── SchemaTooNew (InputError)      it is of a newer perfquarry
    ├── BudgetExceeded                     the next call of a model might cost more than may be spent
    ├── AnswersAwaited                     answers are to be given by somebody else before the run can go on
    │   └── AnswerMissing (LookupError)    a cassette has no answer to a request
    ├── RunFailed                          some of the work could not be done; everything else is in the tables
    │   └── RunWaits                       nothing is broken: the rest waits for answers or money
    └── InfrastructureError (RuntimeError) our machinery failed, never the code under test; may be retried
        ├── SandboxUnavailable
        ├── GitFailed
        ├── GithubFailed                   GitHub failed for longer than retries last, or refuses our keys
        ├── ModelFailed                    a model's server failed or refused us; an answer that is bad is data
        ├── EnvironmentFailed              uv or the index failed for a reason that is not the commit's
        ├── StoreUnreachable (StoreError)      tables on an object store cannot be reached
        ├── ClaimsUnavailable                  the database of claims cannot be reached
        ├── MachineBusy (TimeoutError)         another timing held the machine for too long
        ├── HubFailed                      the dataset hub cannot be reached or refuses an upload
        ├── RegistryFailed                 a registry of images cannot be reached or refuses us
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


class SchemaTooNew(StoreError, InputError):
    """A part was written by a newer perfquarry than this one."""


class BudgetExceeded(PerfquarryError):
    """The next call of a model might cost more than may be spent; what was answered is kept."""


class AnswersAwaited(PerfquarryError):
    """Requests were written down for somebody else to answer; run again when the answers are there."""


class AnswerMissing(AnswersAwaited, LookupError):
    """A cassette has no answer to a request."""


class RunFailed(PerfquarryError):
    """Some batches could not be done; everything else is in the tables."""


class RunWaits(RunFailed):
    """Nothing is broken: some batches wait for answers or money."""


class InfrastructureError(PerfquarryError, RuntimeError):
    """Our machinery failed (disk, sandbox, git, index, server); never a label of the code under test."""


class SandboxUnavailable(InfrastructureError):
    """The sandbox itself could not start."""


class GitFailed(InfrastructureError):
    """git ended with an error that is not about the contents of one commit."""


class GithubFailed(InfrastructureError):
    """GitHub cannot be reached, failed for longer than retries last, or refuses what we ask."""


class ModelFailed(InfrastructureError):
    """A model's server cannot be reached, failed for longer than retries last, or refuses our key or request."""


class EnvironmentFailed(InfrastructureError):
    """uv or the package index failed for a reason that is not the commit's."""


class StoreUnreachable(StoreError, InfrastructureError):
    """An object store did not answer as it should; what was to be written is not there."""


class ClaimsUnavailable(InfrastructureError):
    """The database in which workers claim their work cannot be reached."""


class MachineBusy(InfrastructureError, TimeoutError):
    """Another timing held the machine's measurement lock for too long."""


class HubFailed(InfrastructureError):
    """The dataset hub cannot be reached or refuses an upload."""


class RegistryFailed(InfrastructureError):
    """A registry of container images cannot be reached, or refuses what we ask."""


class ServerUnavailable(InfrastructureError, ConnectionError):
    """The Prefect server cannot be reached or started."""
