"""Past debates, what should recall each, and what should recall none; the floor of recall is chosen from these."""

from typing import Final

# Question, conclusion, and new questions that are about the same matter.
PAST: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (
        "Should we split our monolith into microservices?",
        (
            "Keep the monolith for now and draw module boundaries inside it. The team of eight cannot carry the operational "
            "load of a dozen services. Extract the billing module first once its interface has been stable for a quarter."
        ),
        (
            "Is it time to break the monolithic application into separate services?",
            "What service boundaries should we draw if we move away from one big application?",
        ),
    ),
    (
        "Which message broker should the order pipeline use, Kafka or RabbitMQ?",
        (
            "Use Kafka, since orders have to be replayed after incidents and three teams consume the same stream. Start with "
            "one topic per aggregate, keyed by order id, and keep thirty days of history."
        ),
        ("How should order events be published to other teams?", "Do we need a queue or a log for orders?"),
    ),
    (
        "How should we store user sessions?",
        (
            "Store sessions in Redis with a sliding expiry of thirty minutes. Stateless tokens make logout and revocation "
            "hard, and the relational database would carry a write on every request."
        ),
        ("Where should login state be kept so that logout works at once?",),
    ),
    (
        "Should code review be mandatory for every change?",
        (
            "Require one approval for every change to production code. Documentation and generated files may be merged "
            "without. Reviews older than one working day are escalated to the team lead."
        ),
        ("Must every pull request be approved by a colleague before it is merged?",),
    ),
    (
        "Should the company raise prices next year?",
        (
            "Raise list prices by four percent in March and keep existing contracts unchanged until renewal. Churn among "
            "small customers is the main risk, so a cheaper annual plan is offered with it."
        ),
        ("How much should our subscription cost from next spring?", "Can we afford a price increase?"),
    ),
    (
        "How do we reduce the latency of the product search page?",
        (
            "Precompute the results of the thousand most frequent queries every hour and stream the first ten hits. Faster "
            "disks bring less than the cache and cost more."
        ),
        ("Search results take two seconds to appear; what can be done?",),
    ),
    (
        "Should employees be allowed to work remotely on all days?",
        (
            "Allow remote work on all days, with two days a month together in the office for planning. Teams agree on shared "
            "hours. New colleagues spend their first week on site."
        ),
        ("What should our policy on working from home be?",),
    ),
    (
        "How many replicas should the database cluster have?",
        (
            "Run three replicas in three zones with synchronous replication to one of them. Five would raise write latency "
            "without need, as the backup covers the loss of two zones."
        ),
        ("How do we keep the database available when a zone fails?",),
    ),
    (
        "Should the city centre be closed to private cars?",
        (
            "Close the inner ring to private cars on weekends first, with exceptions for residents and deliveries, and "
            "measure trade and air quality for a year before going further."
        ),
        ("Would a car-free downtown help or hurt local shops?",),
    ),
    (
        "Which programming language should the new ingestion service be written in, Go or Rust?",
        (
            "Write it in Go. The team ships Go today, the load is bound by the network, and the pauses of the garbage "
            "collector are far below the latency budget."
        ),
        ("Is Rust worth learning for our next backend component?",),
    ),
)

UNRELATED: Final[tuple[str, ...]] = (
    "What is the best recipe for a vegetarian lasagne?",
    "Which treatment is recommended for a sprained ankle?",
    "How should a novel's opening chapter introduce its hero?",
    "Which trees grow well in sandy soil?",
    "Should schools teach Latin?",
    "How do we plan a wedding for a hundred guests?",
    "What caused the fall of the Western Roman Empire?",
    "How can I train a puppy to sleep through the night?",
    "Is nuclear fusion going to supply the grid before 2050?",
    "Which exercises strengthen the lower back?",
    "Should the museum return the bronze statues?",
    "How should the orchestra programme its next season?",
)
