"""An agent that talks to servers of its own: in threads, in children, by TCP, by UDP and by unix sockets."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from multiprocessing.managers import BaseManager, SyncManager
from xmlrpc.client import ServerProxy
from xmlrpc.server import SimpleXMLRPCServer

import httpx
import uvicorn
from fastapi import FastAPI

import reenact

NETWORK = "network" in sys.argv
folder = tempfile.mkdtemp()


@reenact.tool
def look(word: str) -> str:
    return f"{word} {time.time_ns()}"


def over_http() -> None:
    app = FastAPI()
    app.get("/look")(look)
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    print(httpx.get(f"http://127.0.0.1:{port}/look?word=one").text)
    print(urllib.request.urlopen(f"http://localhost:{port}/look?word=two").read())
    server.should_exit = True
    thread.join()
    remote = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    remote.register_function(lambda a, b: a + b, "add")
    threading.Thread(target=remote.serve_forever, daemon=True).start()
    print(ServerProxy(f"http://127.0.0.1:{remote.server_address[1]}").add(2, 3))
    remote.shutdown()


def over_sockets() -> None:
    server = socket.create_server(("", 0))
    threading.Thread(target=lambda: server.accept()[0].sendall(b"over TCP"), daemon=True).start()
    print(socket.create_connection(("localhost", server.getsockname()[1])).recv(100))
    hears, says = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    hears.bind(("127.0.0.1", 0))
    says.sendto(b"over UDP", hears.getsockname())
    print(hears.recv(100))


CHILD = """
import socket, sys
if sys.argv[1] == "tcp":
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
else:
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1])
    server.listen()
    print("listens", flush=True)
server.accept()[0].sendall(b"a child's")
"""


def to_children(how: str) -> None:
    words = [sys.executable, "-I", "-S", "-c", CHILD, how]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        told = child.stdout.readline().strip()
        if how == "tcp":
            print(socket.create_connection(("127.0.0.1", int(told))).recv(100))
        else:
            talk = socket.socket(socket.AF_UNIX)
            talk.connect(how)
            print(talk.recv(100))
    print(child.returncode)


class Counter:
    count = 0

    def add(self) -> int:
        self.count += 1
        return self.count


class Manager(BaseManager):
    pass


Manager.register("Counter", Counter)


def over_managers() -> None:
    with SyncManager() as manager:
        shared = manager.list([1])
        shared.append(2)
        print(list(shared))
    if NETWORK:
        with Manager(address=("127.0.0.1", 0), authkey=b"key") as manager:
            counter = manager.Counter()
            print(counter.add(), counter.add())
            del counter


async def over_unix_sockets() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"heard " + await reader.readline())
        writer.close()

    os.chdir(folder)
    for path, at in ((f"{folder}/whole.sock", f"{folder}/whole.sock"), ("part.sock", f"{folder}/part.sock")):
        server = await asyncio.start_unix_server(answer, path)
        reader, writer = await asyncio.open_unix_connection(at)
        writer.write(b"a word\n")
        print(await reader.readline())
        writer.close()
        server.close()


if __name__ == "__main__":
    print(look("first"))
    if NETWORK:
        over_http()
        over_sockets()
        to_children("tcp")
    to_children(f"{folder}/child.sock")
    over_managers()
    asyncio.run(over_unix_sockets())
