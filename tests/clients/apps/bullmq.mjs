// BullMQ: a queue of lists, sorted sets, hashes and an event stream behind Lua scripts; stalled jobs come back.
import { Queue, Worker } from "bullmq";
import { master, numbers, password, record, say, sentinels } from "./job.mjs";

const place = sentinels ? { sentinels, name: master, password } : { host: "127.0.0.1", port: Number(process.env.PORT) };
const connection = { ...place, maxRetriesPerRequest: null };
const DELAYED = 10; // of those sent together, so many wait a second first
const action = process.argv[3];

if (action === "worker") {
  const worker = new Worker("jobs", async (job) => record(job.data.number), {
    connection,
    concurrency: 4,
    lockDuration: 3000,
    stalledInterval: 2000,
    maxStalledCount: 5,
  });
  worker.on("error", (error) => console.error(error.message));
} else {
  const queue = new Queue("jobs", { connection });
  if (action === "send") {
    const wanted = numbers(process.argv[4], process.argv[5]);
    await queue.addBulk(
      wanted.map((number, index) => ({
        name: "square",
        data: { number },
        opts: {
          jobId: `job-${number}`,
          attempts: 3,
          priority: index % 10 === 0 ? 5 : 0,
          delay: index >= wanted.length - DELAYED ? 1000 : 0,
        },
      })),
    );
  } else {
    for (const job of await queue.getCompleted(0, -1)) say(job.data.number, job.returnvalue);
  }
  await queue.close();
}
