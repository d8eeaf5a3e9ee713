// redisc on redigo, a cluster's client in Go: a consumer group as queue, results in a hash by a transaction.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
)

const (
	jobs    = "{desk}jobs"
	results = "{desk}results"
	group   = "workers"
	idleMs  = 3000
	pause   = 200 * time.Millisecond
	patient = 30 * time.Second
)

var cluster = redisc.Cluster{
	StartupNodes: []string{"127.0.0.1:" + os.Getenv("PORT")},
	DialOptions:  []redis.DialOption{redis.DialConnectTimeout(5 * time.Second)},
	CreatePool: func(address string, options ...redis.DialOption) (*redis.Pool, error) {
		dial := func() (redis.Conn, error) { return redis.Dial("tcp", address, options...) }
		return &redis.Pool{MaxIdle: 5, Dial: dial}, nil
	},
}

func main() {
	defer cluster.Close()
	if os.Args[1] == "worker" {
		for {
			if err := turn(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				time.Sleep(pause)
			}
		}
	}
	must(within(patient, refreshed))
	if os.Args[1] == "send" {
		must(send(number(os.Args[2]), number(os.Args[3])))
		return
	}
	conn := cluster.Get()
	defer conn.Close()
	kept, err := redis.StringMap(conn.Do("HGETALL", results))
	must(err)
	for number, square := range kept {
		fmt.Println(number, square)
	}
}

// refreshed asks the cluster which node has which slot.
func refreshed() error { return cluster.Refresh() }

func within(limit time.Duration, try func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(pause) {
		if err := try(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func send(first, end int) error {
	conn := cluster.Get()
	defer conn.Close()
	for n := first; n < end; n++ {
		if _, err := conn.Do("XADD", jobs, "*", "number", n); err != nil {
			return err
		}
	}
	return nil
}

// turn takes what others left for idleMs, then what is new.
func turn() error {
	conn := cluster.Get()
	defer conn.Close()
	if err := redisc.BindConn(conn, jobs); err != nil {
		return err
	}
	_, err := conn.Do("XGROUP", "CREATE", jobs, group, "0", "MKSTREAM")
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	me := fmt.Sprintf("worker-%d", os.Getpid())
	claimed, err := redis.Values(conn.Do("XAUTOCLAIM", jobs, group, me, idleMs, "0", "COUNT", 10))
	if err != nil {
		return err
	}
	if err := handleAll(conn, claimed[1]); err != nil {
		return err
	}
	streams, err := redis.Values(conn.Do("XREADGROUP", "GROUP", group, me, "COUNT", 5, "BLOCK", 500, "STREAMS", jobs, ">"))
	if err == redis.ErrNil {
		return nil
	}
	if err != nil {
		return err
	}
	stream, err := redis.Values(streams[0], nil)
	if err != nil {
		return err
	}
	return handleAll(conn, stream[1])
}

func handleAll(conn redis.Conn, reply interface{}) error {
	entries, err := redis.Values(reply, nil)
	if err != nil {
		return err
	}
	for _, one := range entries {
		if err := handle(conn, one); err != nil {
			return err
		}
	}
	return nil
}

func handle(conn redis.Conn, entry interface{}) error {
	parts, err := redis.Values(entry, nil)
	if err != nil {
		return err
	}
	id, _ := redis.String(parts[0], nil)
	fields, err := redis.Strings(parts[1], nil)
	if err != nil {
		return err
	}
	n := number(fields[1])
	record(n)
	for _, request := range [][]interface{}{{"MULTI"}, {"HSET", results, n, n * n}, {"XACK", jobs, group, id}} {
		if err := conn.Send(request[0].(string), request[1:]...); err != nil {
			return err
		}
	}
	_, err = conn.Do("EXEC")
	return err
}

// record writes a job down where no server is asked.
func record(n int) {
	time.Sleep(4 * time.Millisecond)
	log, err := os.OpenFile(os.Getenv("JOBS_DONE"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	must(err)
	defer log.Close()
	_, err = fmt.Fprintf(log, "%d %d\n", n, n*n)
	must(err)
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
