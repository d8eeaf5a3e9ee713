#!/bin/sh
# redis-cli: a list as queue, moved to a list of one's own by BLMOVE; sends by --pipe, keeps results by a script.
cli="redis-cli -p $PORT"
case "$1" in
worker)
    mine="taken-by-$$"
    $cli EVAL "for _, taken in ipairs(redis.call('KEYS', 'taken-by-*')) do
                   while redis.call('LMOVE', taken, 'jobs', 'LEFT', 'LEFT') do end end" 0 >/dev/null || exit 1
    while number=$($cli BLMOVE jobs "$mine" LEFT RIGHT 1); do
        [ -n "$number" ] || continue
        case "$number" in *[!0-9]*) exit 1 ;; esac
        square=$((number * number))
        echo "$number $square" >>"$JOBS_DONE"
        $cli EVAL "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return redis.call('LREM', KEYS[2], 1, ARGV[1])" \
            2 results "$mine" "$number" "$square" >/dev/null || exit 1
    done
    exit 1
    ;;
send)
    number=$2
    while [ "$number" -lt "$3" ]; do
        echo "RPUSH jobs $number"
        number=$((number + 1))
    done | $cli --pipe
    ;;
*)
    $cli HGETALL results | paste -d ' ' - -
    ;;
esac
