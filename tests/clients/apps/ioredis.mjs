// ioredis (5 and 6), its Cluster too: a consumer group as queue, results in a hash by a script of our own, pipelines, pub/sub.
import { master, numbers, password, record, say, sentinels } from "./job.mjs";

const [, , version, action, first, end] = process.argv;
const { Cluster, Redis } = await import(version);
const port = Number(process.env.PORT);
const redis = process.env.IN_CLUSTER
  ? new Cluster([{ host: "127.0.0.1", port }], { clusterRetryStrategy: () => 200 })
  : sentinels
    ? new Redis({ sentinels, name: master, password, maxRetriesPerRequest: null })
    : new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
redis.on("error", (error) => console.error(error.message));
redis.defineCommand("keep", {
  numberOfKeys: 1,
  lua: "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return redis.call('PUBLISH', 'kept', ARGV[1])",
});
const me = `worker-${process.pid}`;

if (action === "worker") {
  for (;;) await turn().catch((error) => console.error(error.message));
}
if (action === "send") {
  const pipeline = redis.pipeline();
  for (const number of numbers(first, end)) pipeline.xadd("jobs", "*", "number", number);
  await pipeline.exec();
}
if (action === "results") {
  const kept = await redis.hgetall("results");
  for (const [number, square] of Object.entries(kept)) say(number, square);
}
await redis.quit();

async function turn() {
  await redis.xgroup("CREATE", "jobs", "workers", "0", "MKSTREAM").catch((error) => {
    if (!error.message.startsWith("BUSYGROUP")) throw error;
  });
  const [, left] = await redis.xautoclaim("jobs", "workers", me, 3000, "0", "COUNT", 10);
  for (const entry of left) await handle(entry);
  const read = await redis.xreadgroup("GROUP", "workers", me, "COUNT", 5, "BLOCK", 500, "STREAMS", "jobs", ">");
  for (const entry of read?.[0][1] ?? []) await handle(entry);
}

async function handle([id, fields]) {
  const number = Number(fields[1]);
  await redis.keep("results", number, await record(number));
  await redis.xack("jobs", "workers", id);
}
