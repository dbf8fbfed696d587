"""Gives the judge's cassettes of the demo the addresses of today's questions.

    python -m benchmarks.judge_cassettes

The answers in `data/demo/cassettes/judge/` are written by hand and belong to a commit and a vote by their names,
`LABEL-VOTE.json` and `LABEL-VOTE-repair.json`. A new version of the prompt, or other settings, ask other questions.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from perfquarry.data.demo import build_demo, expected
from perfquarry.data.records import Stamp
from perfquarry.llm.answers import read, repaired
from perfquarry.llm.recordings import Recording
from perfquarry.llm.request import Request
from perfquarry.miners.history import crawl
from perfquarry.miners.judge import CASCADE, Questions
from perfquarry.miners.judge.opinion import Opinion
from perfquarry.miners.settings import JudgeSettings, MineSettings

FOLDER = Path(__file__).parents[1] / "data" / "demo" / "cassettes" / "judge"


def main() -> None:
    """Rewrites the addresses; the rest of the files stays."""
    labels = {one.head_sha: one.label for one in expected()}
    stamp = Stamp(repo="demo", stage_version="", config_hash="")
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "demo"
        build_demo(clone)
        questions = Questions(JudgeSettings(judge=CASCADE), stamp, clone)
        for change in crawl(clone, stamp, MineSettings()):
            verdict, asked = questions.sort(change) if change.status == "kept" else (None, False)
            if asked and verdict is not None:
                question = questions.about(change, verdict)
                for path in sorted(FOLDER.glob(f"{labels[change.head_sha]}-[0-9].json")):
                    _address(path, question.vote(int(path.stem[-1])))


def _address(path: Path, request: Request[Opinion]) -> None:
    recording = json.loads(path.read_text(encoding="utf-8"))
    recording["address"] = request.address
    path.write_text(json.dumps(recording, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    repair = path.with_name(f"{path.stem}-repair.json")
    if repair.exists():
        reply = Recording.model_validate(recording).reply
        _address(repair, repaired(request, reply, read(reply, Opinion).detail))


if __name__ == "__main__":
    main()
