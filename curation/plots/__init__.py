"""All plots, drawn by matplotlib (docs/decisions/0047).

`canvas` turns a figure into SVG of the project's palette, light and dark in one file; each other module has the
plots of one subject. matplotlib is imported when the first plot is drawn: the command has to start at once.
"""
