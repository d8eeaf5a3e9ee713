// node-redis (5 and 6), its cluster too: a consumer group as queue, results in a hash by a transaction, in RESP3.
import { master, numbers, password, record, say, sentinels } from "./job.mjs";

const [, , version, action, first, end] = process.argv;
const { createClient, createCluster, createSentinel } = await import(version);
const url = process.env.REDIS_URL;
const inCluster = Boolean(process.env.IN_CLUSTER);
const client = sentinels
  ? createSentinel({ name: master, sentinelRootNodes: sentinels, nodeClientOptions: { password }, RESP: 3 })
  : inCluster
    ? createCluster({ rootNodes: [{ url }], RESP: 3 })
    : createClient({ url, RESP: 3 });
const jobs = "{desk}jobs"; // one transaction changes both keys: in a cluster they share a slot
const results = "{desk}results";
client.on("error", (error) => console.error(error.message));
await client.connect();
const me = `worker-${process.pid}`;

if (action === "worker") {
  for (;;) await turn().catch((error) => console.error(error.message));
}
if (action === "send") {
  await Promise.all(numbers(first, end).map((number) => client.xAdd(jobs, "*", { number: String(number) })));
}
if (action === "results") {
  const kept = await client.hGetAll(results);
  for (const [number, square] of Object.entries(kept)) say(number, square);
}
await client.close();

async function turn() {
  await client.xGroupCreate(jobs, "workers", "0", { MKSTREAM: true }).catch((error) => {
    if (!error.message.startsWith("BUSYGROUP")) throw error;
  });
  const { messages: left } = await client.xAutoClaim(jobs, "workers", me, 3000, "0", { COUNT: 10 });
  for (const entry of left) await handle(entry);
  const read = ["XREADGROUP", "GROUP", "workers", me, "COUNT", "5", "BLOCK", "500", "STREAMS", jobs, ">"];
  const reply = await (sentinels
    ? client.sendCommand(false, read)
    : inCluster
      ? client.sendCommand(jobs, false, read)
      : client.sendCommand(read));
  for (const [id, fields] of reply?.[jobs] ?? []) await handle({ id, message: { number: fields[1] } });
}

async function handle({ id, message }) {
  const number = Number(message.number);
  const square = await record(number);
  await client.multi().hSet(results, String(number), String(square)).xAck(jobs, "workers", id).exec();
}
