"""Programs that try to change the world around them, each in its own way; `OUT` is what the environment names."""

from __future__ import annotations

HEAD = """
import ctypes, os, signal, socket, subprocess, sys
folder = os.environ["FOLDER"]
kept, other = folder + "/kept.txt", folder + "/new"
port, udp_port = int(os.environ["PORT"]), int(os.environ["UDP_PORT"])
abstract, victim = os.environ["ABSTRACT"], int(os.environ["VICTIM"])
libc = ctypes.CDLL(None, use_errno=True)
def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

EFFECTS = {
    "append": 'open(kept, "a").write("more")',
    "truncate": "os.truncate(kept, 3)",
    "write in place": 'f = open(kept, "r+"); f.write("XX")',
    "remove": "os.remove(kept)",
    "make": 'open(other, "w").write("x")',
    "make a folder": "os.mkdir(other)",
    "remove a tree": 'import shutil; shutil.rmtree(folder + "/sub")',
    "rename": "os.rename(kept, other)",
    "replace": 'open(other, "w").write("x"); os.replace(other, kept)',
    "move into a temporary folder": "import shutil, tempfile; shutil.move(kept, tempfile.mkdtemp())",
    "symbolic link": "os.symlink(kept, other)",
    "hard link": "os.link(kept, other)",
    "mode": "os.chmod(kept, 0o600)",
    "times": "os.utime(kept, (1, 1))",
    "fifo": "os.mkfifo(other)",
    "socket file": "socket.socket(socket.AF_UNIX).bind(other)",
    "mmap": 'import mmap; f = open(kept, "r+b"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b"X"; m.flush()',
    "C": 'called(libc.write(called(libc.open(kept.encode(), os.O_WRONLY)), b"C", 1))',
    "copy_file_range": 'a = os.open(folder + "/app.log", 0); b = os.open(other, 66); os.copy_file_range(a, b, 5)',
    "sendfile": 'a = os.open(folder + "/app.log", 0); b = os.open(other, 66); os.sendfile(b, a, 0, 5)',
    "by /proc/self/cwd": 'os.chdir(folder); open("/proc/self/cwd/new", "w").write("x")',
    "by /dev/..": 'open("/dev/.." + other, "w").write("x")',
    "by /proc/self/root": 'open("/proc/self/root" + other, "w").write("x")',
    "sqlite": 'import sqlite3; d = sqlite3.connect(folder + "/data.db"); d.execute("DELETE FROM t"); d.commit()',
    "sqlite WAL": (
        'import sqlite3; d = sqlite3.connect(folder + "/data.db"); d.execute("PRAGMA journal_mode=WAL")\n'
        'd.execute("INSERT INTO t VALUES (2)"); d.commit()'
    ),
    "sqlite ATTACH": (
        'import sqlite3; d = sqlite3.connect(":memory:"); d.execute("ATTACH ? AS o", (folder + "/data.db",))\n'
        'd.execute("INSERT INTO o.t VALUES (3)"); d.commit()'
    ),
    "sqlite VACUUM INTO": 'import sqlite3; sqlite3.connect(folder + "/data.db").execute("VACUUM INTO ?", (other,))',
    "dbm": 'import dbm.dumb; d = dbm.dumb.open(other); d["a"] = "b"; d.close()',
    "log that rotates": (
        "import logging.handlers\n"
        'h = logging.handlers.RotatingFileHandler(folder + "/app.log", maxBytes=50, backupCount=1)\n'
        'logging.getLogger().addHandler(h); logging.warning("x" * 99); logging.warning("y" * 99)'
    ),
    "a shell": 'subprocess.run(["/bin/sh", "-c", "echo x >> kept.txt; rm app.log"], cwd=folder, check=True)',
    "a child of this interpreter": (
        'subprocess.run([sys.executable, "-I", "-S", "-c", f"open({other!r}, \'w\').write(\'x\')"], check=True)'
    ),
    "fork": "os.fork() or open(other, 'w').write('x'); os.wait()",
    "multiprocessing": (
        "import multiprocessing as m\n"
        'p = m.get_context("fork").Process(target=lambda: open(other, "w").write("x")); p.start(); p.join()'
    ),
    "tcp": 'socket.create_connection(("127.0.0.1", port), 2)',
    "tcp of a shell": 'subprocess.run(["bash", "-c", f"echo x > /dev/tcp/127.0.0.1/{port}"], check=True)',
    "tcp in C": (
        "s = called(libc.socket(2, 1, 0))\n"
        'a = (2).to_bytes(2, "little") + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)\n'
        "called(libc.connect(s, a, 16))"
    ),
    "udp": 'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", udp_port))',
    "unix": 'socket.socket(socket.AF_UNIX).connect(folder + "/s.sock")',
    "unix in C": (
        "s = called(libc.socket(1, 1, 0))\n"
        'a = (1).to_bytes(2, "little") + (folder + "/s.sock").encode() + b"\\0"\n'
        "called(libc.connect(s, a, len(a)))"
    ),
    "unix datagram": 'socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", folder + "/d.sock")',
    "unix by a link": 'os.symlink(folder + "/s.sock", "/tmp/l-%d" % victim); '
    'socket.socket(socket.AF_UNIX).connect("/tmp/l-%d" % victim)',
    "abstract": 'socket.socket(socket.AF_UNIX).connect("\\0" + abstract)',
    "stop another process": "os.kill(victim, signal.SIGSTOP)",
    "kill another process": "os.kill(victim, signal.SIGKILL)",
    "kill by pidfd": "signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL)",
    "priority": "os.setpriority(os.PRIO_PROCESS, victim, 5)",
    "affinity": "os.sched_setaffinity(victim, {0})",
    "limits": "import resource; resource.prlimit(victim, resource.RLIMIT_NOFILE, (64, 64))",
    "shared memory": (
        "from multiprocessing import shared_memory, resource_tracker\n"
        "m = shared_memory.SharedMemory(create=True, size=9, name='reenact-%d' % victim)\n"
        "resource_tracker.unregister(m._name, 'shared_memory')"
    ),
    "shared memory of System V": "called(libc.shmget(victim, 4096, 0o1600))",
}
"""Each changes something that is seen from outside, where nothing keeps it from that."""

ESCAPES = {
    "every process": "os.kill(-1, signal.SIGKILL)",
    "uncover a folder": "called(libc.umount2(os.environ['TOP'].encode(), 2)); open(kept, 'a').write('x')",
    "uncover it as root of a new namespace": (
        "called(libc.unshare(0x10020000)); called(libc.umount2(os.environ['TOP'].encode(), 2))\n"
        "open(kept, 'a').write('x')"
    ),
    "make the root writable": "called(libc.mount(None, b'/', None, 0x1020, None)); open('/new', 'w').write('x')",
    "another process's root": "open(f'/proc/{victim}/root{kept}', 'a').write('x')",
    "the first process's root": "open(f'/proc/1/root{kept}', 'a').write('x')",
    "another namespace": "os.setns(os.open(f'/proc/{victim}/ns/mnt', 0)); open(kept, 'a').write('x')",
    "the disk": "os.mknod(other, 0o60600, os.stat(folder).st_dev); open(other, 'r+b').write(b'')",
    "a socket of the machine's host": "socket.socket(40, socket.SOCK_STREAM).connect((2, 1))",
    "a key of the kernel": "open('/proc/sys/kernel/printk', 'w').write('1')",
    "the kernel's emergency key": "open('/proc/sysrq-trigger', 'w').write('h'); assert False",
    "the name of the machine": "socket.sethostname('pwned')",
    "the clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 1)",
    "the processes' groups": "os.mkdir('/sys/fs/cgroup/reenact')",
    "trace the first process": "called(libc.ptrace(16, 1, 0, 0)); assert False",
    "a file by its handle": (
        "h = ctypes.create_string_buffer((128).to_bytes(4, 'little') + bytes(132)); m = ctypes.c_int()\n"
        "called(libc.name_to_handle_at(-100, kept.encode(), h, ctypes.byref(m), 0))\n"
        "called(libc.open_by_handle_at(os.open(folder, 0), h, 2)); assert False"
    ),
    "a key of the session": (
        "number = 248 if os.uname().machine == 'x86_64' else 217\n"
        "called(libc.syscall(number, b'user', b'reenact', b'x', 1, -3)); assert False"
    ),
    "a socket by io_uring": "called(libc.syscall(425, 8, ctypes.create_string_buffer(120))); assert False",
    "the key of the user": "assert not os.listdir(os.environ['SECRET'])",
}
"""Each would reach past a world that is not closed; none is tried outside of one."""

SIDE_WAYS = {
    "the mode, by what is open to read": "os.fchmod(os.open(kept, 0), 0o777)",
    "the mode, by /proc/self/fd": "os.chmod(f'/proc/self/fd/{os.open(kept, 0)}', 0o777)",
    "the mode, by a link in the copy": "os.symlink(kept, 'link'); os.chmod('link', 0o777)",
    "the mode, by another folder": "os.chmod('kept.txt', 0o777, dir_fd=os.open(folder, os.O_PATH))",
    "the times, by what is open to read": "os.utime(os.open(kept, 0), (1, 1))",
    "the owner, by what is open to read": "os.fchown(os.open(kept, 0), 1, 1)",
    "an attribute": "os.setxattr(os.open(kept, 0), 'user.a', b'b')",
    "the flags": (
        "import fcntl; fcntl.ioctl(os.open(kept, 0), 0x40086602, (0x40).to_bytes(8, 'little'))"  # FS_NODUMP_FL
    ),
    "emptied": "os.truncate(kept, 0)",
    "emptied by opening it to read": "os.open(kept, os.O_TRUNC)",
    "a hard link into the copy": "os.link(kept, 'linked'); open('linked', 'a').write('x')",
    "moved into the copy": "os.rename(kept, 'moved')",
    "moved out of the copy": "os.rename('app.log', other)",
    "a nameless file that gets a name": (
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR)\n"
        "called(libc.linkat(-100, b'/proc/self/fd/%d' % f, -100, other.encode(), 0x400))"
    ),
    "a datagram of a pair": "a, _ = socket.socketpair(1, 2); a.sendmsg([b'x'], [], 0, folder + '/d.sock')",
    "a datagram without a connection": "socket.socket(1, 2).sendmsg([b'x'], [], 0, folder + '/d.sock')",
    "a connection by a link in the copy": "os.symlink(folder + '/s.sock', 'l'); socket.socket(1).connect('l')",
    "a connection by /proc": "socket.socket(1).connect('/proc/self/root' + folder + '/s.sock')",
    "a connection of another protocol": "socket.socket(2, 1, 262).connect(('127.0.0.1', port))",
    "a connection with its first words": "socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', port))",
    "a server": "socket.create_server(('127.0.0.1', 0))",
    "another user's priority": "os.setpriority(os.PRIO_USER, 0, 19)",
    "memory of the one that waits": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "a signal to the one that waits": "os.kill(os.getppid(), signal.SIGKILL)",
    "a call of another architecture": (
        "import mmap; m = mmap.mmap(-1, 4096, prot=7, flags=0x62)\n"  # MAP_PRIVATE, ANONYMOUS, 32BIT
        "a = ctypes.addressof(ctypes.c_char.from_buffer(m)); m[100:101 + len(kept)] = kept.encode() + b'\\0'\n"
        "m[:7] = b'\\x53\\xb8\\x0f\\0\\0\\0\\xbb'; m[7:11] = (a + 100).to_bytes(4, 'little')\n"
        "m[11:18] = b'\\xb9\\xff\\x01\\0\\0\\xcd\\x80'\n"
        "m[18:20] = b'\\x5b\\xc3'; sys.exit(ctypes.CFUNCTYPE(ctypes.c_int)(a)() != 0)"
    ),
    "a call of x32": "called(libc.syscall(0x4000005A, kept.encode(), 0o777))",
    "a path that changes meanwhile": (
        "import mmap, time; m = mmap.mmap(-1, 4096); e = time.monotonic() + 1\n"
        "paths = [p.encode().ljust(500, b'\\0') for p in (kept, 'kept.txt')]\n"
        "if os.fork() == 0:\n"
        "    while time.monotonic() < e:\n        for p in paths: m[:500] = p\n"
        "    os._exit(0)\n"
        "at, done = ctypes.addressof(ctypes.c_char.from_buffer(m)), []\n"
        "while time.monotonic() < e: done.append(libc.chmod(ctypes.c_void_p(at), 0o777))\n"
        "assert 0 in done, 'it is not tried'; sys.exit(1)"
    ),
}
"""Each tries to pass by a wall of Landlock or of a filter of system calls, from a copy of `folder`."""
