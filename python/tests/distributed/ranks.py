"""Several ranks in one process, or as processes of `torch.distributed`."""

import importlib
import os
import socket
import threading
import traceback
from multiprocessing import get_context

from costate import distributed


def in_threads(size, function, *arguments, timeout=20.0):
    """What `function(group, *arguments)` returns on each rank, or raises."""
    results = [None] * size

    def run(rank, group):
        try:
            results[rank] = function(group, *arguments)
        except BaseException as error:
            results[rank] = error
            traceback.clear_frames(error.__traceback__)   # which hold the group
        del group

    groups = distributed.in_process(size, timeout)
    threads = [threading.Thread(target=run, args=(rank, groups[rank])) for rank in range(size)]
    for thread in threads:
        thread.start()
    groups.clear()
    for thread in threads:
        thread.join()
    return results


def values(results):
    """Those of `in_threads`, if no rank has raised."""
    for one in results:
        if isinstance(one, BaseException):
            raise one
    return results


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _process(rank, size, port, module, name, arguments, answers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    import torch
    import costate as qd
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    qd.init(default_fp=qd.f64, cpu_max_num_threads=1)
    try:
        answers.put((rank, getattr(importlib.import_module(module), name)(*arguments)))
    except BaseException as error:
        answers.put((rank, (type(error).__name__, str(error))))
    answers.close()
    answers.join_thread()
    os._exit(0)    # gloo may wait for ranks that are no longer there


def _context():
    """Processes begin as copies of one that has imported what is slow."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "costate", "costate.distributed.torch_group"])
    return context


def in_processes(size, function, *arguments, lost=(), timeout=120):
    """What `function(*arguments)` returns on each rank, or (name, text) of what it raises; ranks that are `lost` do not answer."""
    context = _context()
    answers, port = context.Queue(), free_port()
    processes = [context.Process(target=_process, args=(rank, size, port, function.__module__, function.__name__,
                                                        arguments, answers)) for rank in range(size)]
    for one in processes:
        one.start()
    try:
        found = dict(answers.get(timeout=timeout) for _ in range(size - len(lost)))
        for one in processes:
            one.join(timeout)
    finally:
        for one in processes:
            one.kill()
    return [found.get(rank) for rank in range(size)]
