"""Who gets in: only this machine's own page with the token; pages, files and sockets alike."""

import base64
import http.client
import os
import socket
import subprocess
import sys

import pytest

from wideflow.cli import main
from wideflow.lab.uploads import LIMIT
from wideflow.lab.workers import Workers


def ask(server, path: str, method="GET", body=None, **headers) -> tuple[int, str]:
    host, port = server.base.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    names = {"host": "Host", "origin": "Origin"}
    given = {names.get(name, name): value for name, value in headers.items()}
    connection.request(method, path, body=body, headers=given)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


def upgrade(server, path: str, origin: str | None) -> int:
    """The status with which a WebSocket is answered: 101 is an open one."""
    host, port = server.base.removeprefix("http://").split(":")
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: bokeh, none",
    ]
    lines += [f"Origin: {origin}"] if origin else []
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(line.recv(4096).split()[1])


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?token=wrong",
        "/?token=",
        "/take/figure?tab=x",
        "/ws",
        "/metadata",
        "/autoload.js",
        "/sliders",
    ],
)
def test_a_wrong_token_is_refused(server, path):
    status, text = ask(server, path)
    assert status == 403
    assert "token" in text
    assert server.token not in text


def test_two_tokens_are_refused(server):
    assert ask(server, f"/?token={server.token}&token=x")[0] == 403


def test_the_right_token_opens_the_page(server):
    status, text = ask(server, f"/?token={server.token}")
    assert status == 200
    assert "wideflow lab" in text


def test_a_socket_needs_the_token_and_the_origin(server):
    good = f"/ws?token={server.token}"
    assert upgrade(server, "/ws", server.base) == 403
    assert upgrade(server, "/ws?token=wrong", server.base) == 403
    assert upgrade(server, good, "http://example.org") == 403
    assert upgrade(server, good, server.base.replace("http", "https").replace(":", ":1", 2)) == 403
    assert upgrade(server, good, server.base) == 101  # the answer differs by what was asked alone


def test_foreign_hosts_and_origins_are_refused(server):
    page = f"/?token={server.token}"
    assert ask(server, page, host="example.org")[0] == 403  # a name that points to this machine
    assert ask(server, page, origin="http://example.org")[0] == 403
    assert ask(server, page, origin="null")[0] == 403
    assert (
        ask(
            server,
            f"/upload?token={server.token}",
            "POST",
            b"a,b\n1,2\n",
            origin="http://example.org",
        )[0]
        == 403
    )


def test_it_listens_on_the_loopback_address_only(server):
    port = int(server.base.rsplit(":", 1)[1])
    listening = subprocess.run(["ss", "-ltn"], capture_output=True, text=True, check=False).stdout
    if not listening:
        pytest.skip("`ss` is not installed")
    own = [line.split()[3] for line in listening.splitlines() if f":{port} " in line]
    assert own == [f"127.0.0.1:{port}"]


def test_an_oversized_upload_is_refused_and_not_kept(server):
    status, text = ask(server, f"/upload?token={server.token}", "POST", b"x" * (LIMIT + 1))
    assert status == 413
    assert "8 MB" in text
    # one that hides its length is cut off as well
    chunks = (b"1,2\n" * 2**18 for _ in range(10))
    status, text = ask(server, f"/upload?token={server.token}", "POST", chunks)
    assert status == 413
    assert ask(server, f"/?token={server.token}")[0] == 200


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot be read as CSV"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n", "one row"),
        (b"1,2\n3,4\n", "no header"),
        (b"a,b\n1,x\n2,3\n", "text where numbers are needed"),
        (b"a,b\n1,\n2,3\n", "1 missing value,"),
        (b"PK\x03\x04\x00\xff\xfe", "UTF-8"),
    ],
)
def test_a_defective_table_is_named(server, content, reason):
    status, text = ask(
        server, f"/upload?token={server.token}&name=..%2F..%2Fmy%20file.csv", "POST", content
    )
    assert status == 400
    assert reason in text
    assert "my_file.csv" in text  # the user's name for it, nothing of a path
    assert "wideflow-lab-" not in text


def test_no_path_and_no_code_comes_in(server):
    for data in ("/etc/passwd.csv", "../x.csv", "upload:../../x", "uci:../x", "__import__('os')"):
        query = f"/?token={server.token}&data={data.replace('/', '%2F')}"
        status, text = ask(server, query)
        assert status == 200
        setup = text[text.index('id="setup"') :]
        assert '"data": "wave-1d"' in setup  # the start instead, and a sentence
        assert "must be" in setup or "no longer exists" in setup
    status, text = ask(server, f"/?token={server.token}&width=__import__('os').getpid()&scene=x")
    assert status == 200
    assert "there is no scene" in text
    assert ask(server, f"/take/table?token={server.token}&tab=..%2F..%2Fetc")[0] == 404


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--port", "-1"], "port"),
        (["--port", "70000"], "port"),
        (["/nowhere"], "`state`"),  # it opened the lab at its starting settings
        (["nowhere.nc"], "`state`"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_and_starts_no_process(
    words, named, monkeypatch, capsys
):
    monkeypatch.setattr(Workers, "warm", lambda self: pytest.fail("a process was started"))
    assert main(["lab", "--no-open", *words]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert len(said.strip().splitlines()) == 1


def test_a_port_that_is_taken_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["lab", "--no-open", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(
            [sys.executable, "-m", "wideflow", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "`port`" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
