<?php
// php-redis: a consumer group as queue, results in a hash by a transaction, a script for the counter.
[, $action, $first, $end] = array_pad($argv, 4, 0);
$redis = new Redis();
$redis->connect("127.0.0.1", (int) getenv("PORT"));

if ($action === "worker") {
    $me = "worker-" . getmypid();
    @$redis->xGroup("CREATE", "jobs", "workers", "0", true);
    while (true) {
        $claimed = $redis->rawCommand("XAUTOCLAIM", "jobs", "workers", $me, "3000", "0", "COUNT", "10", "JUSTID")[1];
        $left = $claimed ? $redis->xClaim("jobs", "workers", $me, 0, $claimed, []) : [];
        $read = $redis->xReadGroup("workers", $me, ["jobs" => ">"], 5, 500);
        foreach ($left + ($read["jobs"] ?? []) as $id => $fields) {
            $number = (int) $fields["number"];
            usleep(4000);
            file_put_contents(getenv("JOBS_DONE"), "$number " . $number * $number . "\n", FILE_APPEND);
            $redis->multi()->hSet("results", $number, $number * $number)->xAck("jobs", "workers", [$id])->exec();
            $redis->eval("return redis.call('INCR', KEYS[1])", ["handled"], 1);
        }
    }
} elseif ($action === "send") {
    for ($number = (int) $first; $number < (int) $end; $number++) {
        $redis->xAdd("jobs", "*", ["number" => $number]);
    }
} else {
    foreach ($redis->hGetAll("results") as $number => $square) {
        echo "$number $square\n";
    }
}
