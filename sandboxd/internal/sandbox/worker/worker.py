# The process that becomes the program. It is pid 1 of its sandbox. Until it
# has acknowledged a program, no untrusted code has run, so what it writes to
# stdout up to that point can be trusted; after that nothing can, and the daemon
# takes the outcome from gVisor and the cgroup alone.
#
#   1. import and exercise the image's modules, if it has any
#   2. with "checkpoint": block until this very process is a restored clone,
#      write AWAKE, block again until nudged
#   3. rehearse a program's life; write READY; read one frame (4-byte length,
#      source) from stdin
#   4. write RUN, then be the program: as `python3 -c SOURCE` would be
import sys


def _main():
    import atexit, builtins, gc, io, linecache, os, threading, traceback, types

    mode, exercise, wake = sys.argv[1:]

    def show(kind, value, tb):
        if sys.stderr is not None:
            traceback.print_exception(kind, value, tb)

    def status_of(e):
        if e.code is None:
            return 0
        if isinstance(e.code, int):
            return e.code & 0xFF
        try:
            print(e.code, file=sys.stderr)
        except BaseException:
            pass
        return 1

    def run(source, name, scope):
        """Returns the exit status that the interpreter itself would give."""
        lines = source.splitlines(True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        # Tracebacks and inspect find the program's lines here.
        linecache.cache[name] = (len(source), None, lines, name)
        try:
            exec(compile(source, name, "exec", dont_inherit=True), scope)
            return 0
        except SystemExit as e:
            return status_of(e)
        except BaseException as e:
            # Drop this function's own frames; compile errors have no other.
            tb = e.__traceback__.tb_next
            e = e.with_traceback(tb)
            sys.last_type, sys.last_value, sys.last_traceback = type(e), e, tb
            try:
                sys.excepthook(type(e), e, tb)
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
        # Walk the way that a program's life will take: what is touched here
        # need not be loaded or paged in while a caller waits. Nothing of it
        # remains that a program could see.
        kept = sys.stdout, sys.stderr, sys.excepthook
        sys.excepthook = show
        with open(os.devnull, "w") as sys.stdout, io.StringIO() as sys.stderr:
            for text in (source + "\nprint('%d %r' % (6 * 7, 1 / 3))", "raise ValueError"):
                main = types.ModuleType("rehearsal")
                run(text, "<rehearsal>", main.__dict__)
                main.__dict__.clear()
            sys.stdout.flush()
        sys.stdout, sys.stderr, sys.excepthook = kept
        del linecache.cache["<rehearsal>"], sys.last_type, sys.last_value, sys.last_traceback
        sys.stdout.flush()
        threading.active_count()
        gc.collect()

    def fail_to_spawn():
        # The child calls exit_group, and the kernel's report of the program's
        # own is then not the first that it ever makes.
        try:
            os.posix_spawn("/nonexistent", ["nonexistent"], {})
        except OSError:
            pass

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
        # Every clone woke up with the same generators. The string hash seed
        # cannot change in a live interpreter; it is fixed alike for every
        # sandbox, warm and cold, so that no result depends on it.
        for name, reseed in (
            ("random", lambda m: m.seed()),
            ("numpy.random", lambda m: m.seed()),
            ("sympy.core.random", lambda m: m.seed()),
            ("tempfile", lambda m: setattr(m, "_name_sequence", None)),
            ("uuid", lambda m: setattr(m, "_node", None)),
        ):
            module = sys.modules.get(name)
            if module is not None:
                reseed(module)
    os.write(1, b"READY\n")

    # One read for most programs: each system call costs more in a sandbox.
    frame, size = b"", 4
    while len(frame) < size:
        part = os.read(0, min(max(16 << 10, size - len(frame)), 1 << 20))
        if not part:
            os._exit(0)  # the daemon let this sandbox go unused
        frame += part
        if len(frame) >= 4:
            size = 4 + int.from_bytes(frame[:4], "big")
    source = frame[4:].decode("utf-8", "surrogateescape")
    os.write(1, b"RUN\n")

    sys.argv[:] = ["-c"]
    sys.orig_argv[:] = [sys.executable, "-c"]
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    main.__loader__ = None
    main.__annotations__ = {}
    sys.modules["__main__"] = main
    sys.excepthook = show

    def quietly(step):
        try:
            step()
        except BaseException:
            pass

    status = run(source, "<string>", main.__dict__)
    # What the interpreter does at exit, without taking apart a hundred modules
    # that are about to vanish with the sandbox.
    quietly(threading._shutdown)
    quietly(atexit._run_exitfuncs)
    if threading.active_count() <= 1:
        # Finalizers of the program's globals may still print.
        quietly(main.__dict__.clear)
        quietly(gc.collect)
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BaseException as e:
        if status == 0:
            status = 120
        quietly(lambda: sys.stderr.write("Exception ignored while flushing stdout: %r\n" % (e,)))
    quietly(lambda: sys.stderr.flush())
    os._exit(status)


_main()
