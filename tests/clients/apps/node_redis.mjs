// node-redis (5 and 6): a consumer group as queue, results in a hash by a transaction, RESP2 in 5 and RESP3 as well.
import { record, numbers, say } from "./job.mjs";

const [, , version, action, first, end] = process.argv;
const { createClient } = await import(version);
const client = createClient({ url: process.env.REDIS_URL, RESP: 3 });
client.on("error", (error) => console.error(error.message));
await client.connect();
const me = `worker-${process.pid}`;

if (action === "worker") {
  for (;;) await turn().catch((error) => console.error(error.message));
}
if (action === "send") {
  await Promise.all(numbers(first, end).map((number) => client.xAdd("jobs", "*", { number: String(number) })));
}
if (action === "results") {
  const kept = await client.hGetAll("results");
  for (const [number, square] of Object.entries(kept)) say(number, square);
}
await client.close();

async function turn() {
  await client.xGroupCreate("jobs", "workers", "0", { MKSTREAM: true }).catch((error) => {
    if (!error.message.startsWith("BUSYGROUP")) throw error;
  });
  const { messages: left } = await client.xAutoClaim("jobs", "workers", me, 3000, "0", { COUNT: 10 });
  for (const entry of left) await handle(entry);
  const reply = await client.sendCommand(
    ["XREADGROUP", "GROUP", "workers", me, "COUNT", "5", "BLOCK", "500", "STREAMS", "jobs", ">"],
  );
  for (const [id, fields] of reply?.jobs ?? []) await handle({ id, message: { number: fields[1] } });
}

async function handle({ id, message }) {
  const number = Number(message.number);
  const square = await record(number);
  await client.multi().hSet("results", String(number), String(square)).xAck("jobs", "workers", id).exec();
}
