"""What is around the service: the guide's commands, a client of the Open Inference Protocol, dashboard and alerts."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from served import served_here, until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("served") / "data") as opened:
        yield opened


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_guide_goes_from_a_row_to_its_late_label(http):
    guide = (ROOT / "docs/service.md").read_text()
    blocks = [block for block in re.findall(r"```sh\n(.*?)```", guide, re.DOTALL) if "curl" in block]
    script = "".join(blocks).replace("localhost:8000", f"localhost:{http.port}")
    script = script.replace("curl ", "curl -sS --fail-with-body ")
    said = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert '"label":null' in said.stdout
    assert re.search(r'"state":"(learned|waits to be learned)"', said.stdout)
    assert http.get("/v1/streams/payments/samples/a1").status_code == 404  # the guide ends with forgetting it
    until(http, "/v1/streams/payments", lambda shown: shown["forgotten"] == 1)
    python = re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1]
    exec(python.replace("127.0.0.1:8000", f"127.0.0.1:{http.port}").replace('"payments"', '"python"'), {})
    assert http.get("/v1/streams/python").status_code == 200


def test_a_client_of_the_open_inference_protocol(http):
    """Triton's, which asks as deployment tools do."""
    triton = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    from tritonclient.utils import InferenceServerException  # noqa: PLC0415 (if it is there)

    http.put("/v1/streams/oip", json={})
    rows = [{"features": {"x": k % 2, "city": "Bonn"}, "label": k % 2} for k in range(60)]
    http.post("/v1/streams/oip/samples", json={"rows": rows})
    until(http, "/v1/streams/oip", lambda shown: shown["labels"] == 60)
    client = triton.InferenceServerClient(f"127.0.0.1:{http.port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("oip")
    described = client.get_model_metadata("oip")
    assert [one["name"] for one in described["inputs"]] == ["x", "city"]
    x, city = triton.InferInput("x", [2], "FP64"), triton.InferInput("city", [2], "BYTES")
    x.set_data_from_numpy(np.array([0.0, 1.0]), binary_data=False)
    city.set_data_from_numpy(np.array(["Bonn", "Bonn"], dtype=object), binary_data=False)
    wanted = [triton.InferRequestedOutput(name, binary_data=False) for name in ("label", "probabilities", "id")]
    answer = client.infer("oip", [x, city], outputs=wanted)
    assert answer.as_numpy("label").tolist() == ["0", "1"]
    assert answer.as_numpy("probabilities").shape == (2, 2)
    assert http.get(f"/v1/streams/oip/samples/{answer.as_numpy('id')[0]}").json()["predicted"] == 0
    with pytest.raises(InferenceServerException, match="there is no stream 'none'"):
        client.infer("none", [x, city], outputs=wanted)
    client.close()


def test_the_dashboard_and_the_alerts_ask_for_what_there_is(http):
    http.put("/v1/streams/m", json={})
    http.post("/v1/streams/m/samples", json={"rows": [{"features": {"x": 1}, "label": 1}]})
    http.post("/v1/streams/m/predict", json={"rows": [{"id": "a", "features": {"x": 1}}]})
    while http.get("/v1/streams/m").json()["accuracy"] is None:
        http.post("/v1/streams/m/predict", json={"rows": [{"id": "b", "features": {"x": 1}}]})
        said = http.post("/v1/streams/m/predict", json={"rows": [{"features": {"x": 1}}]}).json()["predictions"][0]
        http.post("/v1/streams/m/labels", json={"labels": [{"id": said["id"], "label": 1}]})
    there = set(re.findall(r"^(devdan_\w+)", http.get("/metrics").text, re.MULTILINE))
    dashboard = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
    alerts = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    assert len(asked) > 20
    for expression in asked:
        names = re.findall(r"devdan_\w+", expression)
        assert names, expression
        assert set(names) <= there, expression


def test_the_unit_starts_what_there_is():
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str
    unit.read(ROOT / "deploy/devdan.service")
    assert " serve --data /var/lib/devdan " in unit["Service"]["ExecStart"]
    assert "devdan[serve" not in unit["Service"]["ExecStart"]


@pytest.mark.parametrize(
    ("name", "extras", "python"),
    [("image.txt", ("serve", "postgresql", "kafka"), "3.12"), ("test.txt", ("docs", "lint"), "3.11")],
)
def test_locks_have_what_is_needed_with_hashes_and_name_no_host(name, extras, python):
    """Also what builds the package, and what extras name of other extras."""
    text = (ROOT / "locks" / name).read_text()
    assert "://" not in text
    locked = {}
    for entry in re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", text).strip()):
        first, *hashes = entry.split(" \\\n")
        assert hashes, first
        assert all(re.fullmatch(r"\s+--hash=sha256:[0-9a-f]{64}", one) for one in hashes), first
        one = Requirement(first)
        locked.setdefault(canonicalize_name(one.name), []).append(one)
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], "hatchling", "editables"]
    known, new = set(), set(extras)
    while new:
        known |= new
        found = [Requirement(text) for extra in new for text in project["optional-dependencies"][extra]]
        asked += [str(one) for one in found if one.name != "devdan"]
        new = {extra for one in found if one.name == "devdan" for extra in one.extras} - known
    where = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    for one in map(Requirement, asked):
        if one.marker is None or one.marker.evaluate(where):
            of_here = [
                own for own in locked[canonicalize_name(one.name)] if not own.marker or own.marker.evaluate(where)
            ]
            (version,) = [own.specifier for own in of_here]
            (pinned,) = version
            assert pinned.operator == "=="
            assert pinned.version in one.specifier, one


def test_the_image_installs_what_is_locked():
    content = (ROOT / "deploy/Dockerfile").read_text()
    assert re.search(r"pip install .*--require-hashes -r /source/locks/image\.txt", content)
    assert re.search(r"pip install .*--no-deps --no-build-isolation /source", content)
    assert "python:3.12" in content
    assert re.search(r"^FROM python@\$\{DIGEST:\?\S+\}$", content, re.MULTILINE)  # without a digest the build fails
    assert re.findall(r"^(?:ARG|FROM) .*", content, re.MULTILINE)[0] == "ARG DIGEST"
