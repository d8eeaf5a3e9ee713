// The job of the frameworks on Node: square a number, and write both down where no server is asked.
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

// Where the Sentinels are, behind which the servers are; null where there is one server.
export const sentinels =
  process.env.SENTINELS?.split(" ").map((place) => ({ host: place.split(":")[0], port: Number(place.split(":")[1]) })) ??
  null;
export const master = "main";
export const password = process.env.PASSWORD;

export async function record(number) {
  await pause(4);
  appendFileSync(process.env.JOBS_DONE, `${number} ${number * number}\n`);
  return number * number;
}

export function say(number, result) {
  process.stdout.write(`${number} ${result}\n`);
}

export function numbers(first, end) {
  return Array.from({ length: end - first }, (_, index) => Number(first) + index);
}
