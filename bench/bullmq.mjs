// node bullmq.mjs FOLDER PORT add|work|remove COUNT: a phase of a queue's life by BullMQ, which is installed in FOLDER.
import { createRequire } from "node:module";

const [folder, port, phase, count] = process.argv.slice(2);
const { Queue, Worker } = createRequire(`${folder}/`)("bullmq");
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const AT_ONCE = 500;
const CONCURRENCY = 50;

if (phase === "work") {
  let left = Number(count);
  const worker = new Worker("jobs", async (job) => job.data.number * 2, { connection, concurrency: CONCURRENCY });
  await new Promise((resolve) => worker.on("completed", () => --left || resolve()));
  await worker.close();
} else {
  const queue = new Queue("jobs", { connection });
  if (phase === "add") {
    for (let first = 0; first < count; first += AT_ONCE) {
      const numbers = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, index) => first + index);
      await queue.addBulk(numbers.map((number) => ({ name: "double", data: { number, text: "x".repeat(100) } })));
    }
  } else {
    const removed = await queue.clean(0, Number(count), "completed");
    if (removed.length !== Number(count)) throw new Error(`${removed.length} jobs were removed`);
  }
  await queue.close();
}
