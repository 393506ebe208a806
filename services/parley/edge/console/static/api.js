// The orchestrator's RPCs and a debate's events, as every program has them (docs/guides/http.md).

const SERVICE = "/parley.v1.OrchestratorService/";
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 15000;
const MARKDOWN_BYTES = 2_000_000;

/** An error of the edge or the orchestrator; its message is for people. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{code?: string, message?: string}} body
   */
  constructor(status, body) {
    super(body.message || `the server answered ${status}; try again`);
    this.status = status;
    this.code = body.code || "";
  }
}

/**
 * Call an RPC with JSON.
 * @param {string} method such as `GetDebate`
 * @param {Record<string, any>} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function call(method, request, signal) {
  const answer = await send(SERVICE + method, request, signal);
  return answer.json();
}

/**
 * Call an RPC that answers with a stream, and return its messages when it has ended.
 * @param {string} method such as `SearchMemory`
 * @param {Record<string, any>} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<any[]>}
 */
export async function collect(method, request, signal) {
  const ask = async () => readEnvelopes(await (await send(SERVICE + method, toEnvelope(request), signal)).arrayBuffer());
  let messages = await ask();
  let { error } = messages.pop() ?? {};
  if (error?.code === "unauthenticated" && (await renewSession())) {
    messages = await ask();
    ({ error } = messages.pop() ?? {});
  }
  if (error) throw new ApiError(error.code === "unauthenticated" ? 401 : 400, error);
  return messages;
}

/**
 * Return a message as the Connect protocol has it in streams: flags, its length in four bytes, and JSON.
 * @param {any} message
 * @returns {Uint8Array<ArrayBuffer>}
 */
function toEnvelope(message) {
  const json = new TextEncoder().encode(JSON.stringify(message));
  const envelope = new Uint8Array(5 + json.length);
  new DataView(envelope.buffer).setUint32(1, json.length);
  envelope.set(json, 5);
  return envelope;
}

/**
 * Return the messages of a stream; the last one says how it ended.
 * @param {ArrayBuffer} content
 * @returns {any[]}
 */
function readEnvelopes(content) {
  const messages = [];
  for (let at = 0; at < content.byteLength; ) {
    const size = new DataView(content).getUint32(at + 1);
    messages.push(JSON.parse(new TextDecoder().decode(new Uint8Array(content, at + 5, size))));
    at += 5 + size;
  }
  return messages;
}

/**
 * Send JSON by POST. Throws ApiError; a server that does not answer too.
 * @param {string} path
 * @param {any} body an envelope goes as it is
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
export async function send(path, body, signal) {
  let answer = await post(path, body, signal);
  if (answer.status === 401 && path !== "/console/session" && (await renewSession())) {
    answer = await post(path, body, signal);
  }
  if (!answer.ok) throw new ApiError(answer.status, await readError(answer));
  return answer;
}

/**
 * @param {string} path
 * @param {any} body
 * @param {AbortSignal} [signal]
 */
async function post(path, body, signal) {
  const isEnvelope = body instanceof Uint8Array;
  try {
    return await fetch(path, {
      method: "POST",
      headers: { "Content-Type": isEnvelope ? "application/connect+json" : "application/json" },
      body: isEnvelope ? /** @type {Uint8Array<ArrayBuffer>} */ (body) : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(503, { code: "unavailable", message: "the server does not answer; try again" });
  }
}

/** @type {Promise<boolean> | null} */
let renewing = null;

/** Get a new token from the provider at which one signed in. Returns whether that is done. */
function renewSession() {
  renewing ??= renew().finally(() => (renewing = null));
  return renewing;
}

async function renew() {
  const ask = () => fetch("/console/oidc/renew", { method: "POST" }).then((answer) => answer.ok, () => false);
  // One page at a time: a provider takes each of its renewal tokens once.
  return navigator.locks ? navigator.locks.request("parley-renewal", ask) : ask();
}

/**
 * @param {Response} answer
 * @returns {Promise<{code?: string, message?: string}>}
 */
async function readError(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.trim().slice(0, 500) };
  }
}

/** @type {{text: string, resolve: (html: string) => void, reject: (error: unknown) => void}[]} */
let waiting = [];

/**
 * Return clean HTML of a Markdown text. Texts of the same moment go in one request.
 * @param {string} text
 * @returns {Promise<string>}
 */
export function renderMarkdown(text) {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) setTimeout(sendWaiting, 0);
    waiting.push({ text, resolve, reject });
  });
}

async function sendWaiting() {
  const taken = waiting;
  waiting = [];
  for (const batch of splitBySize(taken)) {
    try {
      const answer = await send("/console/markdown", batch.map((each) => each.text));
      const pages = await answer.json();
      batch.forEach((each, index) => each.resolve(pages[index]));
    } catch (error) {
      batch.forEach((each) => each.reject(error));
    }
  }
}

/**
 * @template {{text: string}} T
 * @param {T[]} items
 * @returns {T[][]}
 */
function splitBySize(items) {
  /** @type {T[][]} */
  const batches = [[]];
  let size = 0;
  for (const each of items) {
    if (size + each.text.length > MARKDOWN_BYTES / 3 && size > 0) {
      batches.push([]);
      size = 0;
    }
    batches[batches.length - 1].push(each);
    size += each.text.length;
  }
  return batches;
}

/**
 * @typedef {object} Watcher
 * @property {(event: any) => void} onEvent an event of the log, each once and in order
 * @property {(delta: any) => void} [onDelta] text of a step in flight
 * @property {() => void} onEnd the debate has ended, and all of its events came
 * @property {(isConnected: boolean) => void} [onConnection]
 * @property {(error: ApiError) => void} onError the debate cannot be watched; it is not tried again
 */

/**
 * Follow a debate until it ends or the signal is aborted. A lost connection is made again, and nothing is missed or given twice.
 * @param {string} debateId
 * @param {Watcher} watcher
 * @param {AbortSignal} signal
 * @param {number} [after] the last sequence that is known already
 */
export function watch(debateId, watcher, signal, after = 0) {
  let last = after;
  let retryMs = FIRST_RETRY_MS;
  /** @type {EventSource} */
  let source;
  let timer = 0;

  function connect() {
    source = new EventSource(`/v1/debates/${encodeURIComponent(debateId)}/events?after=${last}&deltas=1`);
    source.addEventListener("open", () => {
      retryMs = FIRST_RETRY_MS;
      watcher.onConnection?.(true);
    });
    source.addEventListener("event", (message) => {
      const event = JSON.parse(message.data);
      if (Number(event.sequence) <= last) return;
      last = Number(event.sequence);
      watcher.onEvent(event);
    });
    source.addEventListener("delta", (message) => watcher.onDelta?.(JSON.parse(message.data)));
    source.addEventListener("end", finish);
    source.addEventListener("error", (message) => {
      source.close();
      if (signal.aborted) return;
      watcher.onConnection?.(false);
      if (message instanceof MessageEvent) stopIfFinal(JSON.parse(message.data));
      else findReason();
    });
  }

  function finish() {
    source.close();
    watcher.onEnd();
  }

  // An EventSource hides why it was refused: ask once more by a request that shows it.
  async function findReason() {
    try {
      const debate = (await call("GetDebate", { debateId }, signal)).debate;
      if (Number(debate.lastSequence) <= last && ENDED.has(debate.status)) finish();
      else retry();
    } catch (error) {
      if (error instanceof ApiError) stopIfFinal({ ...error, status: error.status, message: error.message });
    }
  }

  /** @param {{code: string, message: string, status?: number}} error */
  function stopIfFinal(error) {
    if (FINAL.has(error.code)) watcher.onError(new ApiError(error.status ?? 400, error));
    else retry();
  }

  function retry() {
    timer = window.setTimeout(connect, retryMs * (0.5 + Math.random()));
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }

  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    source.close();
  });
  connect();
}

const FINAL = new Set(["not_found", "unauthenticated", "permission_denied", "invalid_argument"]);
const ENDED = new Set(["DEBATE_STATUS_COMPLETED", "DEBATE_STATUS_FAILED", "DEBATE_STATUS_CANCELLED"]);
