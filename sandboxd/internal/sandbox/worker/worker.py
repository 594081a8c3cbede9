# The process that becomes the program. It is pid 1 of its sandbox. Until it
# has acknowledged a program, no untrusted code has run, so what it writes to
# stdout up to that point can be trusted; after that nothing can, and the daemon
# takes the outcome from gVisor and the cgroup alone.
#
#   1. import and exercise the image's modules, if it has any
#   2. with "checkpoint": block until this very process is a restored clone,
#      write AWAKE, block again until nudged, and rehearse if the nudge says so
#   3. write READY and the process's number; read one frame (4-byte length, source)
#      from stdin
#   4. write RUN, then be the program: as `python3 -c SOURCE` would be
#
# In a sandbox that several programs share process 1 is not the program but starts
# it, one after another: see serve.
#
# This file runs in a namespace of its own: __main__ is the program's, untouched.
import atexit, contextvars, ctypes, gc, io, linecache, os, signal, sys, threading, traceback, types

end = os._exit  # whatever the program makes of os


def hide(*functions):
    """Takes the frames of functions, and those below the caller's, out of the stack
    that a program can see.

    The interpreter leaves out frames that have not reached their first traceable
    instruction. Where that number lies in a code object is found by looking at
    functions that differ in it; where that is not clear, nothing is changed.
    """
    def probe(n):
        names = ["x%d" % i for i in range(n)]
        scope = {}
        text = "def f(%s):\n  return lambda: (%s)\n" % (", ".join(names), ", ".join(names) or "0")
        exec(text, scope)
        return scope["f"].__code__

    probes = [probe(n) for n in (0, 3, 7, 12)]
    size = min(sys.getsizeof(c) - len(c.co_code) for c in probes)
    want = [0, 3, 7, 12]
    at = [
        offset
        for offset in range(0, size - 4, 4)
        if [ctypes.c_int.from_address(id(c) + offset).value for c in probes] == want
    ]
    # The number of cells is the same as this one, and stands before it: only the
    # last that matches can be meant, and it must lie behind the line table.
    tables = [o for o in range(0, size - 8, 8) if ctypes.c_void_p.from_address(id(probes[1]) + o).value == id(probes[1].co_linetable)]
    at = [offset for offset in at if tables and offset > tables[-1]]
    if len(at) != 1:
        return
    codes, frame = [f.__code__ for f in functions], sys._getframe(1)
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    for code in codes:
        ctypes.c_int.from_address(id(code) + at[0]).value = 1 << 30


def deepen(levels):
    """Gives the calls back that the worker itself has taken of the recursion limit."""
    limit = sys.getrecursionlimit()
    thread = ctypes.pythonapi.PyThreadState_Get
    thread.restype = ctypes.c_void_p
    state = thread()
    near = range(limit - 50, limit)
    at = [
        offset
        for offset in range(0, 256, 4)
        if ctypes.c_int.from_address(state + offset).value in near
        and ctypes.c_int.from_address(state + offset + 4).value == limit
    ]
    if len(at) == 1:
        left = ctypes.c_int.from_address(state + at[0])
        left.value += levels


def show(kind, value, tb):
    """What the interpreter prints for an uncaught exception, with source lines."""
    if getattr(sys, "stderr", None) is None:
        return
    kept, sys.stderr = sys.stderr, io.StringIO()
    try:
        sys.__excepthook__(kind, value, tb)
        lines = sys.stderr.getvalue().split("\n")
    finally:
        sys.stderr = kept
    # The interpreter's own printer does not know the program's lines; the module
    # does, but lacks other things, as suggestions in some versions.
    sourced = "".join(traceback.format_exception(kind, value, tb)).split("\n")
    at, out = 0, []
    for i, line in enumerate(lines):
        out.append(line)
        column = line.find('File "<string>", line ')
        if column < 0 or line not in sourced[at:]:
            continue
        at = sourced.index(line, at) + 1
        while at < len(sourced) and sourced[at][: column + 2] == " " * (column + 2) and sourced[at] != lines[i + 1]:
            out.append(sourced[at])
            at += 1
    sys.stderr.write("\n".join(out))


def status_of(e):
    if e.code is None:
        return 0
    if isinstance(e.code, int):
        # As a C long becomes a status, and 255 if it is none.
        return e.code & 0xFF if -(1 << 63) <= e.code < 1 << 63 else 255
    try:
        print(e.code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def lines_of(source):
    """Lines as the parser sees them: nothing else than these three ends one."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line + "\n" for line in lines]


def run(source, name, scope):
    """Returns the exit status that the interpreter itself would give."""
    try:
        # The interpreter ends what stands behind -c with a line feed.
        code = compile(source + "\n", name, "exec", dont_inherit=True)
        # Tracebacks and inspect find the program's lines here.
        linecache.cache[name] = (len(source), None, lines_of(source), name)
        exec(code, scope)
        return 0
    except SystemExit as e:
        return status_of(e)
    except BaseException as e:
        # Drop this function's own frame; compile errors have no other.
        tb = e.__traceback__
        while tb is not None and tb.tb_frame.f_code is run.__code__:
            tb = tb.tb_next
        e = e.with_traceback(tb)
        sys.last_type, sys.last_value, sys.last_traceback = type(e), e, tb
        try:
            hook = sys.excepthook
            (show if hook is sys.__excepthook__ else hook)(type(e), e, tb)
        except SystemExit as again:
            return status_of(again)
        except BaseException:
            try:
                sys.stderr.write("Error in sys.excepthook:\n")
                traceback.print_exc()
                sys.stderr.write("\nOriginal exception was:\n")
                show(type(e), e, tb)
            except BaseException:
                pass
        return 130 if isinstance(e, KeyboardInterrupt) else 1


def rehearse(source):
    # Walk the way that a program's life will take: what is touched here need
    # not be loaded or paged in while a caller waits. Nothing of it remains
    # that a program could see.
    kept = sys.stdout, sys.stderr, sys.excepthook
    sys.excepthook = show
    with open(os.devnull, "w") as sys.stdout, io.StringIO() as sys.stderr:
        for text in (source + "\nprint('%d %r' % (6 * 7, 1 / 3))", "raise ValueError"):
            main = types.ModuleType("rehearsal")
            # Settings of a thread, as decimal's, belong to a context.
            contextvars.copy_context().run(run, text, "<rehearsal>", main.__dict__)
            finalize(main.__dict__)
        sys.stdout.flush()
    sys.stdout, sys.stderr, sys.excepthook = kept
    del linecache.cache["<rehearsal>"], sys.last_type, sys.last_value, sys.last_traceback
    flush(None, None)


def fail_to_spawn():
    # The child calls exit_group, and the kernel's report of the program's own
    # is then not the first that it ever makes.
    try:
        os.posix_spawn("/nonexistent", ["nonexistent"], {})
    except OSError:
        pass


def reseed():
    # Every clone woke up with the same generators. The string hash seed cannot
    # change in a live interpreter; it is fixed alike for every sandbox, warm and
    # cold, so that no result depends on it.
    for name, step in (
        ("random", lambda m: m.seed()),
        ("numpy.random", lambda m: m.seed()),
        ("sympy.core.random", lambda m: m.seed()),
        ("tempfile", lambda m: setattr(m, "_name_sequence", None)),
        ("uuid", lambda m: setattr(m, "_node", None)),
    ):
        module = sys.modules.get(name)
        if module is not None:
            step(module)


def read_program():
    # One read for most programs: each system call costs more in a sandbox.
    frame, size = b"", 4
    while len(frame) < size:
        part = os.read(0, min(max(16 << 10, size - len(frame)), 1 << 20))
        if not part:
            os._exit(0)  # the daemon let this sandbox go unused
        frame += part
        if len(frame) >= 4:
            size = 4 + int.from_bytes(frame[:4], "big")
    return frame[4:].decode()


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def kernel():
    """The C library, with the calls that a program's process makes of it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
    libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
    return libc


class Filter(ctypes.Structure):
    """A struct sock_fprog, and what it points to."""

    _fields_ = [("length", ctypes.c_ushort), ("text", ctypes.c_void_p)]

    def __init__(self, code):
        self.kept = ctypes.create_string_buffer(code, len(code))
        super().__init__(len(code) // 8, ctypes.addressof(self.kept))


def settle(user, libc, mounts, program):
    """Makes a program's process: its own mounts, user and limits."""
    os.setsid()
    check(libc.unshare(0x00020000 | 0x08000000))  # CLONE_NEWNS | CLONE_NEWIPC
    for path, size in mounts:
        check(libc.mount(b"tmpfs", path, b"tmpfs", 2 | 4, size))  # MS_NOSUID | MS_NODEV
    os.chdir("/tmp")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)  # takes every capability along
    check(libc.prctl(4, 1, 0, 0, 0))  # PR_SET_DUMPABLE: its /proc/self is its own
    # The filter that other sandboxes have from their start, which process 1 cannot.
    check(libc.prctl(22, 2, ctypes.addressof(program), 0, 0))  # PR_SET_SECCOMP


def serve(share):
    """Is process 1 of a sandbox that the programs of one trajectory share. Returns in
    the process of each program, with what its stdin is to become.

    Nothing of a program reaches this process, whose memory every later program has a
    copy of: neither its source, which its own process reads, nor anything it does.
    When a program has ended, so has all that it left running, before the daemon's
    next message is read; what it wrote until then the daemon throws away, up to the
    line that repeats the message, which nobody else can have known.
    """
    import fcntl

    libc, program = kernel(), Filter(bytes.fromhex(share["filter"]))
    mounts = [(path, b"mode=1777,size=%d" % share[size]) for path, size in ((b"/tmp", "tmp"), (b"/dev/shm", "shm"))]
    for number in range(1 << 16):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(write)  # the end of a file, once the source is read
            settle(share["user"] + number, libc, mounts, program)
            return read
        os.close(read)
        os.close(write)
        while os.waitpid(-1, 0)[0] != pid:
            pass
        while True:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pass
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        word = os.read(0, 32)
        if len(word) < 32:
            os._exit(0)  # no more programs
        for stream in (1, 2):
            fcntl.fcntl(stream, fcntl.F_SETOWN, 0)
            fcntl.fcntl(stream, fcntl.F_SETFL, 0)
            os.write(stream, b"CLEAN " + word + b"\n")
    os._exit(0)


def quietly(step, *args):
    try:
        step(*args)
    except BaseException:
        pass


def flush(_signal, _frame):
    # The daemon is about to end a program at its time limit, and keeps what it
    # has printed.
    for name in ("stdout", "__stdout__", "stderr"):
        quietly(lambda: getattr(sys, name).flush())


def clear(scope):
    """Takes a module's names away in the interpreter's order: its own first. What
    every module has, as its name, finalizers still find."""
    for private in (True, False):
        for name in list(scope):  # the values are not to live a moment longer
            own = isinstance(name, str) and name[:1] == "_" and name[1:2] != "_"
            if own == private and not (isinstance(name, str) and name[:2] == name[-2:] == "__"):
                scope[name] = None


def finalize(scope):
    # Finalizers of the program's globals may still print, and of what a traceback holds.
    if threading.active_count() <= 1:
        for name in ("last_type", "last_value", "last_traceback"):
            if name in sys.__dict__:
                sys.__dict__[name] = None
        gc.collect()
        clear(scope)
        gc.collect()


def flush_at_exit(stdout):
    """Returns whether it failed, which the interpreter says as it says all that is
    nobody's to catch any more."""
    try:
        if stdout.closed:
            return False
    except BaseException:
        pass  # it has no such thing
    try:
        stdout.flush()
        return False
    except BaseException as e:
        said = "Exception ignored in: %r\n" % (stdout,)
        if e.__traceback__.tb_next is not None:
            said += "Traceback (most recent call last):\n" + "".join(traceback.format_tb(e.__traceback__.tb_next))
        quietly(lambda: sys.stderr.write("%s%s: %s\n" % (said, type(e).__name__, e)))
        return True


def leave(status, scope):
    # What the interpreter does at exit, without taking apart a hundred modules
    # that are about to vanish with the sandbox.
    quietly(threading._shutdown)
    quietly(atexit._run_exitfuncs)
    flush(None, None)
    quietly(finalize, scope)
    stdout = getattr(sys, "stdout", None)  # a program may delete it
    if stdout is not None and flush_at_exit(stdout) and status == 0:
        status = 120
    quietly(lambda: sys.stderr.flush())
    end(status)


def main():
    mode, exercise, wake, share = sys.argv[1:]
    hide(run, leave, quietly)
    signal.signal(signal.SIGURG, flush)
    if mode == "checkpoint":
        rehearse(exercise)
        gc.collect()
        gc.freeze()
        # Reading this file returns once a checkpoint was taken: "restore" in
        # each clone, "resume" in the original.
        with open("/proc/gvisor/checkpoint", "rb") as f:
            os.write(1, b"CHECKPOINT\n")
            f.read()
        os.write(1, b"AWAKE\n")
        if os.read(0, 1) == b"\0":
            rehearse(wake)
            fail_to_spawn()
        reseed()
    stdin = None
    if share:
        stdin = serve(eval(share, {}))  # the daemon's own word
        reseed()
    deepen(6)
    os.write(1, b"READY %d\n" % os.getpid())
    source = read_program()
    if stdin is not None:
        os.dup2(stdin, 0)
        os.close(stdin)
    os.write(1, b"RUN\n")
    sys.argv[:] = ["-c"]
    sys.orig_argv[:] = [sys.executable, "-c", source]
    scope = sys.modules["__main__"].__dict__
    leave(run(source, "<string>", scope), scope)


main()
