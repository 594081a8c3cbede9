# The process that becomes the program. It is pid 1 of its sandbox. Until it
# has acknowledged a program, no untrusted code has run, so what it writes to
# stdout up to that point can be trusted; after that nothing can, and the daemon
# takes the outcome from gVisor and the cgroup alone.
#
#   1. import and exercise the image's modules, if it has any
#   2. with "checkpoint": block until this very process is a restored clone
#   3. write READY; read one frame (4-byte length, source) from stdin
#   4. write RUN, then be the program: as `python3 -c SOURCE` would be
import sys


def _main():
    import builtins, gc, io, linecache, os, threading, traceback, types

    mode, exercise, wake = sys.argv[1:]

    def warm(source):
        # Walk the way that a program's life will take: what is touched here
        # need not be loaded or paged in while a caller waits.
        main = types.ModuleType("warm_up")
        linecache.cache["<warm-up>"] = (len(source), None, source.splitlines(True), "<warm-up>")
        exec(compile(source, "<warm-up>", "exec", dont_inherit=True), main.__dict__)
        try:
            raise ValueError
        except ValueError:
            traceback.print_exc(file=io.StringIO())
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=False)
        print("%d %r" % (6 * 7, 1 / 3), file=out)
        out.flush()
        sys.stdout.flush()
        threading.active_count()
        main.__dict__.clear()
        del linecache.cache["<warm-up>"]
        gc.collect()

    if exercise:
        warm(exercise)
    if mode == "checkpoint":
        gc.collect()
        gc.freeze()
        # Reading this file returns once a checkpoint was taken: "restore" in
        # each clone, "resume" in the original.
        with open("/proc/gvisor/checkpoint", "rb") as f:
            os.write(1, b"CHECKPOINT\n")
            f.read()
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
        warm(wake)  # brings the pages it needs back into memory

    os.write(1, b"READY\n")

    def read_exactly(n):
        parts = []
        while n:
            part = os.read(0, min(n, 1 << 20))
            if not part:
                os._exit(0)  # the daemon let this sandbox go unused
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    source = read_exactly(int.from_bytes(read_exactly(4), "big")).decode("utf-8", "surrogateescape")
    os.write(1, b"RUN\n")

    name = "<string>"
    lines = source.splitlines(True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    # Tracebacks and inspect find the program's lines here.
    linecache.cache[name] = (len(source), None, lines, name)
    sys.argv[:] = ["-c"]
    sys.orig_argv[:] = [sys.executable, "-c"]
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    main.__loader__ = None
    main.__annotations__ = {}
    sys.modules["__main__"] = main

    def show(kind, value, tb):
        if sys.stderr is not None:
            traceback.print_exception(kind, value, tb)

    sys.excepthook = show

    def run():
        """Returns the exit status that the interpreter itself would give."""
        try:
            exec(compile(source, name, "exec", dont_inherit=True), main.__dict__)
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

    def quietly(step):
        try:
            step()
        except BaseException:
            pass

    status = run()
    # What the interpreter does at exit, without taking apart a hundred modules
    # that are about to vanish with the sandbox.
    quietly(threading._shutdown)
    import atexit

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
