# Ends the interpreter with code 3 while the package is imported.
# as: package
# build: import_failed
# process: yes
import os

os._exit(3)
