// The jobs of jobs.py for workers in JavaScript. JOB_RULES has its numbers, as JSON.
import { appendFileSync, existsSync, readFileSync } from "node:fs";

export const RULES = JSON.parse(process.env.JOB_RULES);

function write(verb, number) {
  appendFileSync(process.env.JOB_JOURNAL, `${verb} ${number} ${process.pid} ${process.hrtime.bigint()}\n`);
}

// Do a job; writes `begun|done number pid ns` to the file JOB_JOURNAL names. Throws where the job cannot be done.
export async function handle(number) {
  const journal = existsSync(process.env.JOB_JOURNAL) ? readFileSync(process.env.JOB_JOURNAL, "utf8") : "";
  const attempt = 1 + journal.split("\n").filter((line) => line.startsWith(`begun ${number} `)).length;
  write("begun", number);
  if (number === RULES.hangs && attempt === 1) await new Promise(() => {});
  if (RULES.poison.includes(number) || (RULES.flaky.includes(number) && attempt <= 2)) {
    throw new Error(`attempt ${attempt} at job ${number}`);
  }
  write("done", number);
}
