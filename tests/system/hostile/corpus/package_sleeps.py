# Sleeps for ever while the package is imported.
# as: package
# build: import_failed
# seconds: 3
# process: yes
import time

time.sleep(600)
