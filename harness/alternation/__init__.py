"""The measuring core: processes that have the sides loaded take turns on one core.

Standard library alone, Python 3.6 to 3.14, and no module here imports another: `harness` imports them as a
package, a task's grader finds them beside itself.
"""
