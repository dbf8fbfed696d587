# Sleeps for ever, all signals ignored.
# as: setup.py
# build: build_timeout
# process: yes
# seconds: 3
import signal, time

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
while True:
    time.sleep(600)
