# ruby-redis: a consumer group as queue, results in a hash by a transaction, a script for the counter.
require "redis"

action, first, last = ARGV
redis = Redis.new(port: ENV["PORT"].to_i, read_timeout: 10)

case action
when "worker"
  me = "worker-#{Process.pid}"
  begin
    redis.xgroup(:create, "jobs", "workers", "0", mkstream: true)
  rescue Redis::CommandError => error
    raise unless error.message.start_with?("BUSYGROUP")
  end
  loop do
    left = redis.xautoclaim("jobs", "workers", me, 3000, "0", count: 10)["entries"]
    read = redis.xreadgroup("workers", me, "jobs", ">", count: 5, block: 500)
    (left + read.fetch("jobs", [])).each do |id, fields|
      number = fields["number"].to_i
      sleep 0.004
      File.open(ENV["JOBS_DONE"], "a") { |file| file.write("#{number} #{number * number}\n") }
      redis.multi do |unit|
        unit.hset("results", number, number * number)
        unit.xack("jobs", "workers", id)
      end
      redis.eval("return redis.call('INCR', KEYS[1])", keys: ["handled"])
    end
  end
when "send"
  redis.pipelined { |pipe| (first.to_i...last.to_i).each { |number| pipe.xadd("jobs", { number: number }) } }
else
  redis.hgetall("results").each { |number, square| puts "#{number} #{square}" }
end
