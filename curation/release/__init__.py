"""Accepted tasks → a release: a folder that people can load, check and run. Start reading in `folder`."""
