"""Ordinary programs, which must come to the same in a sealed world: each works in its folder and prints what it saw."""

from __future__ import annotations

HEAD = "import os, sys\nhere = os.getcwd()\n"

PROGRAMS = {
    "where it is": (
        "from pathlib import Path\n"
        "print(here, Path.cwd(), os.getcwdb(), Path('sub').resolve(), os.path.realpath('.'), os.path.abspath('sub/..'))\n"
        "os.chdir('sub'); print(os.getcwd(), sorted(os.listdir('..')), open('../data.txt').read())\n"
        "print(sorted(os.listdir('../..')) == sorted(os.listdir(os.path.dirname(here))), os.path.isdir('../../../..'))\n"
        "os.chdir('..'); import subprocess; print(subprocess.run(['tail', '-n1', '../program.py'], capture_output=True).stdout[-9:])"
    ),
    "files by whole paths": (
        "from pathlib import Path; import shutil\n"
        "p = Path(here, 'new.txt'); p.write_text('a'); print(p.exists(), p.stat().st_size, open(str(p)).read())\n"
        "os.rename(p, here + '/newer.txt'); print(sorted(os.listdir(here)), p.exists())\n"
        "shutil.copy2(here + '/data.txt', here + '/copied.txt'); shutil.move(here + '/copied.txt', here + '/sub/moved.txt')\n"
        "os.makedirs(here + '/x/y/z'); (Path(here) / 'x' / 'y' / 'f').touch(); shutil.rmtree(here + '/sub')\n"
        "print([(os.path.relpath(a, here), b, c) for a, b, c in sorted(os.walk(here)) if '.git' not in a])\n"
        "print(sorted(e.path for e in os.scandir(here)), sorted(str(q) for q in Path(here).rglob('*.t*')))\n"
        "open(b'' + os.fsencode(here) + b'/bytes', 'wb').write(b'b'); print(sorted(os.listdir(os.fsencode(here))))"
    ),
    "links": (
        "os.symlink(here + '/data.txt', here + '/link'); print(os.readlink('link'), open('link').read())\n"
        "os.link('data.txt', here + '/hard'); print(os.path.samefile('hard', here + '/data.txt'))\n"
        "open('link', 'a').write('more'); print(open('data.txt').read(), os.path.realpath(here + '/link'))"
    ),
    "what is known of files": (
        "import stat, shutil\n"
        "os.chmod('data.txt', 0o640); os.utime(here + '/data.txt', (5, 7)); s = os.stat('data.txt')\n"
        "print(stat.filemode(s.st_mode), s.st_mtime); f = os.open('data.txt', os.O_RDONLY); os.fchmod(f, 0o600)\n"
        "os.utime(f, ns=(1, 2)); os.setxattr('data.txt', 'user.a', b'b'); print(os.getxattr(f, 'user.a'), os.fstat(f).st_mtime_ns)\n"
        "os.removexattr(f, 'user.a'); shutil.copystat('data.txt', 'sub/in.txt'); print(os.stat('sub/in.txt').st_mtime_ns)\n"
        "os.truncate('data.txt', 2); print(open('data.txt').read()); os.utime('data.txt'); os.chown('data.txt', -1, -1)\n"
        "os.chmod('sub', 0o711, follow_symlinks=True); print(oct(os.stat('sub').st_mode))\n"
        "try: os.chmod('/tmp', 0o1777)\nexcept PermissionError as e: pass"
    ),
    "temporary files": (
        "import tempfile\n"
        "with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile('w+', dir=d) as f, tempfile.TemporaryFile() as g:\n"
        "    f.write('x'); f.flush(); g.write(b'y'); print(os.listdir(d) == [os.path.basename(f.name)], open(f.name).read())\n"
        "with tempfile.SpooledTemporaryFile(2) as s: s.write(b'xyz'); print(s.tell())"
    ),
    "a log that rotates": (
        "import logging, logging.handlers\n"
        "h = logging.handlers.RotatingFileHandler(here + '/app.log', maxBytes=60, backupCount=2)\n"
        "log = logging.getLogger('a'); log.addHandler(h); log.setLevel(20)\n"
        "for n in range(9): log.info('line %d of the log', n)\n"
        "print({n: open(n).read() for n in sorted(os.listdir('.')) if n.startswith('app.log')})"
    ),
    "a database": (
        "import sqlite3, mmap\n"
        "for path in ('a.db', here + '/b.db', 'file:' + here + '/c.db?mode=rwc'):\n"
        "    d = sqlite3.connect(path, uri=path.startswith('file:')); d.execute('PRAGMA journal_mode=WAL'); d.execute('PRAGMA mmap_size=1000000')\n"
        "    d.execute('CREATE TABLE t (a)'); d.executemany('INSERT INTO t VALUES (?)', [(n,) for n in range(99)]); d.commit()\n"
        "    e = sqlite3.connect(path, uri=path.startswith('file:')); print(e.execute('SELECT sum(a) FROM t').fetchone(), sorted(os.listdir('.')))\n"
        "    e.close(); d.close()\n"
        "f = open('data.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:2] = b'XX'; m.flush(); print(open(here + '/data.txt').read())"
    ),
    "threads": (
        "import threading, queue; from concurrent.futures import ThreadPoolExecutor\n"
        "q = queue.Queue(); ts = [threading.Thread(target=q.put, args=(n,)) for n in range(5)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]; print(sorted(q.get() for _ in ts))\n"
        "print(list(ThreadPoolExecutor(4).map(lambda n: n * n, range(9))))"
    ),
    "asyncio": (
        "import asyncio, signal\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('cat', 'data.txt', stdout=asyncio.subprocess.PIPE)\n"
        "    print(await p.communicate()); loop = asyncio.get_running_loop()\n"
        "    got = asyncio.Event(); loop.add_signal_handler(signal.SIGUSR1, got.set); os.kill(os.getpid(), signal.SIGUSR1); await got.wait()\n"
        "    async def serve(r, w): w.write(b'hello ' + await r.readline()); await w.drain(); w.close()\n"
        "    s = await asyncio.start_unix_server(serve, here + '/s.sock'); r, w = await asyncio.open_unix_connection('s.sock')\n"
        "    w.write(b'you\\n'); print(await r.read()); s.close(); w.close(); print(await asyncio.to_thread(sum, [1, 2]))\n"
        "asyncio.run(main())"
    ),
    "unix sockets": (
        "import socket, threading\n"
        "for name in ('one.sock', here + '/two.sock', '\\0three'):\n"
        "    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect(name)\n"
        "    a, _ = s.accept(); a.sendall(b'hi'); a.close(); print(c.recv(9), c.recv(9)); c.close(); s.close()\n"
        "a, b = socket.socketpair(); socket.send_fds(a, [b'.'], [a.fileno()]); fds = socket.recv_fds(b, 9, 1)[1]; print(len(fds))\n"
        "os.close(fds[0]); a.close(); print(b.recv(9))\n"
        "try: socket.socket(socket.AF_UNIX).connect('nobody.sock')\nexcept FileNotFoundError as e: print(e)"
    ),
    "processes": (
        "import multiprocessing as m\n"
        "from multiprocessing import shared_memory\n"
        "def work(q, l, v):\n    with l: v.value += 1\n    q.put(os.getcwd())\n"
        "def square(n): return n * n\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn', 'forkserver'):\n"
        "        c = m.get_context(how); q, l, v = c.Queue(), c.Lock(), c.Value('i', 0)\n"
        "        ps = [c.Process(target=work, args=(q, l, v)) for _ in range(2)]; [p.start() for p in ps]\n"
        "        print(how, [q.get() for _ in ps]); [p.join() for p in ps]; print(v.value)\n"
        "        with c.Pool(2) as pool: print(pool.map(square, range(5)))\n"
        "    with m.Manager() as manager: d = manager.dict(); d['a'] = 1; print(dict(d))\n"
        "    s = shared_memory.SharedMemory(create=True, size=9); t = shared_memory.SharedMemory(s.name); s.buf[0] = 7\n"
        "    print(t.buf[0]); t.close(); s.close(); s.unlink()"
    ),
    "children": (
        "import subprocess\n"
        "print(subprocess.run('pwd > /dev/null; echo x > made; cat data.txt sub/in.txt', shell=True, capture_output=True))\n"
        "print(subprocess.run(['ls'], cwd=here + '/sub', capture_output=True).stdout, open(here + '/made').read())\n"
        "print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout, os.system('true'))\n"
        "p = subprocess.Popen(['sleep', '60']); p.terminate(); print(p.wait()); print(os.popen('echo hi').read())\n"
        "print(subprocess.run('true | sort', shell=True, start_new_session=True).returncode)\n"
        "os.killpg(os.getpgid(subprocess.Popen(['sleep', '60'], start_new_session=True).pid), 9); print(os.wait()[1])"
    ),
    "a git repository": (
        "import subprocess\n"
        "def git(*words): return subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words], capture_output=True, text=True)\n"
        "print(git('status', '--short').stdout, git('log', '--format=%s').stdout)\n"
        "open('data.txt', 'a').write('more'); print(git('status', '--short').stdout, git('diff', '--stat').stdout)\n"
        "print(git('commit', '-qam', 'second').stderr, git('log', '--format=%s').stdout, git('show', 'HEAD~1:data.txt').stdout)"
    ),
    "archives": (
        "import zipfile, tarfile, gzip, json, csv, pickle, io\n"
        "with zipfile.ZipFile(here + '/a.zip', 'w') as z: z.write('data.txt'); z.writestr('b', 'c')\n"
        "zipfile.ZipFile('a.zip').extractall(here + '/z'); print(sorted(os.listdir('z')))\n"
        "with tarfile.open('a.tgz', 'w:gz') as t: t.add('sub')\n"
        "with tarfile.open(here + '/a.tgz') as t: t.extractall('t')\n"
        "print(open('t/sub/in.txt').read(), gzip.open('a.tgz').read(5) != b'')\n"
        "json.dump([1], open('a.json', 'w')); pickle.dump({1}, open('a.pickle', 'wb')); csv.writer(open('a.csv', 'w')).writerow([1, 'x'])\n"
        "print(pickle.load(open(here + '/a.pickle', 'rb')))"
    ),
    "a module that it writes": (
        "open(here + '/made_here.py', 'w').write('VALUE = 7'); sys.path.insert(0, here)\n"
        "import made_here; print(made_here.VALUE, made_here.__file__)"
    ),
    "its own limits": (
        "import resource, signal, time\n"
        "print(os.nice(0) >= 0, len(os.sched_getaffinity(0)) > 0); os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))\n"
        "os.setpriority(os.PRIO_PROCESS, os.getpid(), os.getpriority(os.PRIO_PROCESS, 0))\n"
        "resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "got = []; signal.signal(signal.SIGALRM, lambda *_: got.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.1); print(got)\n"
        "signal.raise_signal(signal.SIGUSR2) if signal.signal(signal.SIGUSR2, lambda *_: got.append(2)) is not None else 0; print(got)"
    ),
}
