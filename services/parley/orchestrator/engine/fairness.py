"""The order in which waiting debates start: tenants take turns, and the oldest debate of a tenant comes first."""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping

from parley.orchestrator.log.debate_record import DebateRecord


def order_fairly(waiting: Iterable[DebateRecord], running: Mapping[str, int]) -> Iterator[DebateRecord]:
    """Yield waiting debates in the order in which they should start. `running` is the number of running debates by tenant.

    The next tenant is the one with the fewest running debates, including those already yielded; among several, the one
    whose oldest debate has waited longest.
    """
    queues: defaultdict[str, deque[DebateRecord]] = defaultdict(deque)
    for record in sorted(waiting, key=lambda record: record.created):
        queues[record.tenant].append(record)
    heap = [(running.get(tenant, 0), queue[0].created, tenant) for tenant, queue in queues.items()]
    heapq.heapify(heap)
    while heap:
        started, _, tenant = heapq.heappop(heap)
        queue = queues[tenant]
        yield queue.popleft()
        if queue:
            heapq.heappush(heap, (started + 1, queue[0].created, tenant))
