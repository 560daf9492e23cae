"""Where the points of a study run: processes of this machine, or a Dask cluster, behind one kind of executor."""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.resources import available_nbytes
from simulator.results.provenance import source_sha256

_WORKER_NBYTES = 6e8
"""Memory of a worker's libraries and a small run, bytes; larger runs compare their own estimate with what is left."""
_CONNECT_S = 15
_LOST = "workers (--workers, --scheduler): a worker was lost, perhaps for lack of memory; no result is kept"
_UNREAD = "workers: a mechanism that is given in Python must be one that pickle can read, as of a module's class"
CLUSTER_LOST = "the connection to the cluster was lost; finished points are kept"
_DASK = "dask://"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Workers(NamedTuple):
    """An executor.

    Attributes
    ----------
    executor
        Runs calls, each in one of its workers.
    slots
        Returns how many calls can run at once now.
    described
        The workers, in words.
    left_out
        Which workers are not used, and why; more may be added while the executor is used.
    """

    executor: Executor
    slots: Callable[[], int]
    described: str
    left_out: Sequence[str] = ()


Start = Callable[[], Any]
"""Function that returns a context manager which starts workers and yields them; after a crash it is called again."""


class _Here(Executor):
    """Executor that makes each call at once, in this thread."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*args, **options))
        except Exception as error:  # noqa: BLE001 - as the executors of the standard library do
            future.set_exception(error)
        return future


def processes(number: int | None = None) -> Start:
    """Return what starts processes on this machine.

    Parameters
    ----------
    number
        How many; by default as many as there are cores that this process may use, and as memory allows. 0 to run in
        this process itself, where objects given in Python and a debugger can be used.

    Raises
    ------
    InputError
        If the number is negative.
    """
    if number is not None and number < 0:
        raise InputError([f"workers (--workers): must be a whole number, at least 0; got {number}"])
    if number == 0:
        return lambda: nullcontext(Workers(_Here(), lambda: 1, "this process"))
    count = number or max(1, min(cores(), int(available_nbytes() / _WORKER_NBYTES)))

    @contextmanager
    def start() -> Iterator[Workers]:
        # A fresh interpreter for each: a copy of this one would copy its threads' locks too.
        context = multiprocessing.get_context("spawn")
        with _one_thread_each():
            executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin)
            try:
                _check_start(executor)
                yield Workers(executor, lambda: count, f"{count} process{'' if count == 1 else 'es'}")
            finally:
                running = list((executor._processes or {}).values())  # noqa: SLF001 - no public way to end them
                executor.shutdown(wait=False, cancel_futures=True)
                for process in running:
                    process.terminate()

    return start


def _check_start(executor: Executor) -> None:
    """Check that processes can start.

    Raises
    ------
    InputError
        If not, as where a script starts them while it is imported.
    """
    try:
        executor.submit(int).result()
    except BrokenExecutor:
        why = 'a script must start them under if __name__ == "__main__":, since each process imports it'
        raise InputError([f"workers: no worker process can start; {why}"]) from None


def dask(address: str) -> Start:
    """Return what connects to a running Dask cluster.

    Parameters
    ----------
    address
        ``HOST:PORT`` of its scheduler, with ``tls://`` before it if the cluster needs that.

    Raises
    ------
    InputError
        If distributed is not installed, or the cluster no longer answers.
    """
    distributed = import_extra("distributed", needed="a Dask cluster needs distributed", extra="dask")

    # What these log about a lost connection, tracebacks included, is said in one line here. Each has its own level.
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

    @contextmanager
    def start() -> Iterator[Workers]:
        at = address if "://" in address else f"tcp://{address}"
        try:
            client = distributed.Client(at, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            fault = f"no Dask scheduler answers at {at} within {_CONNECT_S} s"
            raise InputError([f"scheduler (--scheduler): {fault} ({error})"]) from None

        try:
            with client:
                cluster = _Cluster(client, at)
                workers = len(cluster.usable())
                described = f"{workers} worker{'' if workers == 1 else 's'} of {at}"
                yield Workers(cluster, cluster.slots, described, cluster.left_out)
        except OSError as error:  # a call of the scheduler; what a point raises is kept in its future
            raise InputError([CLUSTER_LOST]) from error

    return start


def is_remote(scheduler: str) -> bool:
    """Return whether the workers of a scheduler are of a cluster."""
    return scheduler.startswith(_DASK) and len(scheduler) > len(_DASK)


def start_of(scheduler: str, workers: int | None) -> Start:
    """Return what starts the workers of a scheduler.

    Raises
    ------
    InputError
        If there is no such scheduler.
    """
    if scheduler == "processes":
        return processes(workers)
    if is_remote(scheduler):
        if workers is not None:
            raise InputError(["workers (--workers): a cluster has the workers that it has; leave the option out"])
        return dask(scheduler.removeprefix(_DASK))
    raise InputError([f"scheduler (--scheduler): must be processes or dask://HOST:PORT; got {scheduler!r}"])


@contextmanager
def executor_of(workers: int | Any | None, scheduler: str = "processes") -> Iterator[Executor | None]:
    """Start the workers of one run, and yield their executor; None if the run is to use this process alone.

    Parameters
    ----------
    workers
        The number of processes; or an executor, or a client of a Dask cluster, which is left running.
    scheduler
        As for `start_of`.

    Raises
    ------
    InputError
        If they cannot be used, or are lost in the block.
    """
    try:
        if not isinstance(workers, int | None):
            yield workers.get_executor() if hasattr(workers, "get_executor") else workers
        elif not workers and scheduler == "processes":
            yield None
        else:
            with start_of(scheduler, workers)() as started:
                yield started.executor
    except Exception as error:
        # Dask has an error of its own for a call during which worker after worker was lost.
        if isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ == "KilledWorker":
            raise InputError([_LOST]) from error
        # A TypeError, AttributeError or PicklingError, by what the object is; all of them name pickle.
        if "pickle" in str(error):
            raise InputError([f"{_UNREAD}: {error}"]) from error
        raise


def running(scheduler: str, workers: int | None, *, assume_yes: bool, timeout_s: float | None) -> dict[str, Any]:
    """Return what starts the workers, whether they are remote, and limits, as `Sweep` and `Evaluation` take them."""
    limits = {"assume_yes": assume_yes, "timeout_s": timeout_s}
    return {"start": start_of(scheduler, workers), "remote": is_remote(scheduler), **limits}


class _Cluster(Executor):
    """Executor on those workers of a Dask cluster that have this version of crowdveil.

    Parameters
    ----------
    client
        Of the cluster.
    address
        Of its scheduler.

    Raises
    ------
    InputError
        If the cluster has no such worker.
    """

    def __init__(self, client: Any, address: str) -> None:
        self.left_out: list[str] = []
        self._client, self._faults = client, dict[str, str]()
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise InputError(
                [f"scheduler (--scheduler): no worker has connected to {address} within {_CONNECT_S} s"]
            ) from None
        if not self.usable():
            raise InputError([f"scheduler (--scheduler): {why}" for why in self.left_out])

    def usable(self) -> dict[str, int]:
        """Return the cores of each worker that can be used; workers that joined since the last call are checked."""
        cores = self._client.ncores()
        if new := [worker for worker in cores if worker not in self._faults]:
            # A function of the standard library, which a worker without crowdveil can find.
            answers = self._client.run(import_module, "simulator.studies", workers=new, on_error="return")
            found = {worker: answer for worker, answer in answers.items() if isinstance(answer, Exception)}
            having = [worker for worker in new if worker not in found]
            versions = self._client.run(source_sha256, workers=having, on_error="return") if having else {}
            faults = {worker: f"cannot import crowdveil ({answer})" for worker, answer in found.items()}
            faults |= {one: "have another version of crowdveil" for one in having if versions[one] != source_sha256()}
            self._faults |= {worker: faults.get(worker, "") for worker in new}
            for why in dict.fromkeys(faults.values()):
                named = ", ".join(worker for worker in faults if faults[worker] == why)
                self.left_out.append(f"the workers {named} {why}; install the same version there")
        return {worker: number for worker, number in cores.items() if not self._faults[worker]}

    def slots(self) -> int:
        """Return how many calls can run at once now."""
        return max(1, sum(self.usable().values()))

    def submit(self, call: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        # Only if some may not be used: a call that names workers is lost if all of these end, however many join.
        named = {"workers": [*self.usable()]} if any(self._faults.values()) else {}
        future: Future[Any] = self._client.get_executor(**named).submit(call, *args, **options)
        return future


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let libraries in processes started in the block use one thread, unless the user chose otherwise.

    There is a process for each core already; and sums of another order would differ in the last digit.
    """
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _begin() -> None:
    """Prepare a worker: Ctrl-C is for the parent, which then ends it; without its parent it ends by itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
