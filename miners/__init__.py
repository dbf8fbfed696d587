"""Repository to changes to verdicts: the crawl of the history and the judge."""
