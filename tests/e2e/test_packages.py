"""What ships is all that a function needs beside Lambda's own runtime."""

from pathlib import Path

from stacks.constructs.bundles import build_layer
from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import HERE, Deployment
from tests.e2e.harness.installed import installed
from tests.support.database import Database


def test_every_module_comes_from_the_layer_the_runtime_or_the_functions_own_code(
    db: Database, faults: Deployment, start: Start
) -> None:
    """LD-01: there are no site-packages; psycopg is the binary one of the layer, the SDK the runtime's."""
    poller = start(faults.function("poller of work", db))
    job = db.enqueue("work", {"do": "origins"}).job_id or 0
    assert poller.invoke()["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    layer, runtime = poller.function.layer / "python", installed() / "runtime"
    homes = {"boto3": runtime, "botocore": runtime, "urllib3": runtime, "handler": poller.function.code}
    for module, file in db.job(job)["result"].items():
        assert Path(file).resolve().is_relative_to(homes.get(module, layer).resolve()), f"{module} is {file}"


def test_a_kinds_own_package_is_found_with_its_compiled_part(db: Database, faults: Deployment, start: Start) -> None:
    """LD-01: the wheel is the one for the function's machine."""
    poller = start(faults.function("poller of packaged", db))
    job = db.enqueue("packaged", {"n": 7}).job_id or 0
    assert poller.invoke()["kinds"]["packaged"]["outcomes"] == {"succeeded": 1}
    assert db.job(job)["result"] == "81a16e07"


def test_the_layer_for_this_machine_differs_from_the_deployed_one_in_compiled_files_only(app: Deployment) -> None:
    """LD-01: what these tests run is what a deploy uploads."""
    deployed, here = app.layer_asset, build_layer(HERE)
    assert sources(deployed) == sources(here)
    assert sources(here)


def test_the_layer_brings_nothing_that_the_runtime_has(app: Deployment) -> None:
    runtime = {path.name for path in (installed() / "runtime").iterdir() if path.suffix != ".dist-info"}
    shipped = {path.name for path in (app.layer_asset / "python").iterdir()}
    assert shipped & runtime == set()


def sources(layer: Path) -> dict[str, bytes]:
    """The packages' Python files by their place. The library's own may be edited while the tests run."""
    found = {path.relative_to(layer / "python"): path for path in layer.rglob("*.py")}
    return {str(place): path.read_bytes() for place, path in found.items() if place.parts[0] != "stopline"}
