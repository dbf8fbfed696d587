"""What must not be in a release: what is found, and what is not taken for it."""

from __future__ import annotations

import pytest

from perfquarry.curation.private import addresses_in, secrets_in, without_addresses
from perfquarry.curation.release.leaks import fix_in


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ghp_" + "a1" * 18, "GitHub token"),
        ("token hf_" + "aB" * 17, "Hugging Face token"),
        ("https://me:pass@example.org/simple", "password in an address"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
    ],
)
def test_secrets_are_named_not_shown(text: str, kind: str) -> None:
    assert [one.kind for one in secrets_in(text)] == [kind]


def test_what_is_no_secret() -> None:
    assert secrets_in("hf_hub, sk-learn, https://github.com/a/b?c=d@e, AKIA is a word, ghp_short") == []


def test_long_texts_are_read_to_their_end() -> None:
    long = "a line\n" * 400_000
    assert [one.kind for one in secrets_in(f"{long}AKIA{'ABCDEFGH' * 2}")] == ["AWS key"]
    assert addresses_in(f"{long}me@somewhere.org") == ["me@somewhere.org"]


@pytest.mark.parametrize("run", ["ab-", "a.", "token_", "eyJ-"])
@pytest.mark.timeout(60)
def test_a_line_without_spaces_takes_no_longer_than_others(run: str) -> None:
    assert secrets_in(run * (300_000 // len(run))) == addresses_in(f"{run * 100_000}@") == []


def test_addresses() -> None:
    text = "a.b+c@mail.somewhere.org, x@example.com, @contextlib.contextmanager, git@localhost, me@host"
    assert addresses_in(text) == ["a.b+c@mail.somewhere.org"]
    assert without_addresses("A <a@b.de> and c@example.org") == "A <<address removed>> and c@example.org"


PATCH = """\
diff --git a/m.py b/m.py
--- a/m.py
+++ b/m.py
@@ -1,3 +1,4 @@ def outer_name():
 def f(known_name):
-    return old_name(known_name)
+    cached = new_name(known_name)
+    return cached
"""


def test_the_fix_in_a_problem() -> None:
    def leaks(text: str, message: str = "") -> list[str]:
        return fix_in(text, PATCH, message, ["m.py::Klass.method_name"])

    assert leaks("Make f faster; known_name, old_name, outer_name and Klass.method_name stay. It is cached.") == []
    assert leaks("call new_name") == ["identifier new_name"]
    assert leaks("cached = new_name(known_name)")[-1] == "line of the patch: cached = new_name(known_name)"
    assert leaks("One should KEEP the answers, in a dict!", "Keep the answers in a dict\n\nNo more.") == [
        "title of the commit: Keep the answers in a dict"
    ]
    assert leaks("You should KEEP answers in a small dict.", "Faster\n\nkeep answers in a small dict") == [
        "words of the commit's message: keep answers in a small dict"
    ]
    common = "+++ b/m.py\n+    raise ValueError(\n+    return result\n+    sizes.append(total)\n"
    assert fix_in("raise ValueError(\nreturn result", common, "", []) == [], "any script may say so"
    assert fix_in("sizes.append(total)", common, "", []) == ["line of the patch: sizes.append(total)"]
    assert fix_in("text", "GIT binary patch\n", "", []) == []
