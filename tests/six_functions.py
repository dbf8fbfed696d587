"""What most scripts have in common: all of the six functions but `setup` and `experiment`."""

REST = """
import json


def store_result(result, filename):
    with open(filename, "w") as file:
        json.dump(result, file)


def load_result(filename):
    with open(filename) as file:
        return json.load(file)


def check_equivalence(reference_result, current_result):
    assert reference_result == current_result, "%r became %r" % (reference_result, current_result)


def run_test(eqcheck=False, reference=False, prefix=""):
    import timeit

    data = setup()
    begin = timeit.default_timer()
    result = experiment(data)
    seconds = timeit.default_timer() - begin
    if reference:
        store_result(result, prefix + "_result.json")
    if eqcheck:
        check_equivalence(load_result(prefix + "_result.json"), result)
    return seconds
"""
