"""Debates with answers of real length, and questions about the decision, what stands in the middle of the answer, and what stands at its end."""

from typing import Final

# Question, conclusion, and later questions.
LONG: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (
        "Which database should the new booking service use, PostgreSQL or a document store?",
        (
            "Use PostgreSQL for the booking service, with one schema for each region, and keep search in a separate index that is "
            "filled from the log of changes.\n\n"
            "Bookings are relations at heart: a booking has guests, rooms, rates and payments, and the rule that a room is never sold "
            "twice must hold at each moment. In PostgreSQL an exclusion constraint on room and period states that rule in one line, "
            "and the database keeps it whatever the application does. In the document store that was proposed, the same rule needs a "
            "transaction over several documents, which it supports since two versions and which the team has never operated.\n\n"
            "Those in favour of documents argued with the changing shape of rates: each partner sends other fields. This is answered "
            "by a column of JSON for what only the partner understands; what we compute with stays in columns. A prototype with the "
            "rates of three partners took two days and read well.\n\n"
            "Performance was measured, not guessed. On the copy of last August, with four thousand bookings in the busiest hour, "
            "PostgreSQL answered the availability query in eleven milliseconds at the 99th percentile, the document store in "
            "nineteen, after both had been tuned by people who like them. Neither is a reason to decide.\n\n"
            "Operations speak for PostgreSQL as well. We run fourteen instances of it, backups are tested each month, and the people "
            "on call know its failures. A second kind of database would mean a second set of runbooks, and one more version to "
            "follow.\n\n"
            "Migration from the old system: a job copies the bookings of the last three years, in the night from Sunday to Monday, "
            "and the old system stays readable for a year. Older bookings go to the archive as files, since the law asks for ten "
            "years but nobody looks at them online.\n\n"
            "Personal data is a concern of its own. Names and passport numbers are encrypted in columns with a key for each region, "
            "so that a region's data can be destroyed by destroying its key, as the data protection officer demands after eighteen "
            "months.\n\n"
            "Reports do not read the primary. A replica serves them, five minutes late at most; the revenue team has agreed to that "
            "in writing.\n\n"
            "Risks that remain are the growth of the table of price histories, which is to be split by month from the start, and the "
            "extension for exclusion constraints, which the cloud provider must keep offering. If it is withdrawn, the constraint can "
            "be replaced by a table of nights with a unique key, at the price of more rows."
        ),
        (
            "What stores the reservations in the new system?",
            "How fast was availability answered in the benchmark?",
            "How long are passport numbers kept before they are destroyed?",
        ),
    ),
    (
        "How should we price the API of our weather service?",
        (
            "Charge for the API by calls in three tiers with a free one for up to a thousand calls a day, and sell history and "
            "ensembles by contract only.\n\n"
            "At present each customer has an individual agreement, forty-three in all, with prices for the same data between two and "
            "nine cents for a hundred calls. Sales needs three weeks for a contract over two hundred euros, which is more than it "
            "brings. Developers who try the service leave after the form that asks for a tax number.\n\n"
            "Three models were on the table. A flat fee is easy to understand, but the ten largest customers would pay a tenth of "
            "what they cost. A price for each station or grid cell follows our cost for licences, yet nobody outside understands it. "
            "Calls are what competitors count, and what customers can read in their own logs.\n\n"
            "The tiers are: free with a thousand calls a day and a mention of the source; standard at twenty-nine euros a month with "
            "fifty thousand a day; and business at three hundred and ninety with a million a day and support within four hours. "
            "Beyond a tier calls are answered slowly and not refused, since a warning of a storm must never be lost because of a "
            "bill.\n\n"
            "The licence of the radar composite forbids passing it on in the free tier. It is therefore left out there, and the "
            "precipitation of the model is delivered in its place, marked as such. Legal has confirmed this with the national "
            "service.\n\n"
            "Existing customers keep their price for twelve months. Those who would pay more than double, five of them, are called by "
            "their account manager before anything is published; the ferry company and the two insurers among them are also the ones "
            "who asked for a service level, which the business tier includes.\n\n"
            "Billing is done by the payment provider that the shop uses already. Calls are counted at the edge, by key, once a "
            "minute, and a customer sees the count with a delay of five minutes at most. A dispute is settled by our count unless the "
            "customer's log proves otherwise.\n\n"
            "Revenue is expected to fall by four percent in the first half year and to exceed today's from the third quarter on, if "
            "two in a hundred free users become paying ones. That is the assumption on which most depends; competitors report between "
            "one and four.\n\n"
            "Abuse of the free tier by many keys is limited by a verified phone number, which the privacy officer accepts if it is "
            "deleted after the check.\n\n"
            "The decision is reviewed in a year. If fewer than one in a hundred have become paying customers by then, the free tier "
            "shrinks to two hundred calls."
        ),
        (
            "What does it cost to call our forecast interface?",
            "Why is radar rain missing for users that pay nothing?",
            "Under which condition will the free plan be made smaller?",
        ),
    ),
    (
        "Should the city convert Mill Street into a street for bicycles?",
        (
            "Convert Mill Street between the station and the market into a bicycle street in which cars of residents and deliveries "
            "are guests, as a trial of eighteen months.\n\n"
            "The street carries four thousand bicycles a day and six thousand cars, two thirds of which only pass through. The "
            "parallel ring road has room for them according to the count of May, except between half past seven and eight, when the "
            "lights at the brewery bridge are the limit. The traffic office can change their phases, which takes a quarter.\n\n"
            "Shops were the loudest opponents. Their survey says that seventy percent of customers come by car; the count at the "
            "doors that the university did says twenty-two. The truth may lie between both, but also the bakery and the bookshop, "
            "which asked their customers themselves, found less than a third. Twelve parking places for short stays are made in the "
            "side streets, and the places for loading stay.\n\n"
            "Buses of line 14 keep their way. The drivers' council asked for a passing place at the school, and gets it. Emergency "
            "services have tested the width with a ladder truck in the night of the third of June, without objections.\n\n"
            "Safety is the main reason. Of thirty-eight accidents with injuries in five years, twenty-nine were at the crossing with "
            "Garden Lane, when cars turned right. There the kerb is built out, and the turn is forbidden for lorries above seven and "
            "a half tons.\n\n"
            "The cost is two hundred and forty thousand euros, of which the state pays seventy percent if the application is filed by "
            "the end of September. Without the subsidy only paint and signs are possible, for thirty-five thousand, and the crossing "
            "would stay as it is.\n\n"
            "Residents keep their permits. Those in the yards behind number 40 to 52 can reach them only from the north during "
            "construction, six weeks in spring. The association of house owners accepts that if the rubbish is collected in the usual "
            "place.\n\n"
            "Winter service is extended: the street becomes priority one for clearing snow, since a bicycle street that is not "
            "cleared is none. The depot needs no new vehicle for that, but one more driver on call from December to February.\n\n"
            "What is measured: bicycles and cars at three points, accidents, turnover of the shops as far as they report it, and the "
            "minutes of line 14. The council gets a report after nine and after eighteen months. If accidents do not fall or if line "
            "14 loses more than two minutes, the trial ends early."
        ),
        (
            "Are cars still allowed in Mill Street?",
            "How much does the state give for the rebuilding of the crossing?",
            "Who clears the snow on the new cycle route?",
        ),
    ),
)
