"""Whose debate is begun next: tenants take turns, and a tenant's oldest debate comes first."""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping

from parley.orchestrator.log.index import DebateRecord

__all__ = ["order_fairly"]


def order_fairly(waiting: Iterable[DebateRecord], running: Mapping[str, int]) -> Iterator[DebateRecord]:
    """Yield the debates that wait in the order in which they should be begun; `running` are the numbers of tenants.

    Next is always the tenant that has the fewest debates running, those already yielded included; of several, the one
    whose oldest debate has waited longest.
    """
    queues: defaultdict[str, deque[DebateRecord]] = defaultdict(deque)
    for record in sorted(waiting, key=lambda record: record.created):
        queues[record.tenant].append(record)
    heap = [(running.get(tenant, 0), queue[0].created, tenant) for tenant, queue in queues.items()]
    heapq.heapify(heap)
    while heap:
        begun, _, tenant = heapq.heappop(heap)
        queue = queues[tenant]
        yield queue.popleft()
        if queue:
            heapq.heappush(heap, (begun + 1, queue[0].created, tenant))
