"""A kind's own packages, the cache, and errors that say what to do."""

import shutil
from pathlib import Path

import pytest

from stacks.constructs.bundles import CACHE, build_function, build_layer
from stacks.constructs.folders import built, digest
from stacks.constructs.packages import PackagesError, distributions, read_pins
from tests.infra.built import ARM, INTEL, elf_machine, files
from tests.support.synth import JOBS_DIR

OWN = "cffi==2.1.1\npycparser==3.12\ntyping_extensions==4.16.0\nboto3==1.44.8\nbotocore==1.44.8\n"
OWN += "jmespath==1.1.0\ns3transfer==0.19.3\nurllib3==2.8.0\npython-dateutil==2.9.0.post0\nsix==1.17.0\n"


def test_a_kinds_own_packages_ship_in_its_function_for_its_processor(tmp_path: Path) -> None:
    """Its requirements.txt is honoured, without what the runtime and the layer have."""
    jobs = _kind(tmp_path, "work", OWN)
    function = build_function("poller", ARM, jobs, kinds=["work"])
    assert distributions(function) == {"cffi": "2.1.1", "pycparser": "3.12"}
    compiled = {elf_machine(path) for path in files(function).values()} - {None}
    assert compiled == {"arm64"}
    assert {elf_machine(p) for p in files(build_function("poller", INTEL, jobs, kinds=["work"])).values()} - {None} == {
        "x86_64"
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("xmltodict>=1\n", "work/requirements.txt line 1: 'xmltodict>=1' does not: every line pins one package"),
        ("-r other.txt\n", "work/requirements.txt line 1"),
        ("cffi==2.1.1\n", "needs pycparser too, which no line pins; add pycparser=="),
        ("typing_extensions==4.1.0\n", "layers/stopline/requirements.txt pins 4.16.0 for the same function"),
        ("xmltodict==0.0.0.1\n", "pip got no such set of wheels for the function's machine"),
    ],
)
def test_packages_that_cannot_be_had_are_an_error_naming_file_rule_and_fix(
    tmp_path: Path, text: str, told: str
) -> None:
    """None of them is found out by the first invocation."""
    jobs = _kind(tmp_path, "work", text)
    with pytest.raises(PackagesError) as raised:
        build_function("poller", ARM, jobs, kinds=["work"], cache=tmp_path / "cache")
    assert told in str(raised.value)
    assert "work/requirements.txt" in str(raised.value)
    assert len(str(raised.value)) < 2500


def test_kinds_that_share_a_poller_must_pin_one_version(tmp_path: Path) -> None:
    """They share a folder."""
    _kind(tmp_path, "one", "xmltodict==1.0.4\n")
    jobs = _kind(tmp_path, "two", "xmltodict==1.0.2\n")
    with pytest.raises(PackagesError, match=r"two/requirements\.txt: xmltodict==1\.0\.2: one/requirements\.txt pins"):
        build_function("poller", ARM, jobs, kinds=["one", "two"], cache=tmp_path / "cache")


def test_every_pin_of_the_layer_is_read() -> None:
    """Also one with extras or a comment."""
    path = JOBS_DIR.parents[1] / "layers" / "stopline" / "requirements.txt"
    pins = read_pins({"layer": path}).versions
    assert pins["psycopg"] == pins["psycopg-binary"]
    assert "aws-lambda-powertools" in pins


def test_the_same_input_gives_the_same_bytes_modes_and_times_elsewhere(tmp_path: Path) -> None:
    """LD-01: a deploy without a change uploads nothing, from whatever machine. pip itself runs again here."""
    try:
        again = build_layer(ARM, tmp_path / "cache")
    except PackagesError as error:
        if "no index was reached" in str(error):
            pytest.skip("no package index in reach: the layer cannot be built a second time")
        raise
    first = build_layer(ARM)
    assert again.name == first.name
    assert digest(again) == digest(first)
    assert _stats(again) == _stats(first)


def test_a_second_build_needs_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LD-01: what was fetched once is there offline, also for a layer whose library changed."""
    shutil.copytree(CACHE / "packages", tmp_path / "packages")
    build_layer(ARM)
    monkeypatch.setattr("stacks.constructs.packages._python_with_pip", lambda: "/nonexistent")
    assert digest(build_layer(ARM, tmp_path)) == digest(build_layer(ARM))


def test_a_changed_file_changes_its_function_and_no_other(tmp_path: Path) -> None:
    """The migrator runs again for a policy, a poller is replaced for its code, neither for the other's."""
    jobs = tmp_path / "jobs"
    shutil.copytree(JOBS_DIR, jobs)

    def build() -> dict[str, str]:
        poller = build_function("poller", ARM, jobs, kinds=["close_conversation"], cache=tmp_path / "cache")
        migrator = build_function("migrator", ARM, jobs, kinds=["close_conversation"], cache=tmp_path / "cache")
        return {"poller": digest(poller), "migrator": digest(migrator)}

    first = build()
    _append(jobs / "close_conversation" / "prompt.py", "# changed\n")
    second = build()
    assert second["poller"] != first["poller"]
    assert second["migrator"] == first["migrator"]
    _append(jobs / "close_conversation" / "source.sql", "-- changed\n")
    assert build()["migrator"] != first["migrator"]


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """The next one starts afresh instead of shipping half a folder."""

    def half(folder: Path) -> None:
        (folder / "half.py").write_text("")
        raise PackagesError("test", "stops half way")

    with pytest.raises(PackagesError):
        built(tmp_path, "thing", "key", half)
    assert not list(tmp_path.rglob("half.py"))
    whole = built(tmp_path, "thing", "key", lambda folder: _append(folder / "whole.py", ""))
    assert list(files(whole)) == ["whole.py"]


def _kind(folder: Path, name: str, requirements: str) -> Path:
    kind = folder / "jobs" / name
    kind.mkdir(parents=True)
    (kind / "handler.py").write_text("def run(job):\n    return None\n")
    (kind / "requirements.txt").write_text(requirements)
    return folder / "jobs"


def _append(path: Path, text: str) -> None:
    path.write_text((path.read_text() if path.exists() else "") + text)


def _stats(folder: Path) -> dict[str, tuple[int, int]]:
    return {name: (path.stat().st_mode, int(path.stat().st_mtime)) for name, path in files(folder).items()}
