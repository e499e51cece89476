"""A kind's folder becomes a package; what cannot run is refused by kind, file and cause before anything is claimed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stopline.worker.loading import KindNotLoadable, load_kind


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "stopline_jobs"]:
        del sys.modules[name]


def write(jobs: Path, kind: str, **files: str) -> None:
    (jobs / kind).mkdir()
    for name, source in files.items():
        (jobs / kind / f"{name}.py").write_text(source)


def test_relative_imports_work_and_kinds_do_not_see_each_others_modules(jobs: Path) -> None:
    for kind in ("one", "two"):
        write(
            jobs,
            kind,
            words=f"NAME = {kind!r}",
            handler="from .words import NAME\ndef run(job): return NAME\ndef reconcile(job): return NAME",
        )
    one, two = load_kind(jobs, "one"), load_kind(jobs, "two")
    assert (one.run(None), two.run(None)) == ("one", "two")
    assert one.reconcile is not None
    assert one.run.__module__ == "stopline_jobs.one.handler"


def test_a_kind_is_imported_once(jobs: Path) -> None:
    write(jobs, "once", handler="calls = []\ndef run(job): calls.append(1); return len(calls)")
    assert [load_kind(jobs, "once").run(None) for _ in range(2)] == [1, 2]


def test_another_folder_of_kinds_is_not_served_with_the_code_of_the_first(jobs: Path) -> None:
    for number in (1, 2):
        folder = jobs / str(number)
        folder.mkdir()
        write(folder, "kind", handler=f"def run(job): return {number}")
    assert [load_kind(jobs / str(number), "kind").run(None) for number in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import no_such_module\n", "import failed: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def run(job:\n", "import failed: SyntaxError"),
        ("raise SystemExit(0)\n", "import failed: SystemExit: 0"),
        ("1 / 0\n", r"import failed: ZeroDivisionError: division by zero \(.*handler.py:1\)"),
        ("def start(job): pass\n", r"it has no function `run`. Define run\(job\)"),
        ("run = 5\n", "`run` is not a function"),
        ("async def run(job): pass\n", "`run` must be a plain function"),
        ("def run(job): yield 1\n", "`run` must be a plain function"),
        ("def run(): pass\n", "`run` must take one argument, the job"),
        ("def run(job, more): pass\n", "`run` must take one argument, the job"),
        ("def run(job): pass\nreconcile = 'no'\n", "`reconcile` is not a function"),
        ("def run(job): pass\nCLASSES = [409]\n", "CLASSES: must be a dict, not a list"),
        ("def run(job): pass\nCLASSES = {409: 'again'}\n", r"CLASSES\[409\]: must be one of transient, permanent, unc"),
        (
            "def run(job): pass\nCLASSES = {200: 'transient'}\n",
            r"CLASSES\[200\]: must be an exception class, an HTTP st",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_by_kind_file_and_cause(jobs: Path, source: str, cause: str) -> None:
    write(jobs, "bad", handler=source)
    with pytest.raises(KindNotLoadable, match=rf"kind bad: .*bad/handler.py: {cause}"):
        load_kind(jobs, "bad")


def test_a_kind_without_a_handler_file_is_refused(jobs: Path) -> None:
    with pytest.raises(KindNotLoadable, match=r"gone/handler.py: the file does not exist"):
        load_kind(jobs, "gone")


def test_a_failed_import_is_tried_again_in_the_next_invocation(jobs: Path) -> None:
    write(jobs, "later", handler="from . import words\ndef run(job): return words.NAME")
    with pytest.raises(KindNotLoadable):
        load_kind(jobs, "later")
    (jobs / "later" / "words.py").write_text("NAME = 'there'")
    import importlib

    importlib.invalidate_caches()
    assert load_kind(jobs, "later").run(None) == "there"
