// The same jobs on BullMQ 6 with any Redis: `send` adds them, `work` does them. BULLMQ is a folder with node_modules.
import { createRequire } from "node:module";
import { handle, RULES } from "./jobs.mjs";

const { Queue, Worker } = createRequire(`${process.env.BULLMQ}/package.json`)("bullmq");
const address = new URL(process.env.REDIS_URL);
const connection = { host: address.hostname, port: Number(address.port), maxRetriesPerRequest: null };

// -- the worker -------------------------------------------------------------------------------------------------------

function work() {
  const worker = new Worker("jobs", (job) => handle(job.data.number), {
    connection,
    lockDuration: RULES.leaseMs,
    stalledInterval: RULES.leaseMs / 3,
  });
  worker.on("error", console.error);
}

async function send(numbers) {
  const queue = new Queue("jobs", {
    connection,
    defaultJobOptions: {
      attempts: RULES.most,
      backoff: { type: "exponential", delay: RULES.shortestMs },
      removeOnComplete: true,
    },
  });
  await queue.addBulk(numbers.map((number) => ({ name: "job", data: { number } })));
  await queue.close();
}

// -- the program ------------------------------------------------------------------------------------------------------

if (process.argv[2] === "work") work();
else await send([...Array(RULES.jobs).keys()]);
