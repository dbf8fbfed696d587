"""Runs code: builds environments, sandboxes processes, times workloads, grades patches.

`contracts` is the vocabulary; start there. Each folder is one job:

- `metadata`: what a tree says of itself, read without running it; `trees`: commits checked out on disk
- `environments`: interpreters and virtual environments; `building`: both sides of a change made runnable
- `sandbox`: where strangers' code runs; `leases`: what processes share on disk, and what of it is evicted
- `probing`: runs the programs of `probe` in the target's interpreter; `measuring`: timings and counts
- `grading`: runs the programs of `grader`; `images`: built sides as container images

`probe`, `grader` and `alternation` (the measuring core) are programs by themselves, standard library only:
exported tasks get copies of them.
"""
