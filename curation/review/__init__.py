"""The review queue: a web application in which curators decide on candidates.

`app.create_app` makes it; `tables` reads what is shown, `decisions` keeps what was decided.
"""
