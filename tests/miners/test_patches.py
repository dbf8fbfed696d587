"""Exact patches: applied to the base they give the head, whatever the files hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository, only_row

from perfquarry.miners.patches import licence_at, licence_file_at, split, version_at


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work")


def tree_after(repository: Repository, base: str, *patches: str) -> str:
    repository.git("checkout", "-q", "-f", base)
    for patch in patches:
        if patch:
            repository.git("apply", "--index", "-", data=patch.encode())
    return repository.git("write-tree").decode().strip()


def test_both_patches_together_give_the_head(repository: Repository) -> None:
    body = "".join(f"line {n}\n" for n in range(40))
    latin = "".join(f"caf\u00e9 {n}\n" for n in range(9)).encode("latin-1")
    base = repository.commit(
        "start",
        {
            "a.py": body,
            "tests/test_a.py": body,
            "latin.py": latin,
            "data.bin": b"\0\1" * 99,
            "t.py": "t\n",
            "gone.py": "x",
        },
    )
    (repository.folder / "t.py").unlink()
    (repository.folder / "t.py").symlink_to("a.py")
    (repository.folder / "gone.py").unlink()
    repository.git("mv", "tests/test_a.py", "moved.py")
    repository.write(b"odd\xff\n.py", "odd\n")
    head = repository.commit(
        "change",
        {
            "a.py": body.replace("line 3\n", "line three\r\n") + "no newline",
            "latin.py": latin.replace(b"3", b"\xe9\xe9"),
            "data.bin": b"\0\2" * 99,
            "tests/test_b.py": "test = '\u2713'\n",
            "empty.py": "",
        },
    )
    patches = split(repository.folder, only_row(repository.folder, head))
    assert "tests/" not in patches.patch.replace("b/tests", "tests/") and "GIT binary patch" in patches.patch
    assert "tests/test_b.py" in patches.test_patch and "deleted file" in patches.test_patch
    assert tree_after(repository, base, patches.patch, patches.test_patch) == repository.head(f"{head}^{{tree}}")
    assert tree_after(repository, base, patches.test_patch, patches.patch) == repository.head(f"{head}^{{tree}}")


def test_submodules_are_left_out_and_empty_changes_are_empty(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("other", {"o.py": "o\n"})
    repository.commit("start", {"a.py": "a\n"})
    repository.git("submodule", "--quiet", "add", str(other.folder), "module")
    patches = split(repository.folder, only_row(repository.folder, repository.commit("add")))
    assert ".gitmodules" in patches.patch and "160000" not in patches.patch
    empty = split(repository.folder, only_row(repository.folder, repository.commit("empty")))
    assert (empty.patch, empty.test_patch) == ("", "")


@pytest.mark.parametrize(
    ("files", "version"),
    [
        (
            {"pyproject.toml": '[build-system]\nrequires = ["x"]\n[project]\nname = "a"\nversion = "2.0.0.dev0"\n'},
            "2.0.0.dev0",
        ),
        (
            {
                "pyproject.toml": '[project]\ndynamic = ["version"]\n[tool.x]\nversion = "9"\n',
                "a/__init__.py": "__version__ = '1.2'",
            },
            "1.2",
        ),
        ({"setup.cfg": "[metadata]\nname = a\nversion = 1.0rc1\n"}, "1.0rc1"),
        ({"setup.cfg": "[metadata]\nversion = attr: a.__version__\n", "a/version.py": 'version = "3.1"\n'}, "3.1"),
        ({"setup.py": "setup(\n    name='a',\n    version='0.9.1',\n)\n"}, "0.9.1"),
        ({"setup.py": "MAJOR = 1\nMINOR               = 20\nMICRO = 0\nVERSION = '%d' % MAJOR\n"}, "1.20.0"),
        ({"meson.build": "project(\n  'A',\n  'c',\n  version: '4.5',\n)\n"}, "4.5"),
        (
            {"src/a/__init__.py": '__version__: str = "7.0+local"\n', "z/y/x/__init__.py": "__version__ = '8'"},
            "7.0+local",
        ),
        ({"sympy/release.py": '__version__ = "1.13.dev"\n'}, "1.13.dev"),
        ({"a.py": "x = 1\n"}, ""),
    ],
)
def test_versions(repository: Repository, files: dict[str, str | bytes], version: str) -> None:
    assert version_at(repository.folder, repository.commit("start", files)) == version


BSD = "Redistribution and use in source and binary forms are permitted\n * in binary\n form must reproduce\n"


@pytest.mark.parametrize(
    ("name", "words", "licence"),
    [
        ("LICENSE.txt", BSD + "neither the name ... may be used to endorse or\n      promote products", "BSD-3-Clause"),
        ("LICENSE", BSD, "BSD-2-Clause"),
        ("COPYING", "GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", "GPL-3.0"),
        ("LICENCE.md", "Apache License\n  Version 2.0, January 2004", "Apache-2.0"),
        (
            "LICENSE.rst",
            "Permission is hereby granted, free of charge, to any person. The above copyright notice and\n"
            "this permission notice shall be included",
            "MIT",
        ),
        ("LICENSE", "All rights reserved.", ""),
        ("vendor/x/LICENSE", BSD, ""),
    ],
)
def test_licences(repository: Repository, name: str, words: str, licence: str) -> None:
    assert licence_at(repository.folder, repository.commit("start", {name: words})) == licence


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        ({"setup.py": "setup(classifiers=['License :: OSI Approved :: MIT License', 'Topic :: Text'])"}, "MIT"),
        ({"setup.cfg": "classifiers =\n    License :: OSI Approved :: ISC License (ISCL)\n    Topic\n"}, "ISC"),
        ({"setup.py": "['License :: OSI Approved :: BSD License']"}, ""),
        ({"setup.py": "['License :: OSI Approved :: MIT License', 'License :: Other/Proprietary License']"}, ""),
        ({"setup.py": "['License :: OSI Approved :: MIT License']", "LICENSE": "All rights reserved."}, ""),
        ({"setup.py": f"License :: {' ' * 200_000}"}, ""),
        ({"setup.cfg": "classifiers =\n    License :: OSI Approved :: MIT License  \n"}, "MIT"),
        ({"lib/setup.py": "['License :: OSI Approved :: MIT License']", "setup.py": "setup()"}, ""),
    ],
)
def test_without_a_licence_file_the_one_licence_that_the_metadata_name(
    repository: Repository, files: dict[str, str], licence: str
) -> None:
    head = repository.commit("start", files)
    path = next(iter(files)) if licence else "LICENSE" if "LICENSE" in files else ""
    assert licence_file_at(repository.folder, head) == (licence, path)
