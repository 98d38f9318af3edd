"""The server's description of its API is valid, and the server answers as it says, whatever it is asked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("openapi_spec_validator", reason="it and schemathesis need Python 3.10")

ROOT = Path(__file__).resolve().parents[2]
YARD = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "yard"
PATIENCE_S = 30
FUZZ_S = 20

# Streams go on for ever; what is submitted would be run; and a token that is revoked ends the test.
NOT_ASKED = ["--exclude-path-regex", "^/v1/(agent|watch|events)$"]
NOT_DONE = ["--exclude-operation-id", "submit", "--exclude-operation-id", "revoke_token"]
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=1)
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the server does not come up")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    if not YARD.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{YARD} is not built")
        pytest.skip(f"{YARD} is not built")
    port, data = free_port(), tmp_path / "data"
    line = [str(YARD), "up", "--data", str(data), "--listen", f"127.0.0.1:{port}", "--fake", "h100:4"]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(line, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, process)
        yield url, (data / "token").read_text().strip()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_the_description_is_valid(server: tuple[str, str], tmp_path: Path) -> None:
    url, _ = server
    with urllib.request.urlopen(f"{url}/v1/openapi.json", timeout=PATIENCE_S) as answer:
        document = json.load(answer)
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document))
    valid = subprocess.run([sys.executable, "-m", "openapi_spec_validator", str(file)], capture_output=True, text=True)
    assert valid.returncode == 0, (valid.stdout + valid.stderr)[:2000]
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) > 30 and len(set(names)) == len(names)


def test_the_server_answers_as_it_says(server: tuple[str, str], tmp_path: Path) -> None:
    url, token = server
    line = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/v1/openapi.json", "--no-color"]
    line += ["--header", f"Authorization: Bearer {token}", "--checks", CHECKS, "--phases", "coverage,fuzzing"]
    line += ["--max-time", str(FUZZ_S), "--max-examples", "10", "--request-timeout", "10", "--continue-on-failure"]
    line += ["--generation-deterministic", "--suppress-health-check", "all", *NOT_ASKED, *NOT_DONE]
    # It leaves what it learned in the folder where it runs.
    said = subprocess.run(line, capture_output=True, text=True, timeout=3 * FUZZ_S, cwd=tmp_path)
    assert said.returncode == 0, said.stdout[-4000:] + said.stderr[-1000:]
    assert "Tested:" in said.stdout, said.stdout[-4000:]
