// Holds a debate, follows it and prints its answer: node debate.js HOST:PORT "QUESTION"
import { randomUUID } from 'node:crypto';
import { connected } from './connected.js';
import { reasonOf } from './reasons.js';

const [target = '127.0.0.1:7401', question = 'Should sessions be kept in Redis or in PostgreSQL?'] =
  process.argv.slice(2);

/** Prints events until the debate closes or fails; a stream that breaks is taken up after the last event seen. */
async function follow(parley, debateId) {
  let last = 0;
  for (let broken = 0; broken < 10; ) {
    try {
      for await (const message of parley.watch({ debate_id: debateId, after_sequence: last })) {
        broken = 0;
        if (message.event) {
          last = message.event.sequence;
          console.log(`${last} ${message.event.payload ?? 'an event that this contract does not know'}`);
        }
      }
      return;
    } catch (error) {
      if (!parley.mayComeBack(error)) throw error;
      broken += 1;
      await new Promise((resolve) => setTimeout(resolve, 200 * broken));
    }
  }
  throw new Error(`the watch of ${debateId} broke again and again`);
}

const parley = connected(target);
try {
  const spec = { question, panel: { rounds: 1 }, labels: { team: 'payments' } };
  // The same request id with the same content is the same debate, so that this can be sent again.
  const { debate_id: debateId } = await parley.call('CreateDebate', { request_id: randomUUID(), spec });
  await follow(parley, debateId);
  const { markdown } = await parley.call('GetAnswer', { debate_id: debateId });
  console.log(markdown);
  const { debates } = await parley.call('ListDebates', { labels: { team: 'payments' }, page_size: 5 });
  console.log(debates.map((each) => `${each.id} ${each.status}`).join('\n'));
} catch (error) {
  console.error(`${reasonOf(error)}: ${error.details ?? error.message}`);
  process.exitCode = 1;
} finally {
  parley.close();
}
