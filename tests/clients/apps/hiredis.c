/* libhiredis: a consumer group as queue, results in a hash by a pipelined transaction.  hiredis ACTION [FIRST END] */
#include <hiredis/hiredis.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static redisReply *answered(redisContext *link, redisReply *reply)
{
    if (reply == NULL) {
        fprintf(stderr, "%s\n", link->errstr);
        exit(1);
    }
    return reply;
}

static void done(redisContext *link, redisReply *entry)
{
    long number = atol(entry->element[1]->element[1]->str);
    char line[64];
    int length = snprintf(line, sizeof line, "%ld %ld\n", number, number * number);
    int log = open(getenv("JOBS_DONE"), O_WRONLY | O_APPEND);
    void *reply;

    usleep(4000);
    if (write(log, line, length) != length)
        exit(1);
    close(log);
    redisAppendCommand(link, "MULTI");
    redisAppendCommand(link, "HSET results %ld %ld", number, number * number);
    redisAppendCommand(link, "XACK jobs workers %s", entry->element[0]->str);
    redisAppendCommand(link, "EXEC");
    for (int count = 0; count < 4; count++) {
        if (redisGetReply(link, &reply) != REDIS_OK)
            exit(1);
        freeReplyObject(reply);
    }
}

static void work(redisContext *link)
{
    int me = getpid();

    freeReplyObject(answered(link, redisCommand(link, "XGROUP CREATE jobs workers 0 MKSTREAM")));
    for (;;) {
        redisReply *left = answered(link, redisCommand(link, "XAUTOCLAIM jobs workers w%d 3000 0 COUNT 10", me));
        for (size_t at = 0; at < left->element[1]->elements; at++)
            done(link, left->element[1]->element[at]);
        freeReplyObject(left);
        redisReply *read = answered(
            link, redisCommand(link, "XREADGROUP GROUP workers w%d COUNT 5 BLOCK 500 STREAMS jobs >", me));
        if (read->type == REDIS_REPLY_ARRAY)
            for (size_t at = 0; at < read->element[0]->element[1]->elements; at++)
                done(link, read->element[0]->element[1]->element[at]);
        freeReplyObject(read);
    }
}

static void send(redisContext *link, long first, long end)
{
    void *reply;

    for (long number = first; number < end; number++)
        redisAppendCommand(link, "XADD jobs * number %ld", number);
    for (long number = first; number < end; number++) {
        if (redisGetReply(link, &reply) != REDIS_OK)
            exit(1);
        freeReplyObject(reply);
    }
}

int main(int count, char **words)
{
    redisContext *link = redisConnect("127.0.0.1", atoi(getenv("PORT")));

    if (link == NULL || link->err)
        return 1;
    if (!strcmp(words[1], "worker"))
        work(link);
    else if (!strcmp(words[1], "send") && count == 4)
        send(link, atol(words[2]), atol(words[3]));
    else {
        redisReply *kept = answered(link, redisCommand(link, "HGETALL results"));
        for (size_t at = 0; at + 1 < kept->elements; at += 2)
            printf("%s %s\n", kept->element[at]->str, kept->element[at + 1]->str);
    }
    redisFree(link);
    return 0;
}
