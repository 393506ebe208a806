// Receives webhooks of a hook, verifies them, and prints what each tells: HOOK_SECRET=whsec_… node receive.js [PORT]
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.HOOK_SECRET);
const seen = new Set();

const server = createServer(async (request, response) => {
  let body = "";
  request.setEncoding("utf8");
  for await (const part of request) body += part;
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch {
    response.writeHead(401).end();
    return;
  }
  if (!seen.has(event.id)) console.log(event.id, event.type, event.data.answer ?? "");
  seen.add(event.id); // the same id may come again
  response.writeHead(204).end();
});

server.listen(Number(process.argv[2] ?? 8080), "127.0.0.1", () => console.log("listening", server.address().port));
