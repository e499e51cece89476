"""What is uploaded: for the right machine, small, nothing twice, and every handler imports from it."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from stacks.constructs.bundles import build_function, build_layer
from stacks.constructs.machine import Machine
from stacks.constructs.packages import IN_THE_RUNTIME, distributions
from stopline.policy import Policy
from tests.infra.built import ARM, HERE, INTEL, elf_machine, files, run_as_lambda, runtime_packages
from tests.support.synth import JOBS_DIR, Synthesis, Template

LAYER_MB = 45
UNZIPPED_BYTES = 262_144_000
HANDLERS = ("poller", "sweeper", "monitor", "migrator", "bootstrap")
_LIBRARY = re.compile(r"-[0-9a-f]{8}\.so(\.[0-9.]+)?$")


@pytest.mark.parametrize("machine", [ARM, INTEL])
def test_every_compiled_file_of_the_layer_is_for_the_functions_processor_and_python(machine: Machine) -> None:
    """LD-01: no file for another processor, and extension modules for the function's Python only."""
    found = files(build_layer(machine))
    compiled = {name: elf_machine(path) for name, path in found.items() if elf_machine(path)}
    assert len(compiled) > 10
    assert set(compiled.values()) == {machine.architecture}
    tags = {tag for name in compiled for tag in re.findall(r"\.cpython-(\d+)", name)}
    assert tags == {machine.python.replace(".", "")}


def test_the_layer_has_pythons_folder_on_top_and_the_binary_driver_that_was_pinned() -> None:
    """LD-01: a layer without python/ is not on the path, and pip falls back to an older driver on older platforms."""
    layer = build_layer(ARM)
    assert [entry.name for entry in layer.iterdir()] == ["python"]
    versions = distributions(layer / "python")
    assert versions["psycopg-binary"] == versions["psycopg"]
    assert versions["psycopg"].startswith("3.3.")
    assert (layer / "python" / "stopline" / "store" / "ca" / "aws-rds.pem").is_file()


def test_both_processors_get_the_same_files_and_versions() -> None:
    """LD-01: whoever changes the processor of a deployment changes nothing else."""
    assert _alike(build_layer(ARM)) == _alike(build_layer(INTEL))
    assert distributions(build_layer(ARM) / "python") == distributions(build_layer(INTEL) / "python")


def test_layer_and_function_stay_far_below_lambdas_limit(policies: dict[str, Policy]) -> None:
    """LD-02: unzipped, and without the SDK."""
    layer = _size(build_layer(ARM))
    assert layer < LAYER_MB * 1_000_000
    assert layer + max(_size(folder) for folder in _functions(policies)) < UNZIPPED_BYTES / 4


def test_nothing_ships_that_the_runtime_has_or_the_layer_already(policies: dict[str, Policy]) -> None:
    """LD-02: neither the SDK nor what it brings, and no file both in the layer and in a function."""
    layer = build_layer(ARM) / "python"
    assert not set(distributions(layer)) & IN_THE_RUNTIME
    names = {entry.name for entry in layer.iterdir()}
    assert not names & {"boto3", "botocore", "aws_xray_sdk", "bin", "tests"}
    assert not [name for name in files(layer) if name.endswith((".pyc", "RECORD", "INSTALLER"))]
    for function in _functions(policies):
        assert not {entry.name for entry in function.iterdir()} & names


def test_licences_ship_with_the_packages() -> None:
    """psycopg is under the LGPL: who gets the layer gets its licence too."""
    layer = build_layer(ARM) / "python"
    for info in layer.glob("*.dist-info"):
        assert [path for path in info.rglob("*") if "LICENSE" in path.name.upper()], info.name


@pytest.mark.parametrize("handler", HANDLERS)
def test_every_handler_imports_from_exactly_what_ships(
    handler: str, policies: dict[str, Policy], tmp_path: Path
) -> None:
    """LD-01: in a process that has the function, the layer and the runtime's packages, and nothing of this machine."""
    function = build_function(handler, HERE, JOBS_DIR, kinds=sorted(policies))
    code = "import handler, psycopg; assert callable(handler.handler); print(psycopg.pq.__impl__)"
    done = run_as_lambda(code, function, runtime_packages(tmp_path / "runtime"))
    assert done.stdout.split() == ["binary"], done.stderr


def test_every_kind_imports_from_exactly_what_ships(policies: dict[str, Policy], tmp_path: Path) -> None:
    """LD-01: as the poller imports it."""
    runtime = runtime_packages(tmp_path / "runtime")
    for kind in policies:
        function = build_function("poller", HERE, JOBS_DIR, kinds=[kind])
        loading = "from pathlib import Path; from stopline.worker.loading import load_kind"
        code = f"{loading}; print(load_kind(Path({str(function)!r}) / 'jobs', {kind!r}).kind)"
        done = run_as_lambda(code, function, runtime)
        assert done.stdout.split() == [kind], done.stderr


def test_the_environment_of_the_import_tests_really_is_bare(tmp_path: Path) -> None:
    """A test that could see this machine's packages would prove nothing."""
    function = build_function("sweeper", HERE, JOBS_DIR)
    done = run_as_lambda("import typer", function, runtime_packages(tmp_path / "runtime"))
    assert "No module named 'typer'" in done.stderr


def test_a_poller_gets_its_kinds_only_and_the_migrator_everybodys_policies(policies: dict[str, Policy]) -> None:
    """A kind's code is in no other kind's function."""
    poller = files(build_function("poller", ARM, JOBS_DIR, kinds=["accounting_export"]))
    assert {name.split("/")[1] for name in poller if name.startswith("jobs/")} == {"accounting_export"}
    migrator = files(build_function("migrator", ARM, JOBS_DIR, kinds=sorted(policies)))
    assert {name for name in migrator if name.endswith("policy.toml")} == {
        f"jobs/{kind}/policy.toml" for kind in policies
    }
    assert "jobs/close_conversation/source.sql" in migrator
    # Of the code only which hooks there are.
    assert {name for name in migrator if name.startswith("jobs/") and name.endswith(".py")} == {
        f"jobs/{kind}/handler.py" for kind, policy in policies.items() if policy.reconciles
    }
    assert "sql/migrations/0001_tables.sql" in migrator
    bootstrap = files(build_function("bootstrap", ARM, JOBS_DIR, kinds=sorted(policies)))
    assert [name for name in bootstrap if name.startswith("sql/")] == ["sql/bootstrap.sql"]


def test_the_template_uploads_what_was_built(synthesized: Callable[[str], Synthesis]) -> None:
    """LD-01: function and layer name the same processor and Python, and the assets are those built for them."""
    for example, machine in (("default", ARM), ("x86", INTEL)):
        synthesis = synthesized(example)
        template = synthesis.stack("Jobs")
        (layer,) = _resources(template, "AWS::Lambda::LayerVersion")
        assert layer["Properties"]["CompatibleArchitectures"] == [machine.architecture]
        assert layer["Properties"]["CompatibleRuntimes"] == [f"python{machine.python}"]
        shipped = files(synthesis.folder / layer["Metadata"]["aws:asset:path"]) if "Metadata" in layer else None
        assert shipped is None or set(shipped) == set(files(build_layer(machine)))
        ours = [function for function in _resources(template, "AWS::Lambda::Function") if _is_ours(function)]
        assert len(ours) > 4
        for function in ours:
            assert function["Properties"]["Architectures"] == [machine.architecture]
            assert function["Properties"]["Runtime"] == f"python{machine.python}"
            assert len(function["Properties"]["Layers"]) == 1


def _is_ours(function: Template) -> bool:
    return str(function["Properties"].get("Runtime", "")).startswith("python")


def _resources(template: Template, kind: str) -> list[Template]:
    return [resource for resource in template["Resources"].values() if resource["Type"] == kind]


def _functions(policies: dict[str, Policy]) -> Sequence[Path]:
    return [build_function(handler, ARM, JOBS_DIR, kinds=sorted(policies)) for handler in HANDLERS]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in files(folder).values())


def _alike(layer: Path) -> list[str]:
    """Names of files without what must differ: the processor, and the checksums that wheels put into library names."""
    plain = (re.sub(r"aarch64|x86_64", "CPU", name) for name in files(layer))
    return sorted(_LIBRARY.sub(".so", name) for name in plain)
