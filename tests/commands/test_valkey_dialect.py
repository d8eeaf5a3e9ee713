"""compat-version valkey-9.1 and valkey-9.2: where Valkey answers otherwise than Redis.

Each reply of 9.1 was seen on Valkey 9.1.2. Those of 9.2 follow its release notes and a library that is tested against
it; they are compared as soon as the Valkey at hand is one.
"""

import pytest

from penstock.clock import ManualClock
from penstock.config.settings import DIRECTIVES
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.shell_words import split
from tests.support.wire import Array, Bulk, Connection, Error, Integer, Simple, Value, parse

ON = " script: on @user_script:1."
BAD_LOG = "-ERR type should be one of the following: slow, large-request, large-reply"
NO_DATABASE = "NOPERM No permissions to access database"
CHANGED = (
    "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no"
    " longer allowed for the following reason: no permission"
)
WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"
WRONG_COUNT = "-ERR numfields should be greater than 0 and match the provided number of fields"
LAST = """EVAL "local e = redis.call('COMMANDLOG','GET','1','{}')[1]; return {{e[3], e[4], e[6], #e}}" 0"""
LOOK = """EVAL "return redis.call('INFO','stats'):match('{}:(%d+)')" 0"""
DIALOGUES = {
    "a script's table is called server": [
        ("""EVAL "return server.call('SET','a','1')" 0""", "+OK"),
        ("""EVAL "return {server.SERVER_NAME, server.REDIS_VERSION, tostring(server == redis)}" 0""",
         "*3 $valkey $7.2.4 $true"),
        ("""EVAL "return server.VALKEY_VERSION_NUM - 0x90000 > 0" 0""", ":1"),
        ("""EVAL "server.x = 1" 0""", "-ERR user_script:1: Attempt to modify a readonly table" + ON),
    ],
    "a script's errors name no script": [
        ("""EVAL "return redis.call('nosuch')" 0""", "-ERR Unknown command called from script" + ON),
        ("""EVAL "return redis.pcall('nosuch')" 0""", "-ERR Unknown command called from script"),
        ("""EVAL "return redis.call('incr')" 0""", "-ERR Wrong number of args calling command from script" + ON),
        ("""EVAL "return redis.call('subscribe','x')" 0""",
         "-ERR This Valkey command is not allowed from script" + ON),
        ("""EVAL "return server.call()" 0""", "-ERR Please specify at least one argument for this call" + ON),
        ("""EVAL "return redis.call({})" 0""", "-ERR Command arguments must be strings or integers" + ON),
        ("""EVAL "return redis.log(1)" 0""", "-ERR server.log() requires two arguments or more." + ON),
        ("""EVAL "return redis.acl_check_cmd('nosuch')" 0""",
         "-ERR Invalid command passed to server.acl_check_cmd()" + ON),
        ("EVALSHA 0123 0", "-NOSCRIPT No matching script."),
    ],
    "MULTI in MULTI discards": [
        ("MULTI", "+OK"),
        ("MULTI", "-ERR Command 'multi' not allowed inside a transaction"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
    ],
    "WATCH in MULTI discards": [
        ("MULTI", "+OK"),
        ("WATCH a", "-ERR Command 'watch' not allowed inside a transaction"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
    ],
    "CLIENT REPLY in MULTI discards": [
        ("MULTI", "+OK"),
        ("CLIENT REPLY SKIP", "-ERR Command 'client|reply' not allowed inside a transaction"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
    ],
    "SCAN knows its types": [
        ("SCAN 0 TYPE nosuch", "-ERR unknown type name 'nosuch'"),
        ("SCAN 0 TYPE ZSET", "*2 $0 *0"),
    ],
    "ZSCAN leaves out scores": [
        ("ZADD z 1 a 2.5 b", ":2"),
        ("ZSCAN z 0 NOSCORES", "*2 $0 *2 $a $b"),
        ("ZSCAN z 0 COUNT 5 noscores MATCH b", "*2 $0 *1 $b"),
        ("ZSCAN z 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"),
        ("SCAN 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN"),
        ("HSET h f v", ":1"),
        ("HSCAN h 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN"),
        ("SADD s a", ":1"),
        ("SSCAN s 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN"),
    ],
    "CLIENT LIST has conditions": [
        ("CLIENT SETNAME me", "+OK"),
        ("CLIENT LIST ID x", "-ERR syntax error"),
        ("CLIENT LIST ID 0", "-ERR client-id should be greater than 0"),
        ("CLIENT LIST ID 99999 99998 NAME me", "$"),
        ("CLIENT LIST NAME", "-ERR syntax error"),
        ("CLIENT LIST USER nosuch", "-ERR No such user 'nosuch'"),
        ("CLIENT LIST NOT-USER default", "$"),
        ("CLIENT LIST MAXAGE 0", "-ERR maxage should be greater than 0"),
        ("CLIENT LIST NOT-MAXAGE 1", "-ERR syntax error"),
        ("CLIENT LIST IDLE x", "-ERR idle is not an integer or out of range"),
        ("CLIENT LIST IDLE 100000", "$"),
        ("CLIENT LIST FLAGS Nz", "-ERR Unknown flags found in the provided filter: Nz"),
        ("CLIENT LIST FLAGS NP", "$"),
        ("CLIENT LIST NOT-FLAGS z", "-ERR Unknown flags found in the NOT-FLAGS filter: z"),
        ("CLIENT LIST NOT-FLAGS N", "$"),
        ("CLIENT LIST CAPA z", "-ERR Unknown capa found in the provided filter: z"),
        ("CLIENT LIST CAPA r", "$"),
        ("CLIENT LIST DB 99", "-ERR DB number should be between 0 and 15"),
        ("CLIENT LIST NOT-DB x", "-ERR NOT-DB is not an integer or out of range"),
        ("CLIENT LIST NOT-DB 0", "$"),
        ("CLIENT LIST NOT-IP 127.0.0.1", "$"),
        ("CLIENT LIST NOT-NAME me", "$"),
        ("CLIENT LIST NAME me NAME you", "$"),
        ('CLIENT LIST LIB-NAME ""', "$"),
        ("CLIENT LIST SKIPME yes", "$"),
        ("CLIENT LIST NOT-TYPE normal", "$"),
        ("CLIENT LIST TYPE nosuch", "-ERR Unknown client type 'nosuch'"),
        ("CLIENT LIST TYPE primary", "$"),
        ("CLIENT LIST NAME x BAD y", "-ERR syntax error"),
    ],
    "CLIENT KILL has the same": [
        ("CLIENT SETNAME me", "+OK"),
        ("CLIENT KILL ID x", "-ERR syntax error"),
        ("CLIENT KILL ID 99999 99998", ":0"),
        ("CLIENT KILL NAME me", ":0"),
        ("CLIENT KILL NOT-NAME you IDLE 100000", ":0"),
        ("CLIENT KILL FLAGS z", "-ERR Unknown flags found in the provided filter: z"),
        ("CLIENT KILL DB -1", "-ERR DB number should be between 0 and 15"),
        ("CLIENT KILL LIB-NAME q LIB-VER z", ":0"),
        ("CLIENT KILL IP 1.1.1.1 NOT-IP 1.1.1.1", ":0"),
        ("CLIENT KILL TYPE primary TYPE normal SKIPME yes NAME you", ":0"),
        ("CLIENT KILL SKIPME no NAME me", ":1"),
    ],
    "DELIFEQ deletes a string": [
        ("SET a x", "+OK"),
        ("DELIFEQ a y", ":0"),
        ("DELIFEQ a x", ":1"),
        ("DELIFEQ a x", ":0"),
        ("SADD s x", ":1"),
        ("DELIFEQ s x", f"-{WRONG}"),
        ("DELIFEQ s", "-ERR wrong number of arguments for 'delifeq' command"),
    ],
    "COMMANDLOG has the slow log": [
        ("COMMANDLOG RESET slow", "+OK"),
        ("COMMANDLOG LEN slow", ":0"),
        ("CONFIG SET slowlog-log-slower-than 0", "+OK"),
        ("CONFIG SET slowlog-log-slower-than -1", "+OK"),
        ("COMMANDLOG LEN SLOW", ":1"),
        ("COMMANDLOG GET 0 slow", "*0"),
        ("COMMANDLOG GET -2 slow", "-ERR count should be greater than or equal to -1"),
        ("COMMANDLOG GET x slow", "-ERR count should be greater than or equal to -1"),
        ("COMMANDLOG GET 1 bad", BAD_LOG),
        ("COMMANDLOG LEN bad", BAD_LOG),
        ("COMMANDLOG RESET bad", BAD_LOG),
        ("COMMANDLOG GET 1", "-ERR wrong number of arguments for 'commandlog|get' command"),
        ("COMMANDLOG", "-ERR wrong number of arguments for 'commandlog' command"),
    ],
    "COMMANDLOG has large requests and replies": [
        ("CONFIG SET commandlog-request-larger-than 60 commandlog-reply-larger-than 30", "+OK"),
        ("COMMANDLOG RESET large-request", "+OK"),
        ("COMMANDLOG RESET large-reply", "+OK"),
        (f"SET k {'x' * 32}", "+OK"),
        ("COMMANDLOG LEN large-request", ":0"),
        (f"SET k {'x' * 33}", "+OK"),
        ("COMMANDLOG LEN large-request", ":1"),
        (LAST.format("large-request"), f"*4 :60 *3 $SET $k ${'x' * 33} $ :6"),
        ("COMMANDLOG RESET large-request", "+OK"),
        ("CLIENT SETNAME me", "+OK"),
        (f"LPUSH k {'y' * 100} {'y' * 200}", f"-{WRONG}"),
        (f"SET k {'y' * 100} z", "-ERR syntax error"),
        (f"NOSUCH {'y' * 100}", f"-ERR unknown command 'NOSUCH', with args beginning with: '{'y' * 100}' "),
        ("COMMANDLOG LEN large-request", ":2"),
        ("COMMANDLOG RESET large-reply", "+OK"),
        ("GET k", f"${'x' * 33}"),
        ("GETRANGE k 0 21", f"${'x' * 22}"),
        ("COMMANDLOG LEN large-reply", ":1"),
        (LAST.format("large-reply"), "*4 :40 *2 $GET $k $me :6"),
        ("""EVAL "redis.call('GET','k'); return 1" 0""", ":1"),
        ("COMMANDLOG LEN large-reply", ":4"),
        ("CONFIG SET commandlog-reply-larger-than -1 commandlog-large-reply-max-len 1", "+OK"),
        ("GET k", f"${'x' * 33}"),
        ("COMMANDLOG LEN large-reply", ":4"),
        ("CONFIG SET commandlog-reply-larger-than 40", "+OK"),
        ("GET k", f"${'x' * 33}"),
        ("COMMANDLOG LEN large-reply", ":1"),
        ("CONFIG SET commandlog-large-reply-max-len 0", "+OK"),
        ("GET k", f"${'x' * 33}"),
        ("COMMANDLOG LEN large-reply", ":1"),
        ("CONFIG SET commandlog-reply-larger-than -2",
         "-ERR CONFIG SET failed (possibly related to argument 'commandlog-reply-larger-than') - argument must be "
         "between -1 and 9223372036854775807 inclusive"),
        ("CONFIG SET commandlog-request-larger-than 1048576 commandlog-large-reply-max-len 128", "+OK"),
        ("CONFIG GET commandlog-request-larger-than", "*2 $commandlog-request-larger-than $1048576"),
        ("CONFIG SET commandlog-slow-execution-max-len 5", "+OK"),
        ("CONFIG GET slowlog-max-len", "*2 $slowlog-max-len $5"),
        ("CONFIG SET slowlog-max-len 128", "+OK"),
    ],
    "a master's password has Valkey's name, too": [
        ("CONFIG SET primaryauth secret primaryuser me", "+OK"),
        ("CONFIG GET masterauth", "*2 $masterauth $secret"),
        ("CONFIG GET primary*", "*4 $primaryauth $secret $primaryuser $me"),
        ('CONFIG SET masterauth "" masteruser ""', "+OK"),
        ("CONFIG GET primaryuser", "*2 $primaryuser $"),
        ("CONFIG SET slowlog-log-slower-than 0", "+OK"),
        ("CONFIG SET primaryuser me primaryauth secret", "+OK"),
        ("CONFIG SET primaryuser '' primaryauth '' slowlog-log-slower-than -1", "+OK"),
        ("""EVAL "return redis.call('SLOWLOG','GET','1')[1][4]" 0""",
         "*6 $CONFIG $SET $primaryuser $(redacted) $primaryauth $(redacted)"),
    ],
    "what a script asks is logged as its client's": [
        ("CLIENT SETNAME me", "+OK"),
        ("CONFIG SET slowlog-log-slower-than 0", "+OK"),
        ("""EVAL "return redis.call('STRLEN','k')" 0""", ":0"),
        ("CONFIG SET slowlog-log-slower-than -1", "+OK"),
        ("""EVAL "local e = redis.call('SLOWLOG','GET','2')[2]; return {e[4], e[6], e[5] ~= ''}" 0""",
         "*3 *2 $STRLEN $k $me :1"),
    ],
    "SCRIPT SHOW has the text": [
        ('SCRIPT LOAD "return 1"', "$e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
        ("SCRIPT SHOW E0e1f9fabfc9d4800c877a703b823ac0578ff8db", "$return 1"),
        ("SCRIPT SHOW x", "-NOSCRIPT No matching script."),
    ],
    "CLIENT CAPA is kept": [
        ("CLIENT CAPA", "-ERR wrong number of arguments for 'client|capa' command"),
        ("CLIENT CAPA other", "+OK"),
        ("CLIENT LIST CAPA r", "$"),
        ("CLIENT CAPA other REDIRECT", "+OK"),
        ("RESET", "+RESET"),
        ("CLIENT LIST NOT-CAPA r", "$"),
    ],
    "an import sees what has expired": [
        ("CLIENT IMPORT-SOURCE ON", "-ERR Server is not in import mode"),
        ("CLIENT IMPORT-SOURCE x", "-ERR Server is not in import mode"),
        ("CLIENT IMPORT-SOURCE OFF", "+OK"),
        ("CONFIG SET import-mode yes", "+OK"),
        ("CLIENT IMPORT-SOURCE x", "-ERR syntax error"),
        ("CLIENT IMPORT-SOURCE", "-ERR wrong number of arguments for 'client|import-source' command"),
        ("CLIENT IMPORT-SOURCE ON", "+OK"),
        ("""EVAL "return redis.call('CLIENT', 'LIST')" 0""",
         "-ERR This Valkey command is not allowed from script" + ON),
        ("SET k 1 PXAT 1000", "+OK"),
        ("SET l 1", "+OK"),
        ("EXPIRE l -1", ":1"),
        ("HSET h f v g w", ":2"),
        ("HPEXPIREAT h 1000 FIELDS 1 f", "*1 :1"),
        ("GETEX k PXAT 2000", "$1"),
        ("MGET k l", "*2 $1 $1"),
        ("TTL k", ":0"),
        ("KEYS l", "*1 $l"),
        ("HGET h f", "$v"),
        ("HTTL h FIELDS 1 f", "*1 :0"),
        ("""EVAL "return redis.call('GET', 'k')" 0""", "$1"),
        ("CLIENT IMPORT-SOURCE OFF", "+OK"),
        ("MGET k l", "*2 NullBulk() NullBulk()"),
        ("EXISTS k l h", ":1"),
        ("HGET h f", "NullBulk()"),
        ("DBSIZE", ":3"),
        ("SET m 1 PXAT 1000", "+OK"),
        ("INCR l", ":1"),
        ("DBSIZE", ":4"),
        ("CLIENT IMPORT-SOURCE ON", "+OK"),
        ("MGET k l m", "*3 $1 $1 $1"),
        ("PTTL l", ":-1"),
        ("CONFIG SET import-mode no", "+OK"),
        ("MGET k l m", "*3 NullBulk() $1 NullBulk()"),
        ("DBSIZE", ":2"),
    ],
    "COMMAND and ACL know them": [
        ("COMMAND INFO delifeq",
         "*1 *10 $delifeq :3 *2 +write +fast :1 :1 :1 *3 +@write +@string +@fast *0 *1 *6 $flags *2 +RM +delete "
         "$begin_search *4 $type $index $spec *2 $index :1 $find_keys *4 $type $range $spec *6 $lastkey :0 "
         "$keystep :1 $limit :0 *0"),
        ("COMMAND GETKEYS DELIFEQ k v", "*1 $k"),
        ("ACL DRYRUN default DELIFEQ k v", "+OK"),
        ("ACL SETUSER u +commandlog|len", "+OK"),
        ("ACL DELUSER u", ":1"),
    ],
    "a server says where it is": [
        ("CONFIG SET availability-zone eu-1", "+OK"),
        ("""EVAL "return redis.call('INFO','server'):match('availability_zone:([^%c]*)')" 0""", "$eu-1"),
        ("CONFIG SET availability-zone ''", "+OK"),
    ],
    "rules of users name databases": [
        ("ACL SETUSER u on nopass +@all ~* &* db=2,0", "+OK"),
        ("ACL LIST", "*2 $user default on nopass ~* &* +@all $user u on nopass ~* &* db=0,2 +@all"),
        ("ACL SETUSER u db=1 (DB=3 +get ~x) (+get)", "+OK"),
        ("ACL GETUSER u",
         "*14 $flags *2 $on $nopass $passwords *0 $commands $+@all $keys $~* $channels $&* $databases $db=1 $selectors"
         " *2 *8 $commands $-@all +get $keys $~x $channels $ $databases $db=3"
         " *8 $commands $-@all +get $keys $ $channels $ $databases $alldbs"),
        ("ACL SETUSER u RESETDBS clearselectors skip-sanitize-payload", "+OK"),
        ("ACL LIST", "*2 $user default on nopass ~* &* +@all $user u on nopass ~* &* resetdbs +@all"),
        ("ACL SETUSER u alldbs", "+OK"),
        ("ACL LIST", "*2 $user default on nopass ~* &* +@all $user u on nopass ~* &* +@all"),
        ("ACL SETUSER u db=", "-ERR Error in ACL SETUSER modifier 'db=': Syntax error"),
        ("ACL SETUSER u db=1,x", "-ERR Error in ACL SETUSER modifier 'db=1,x': Syntax error"),
        ("ACL SETUSER u db=-1",
         "-ERR Error in ACL SETUSER modifier 'db=-1': The provided database ID is out of range"),
        ("ACL DELUSER u", ":1"),
    ],
    "a user has only its databases": [
        ("ACL SETUSER u on nopass +@all ~* &* db=0,2", "+OK"),
        ("SELECT 1", "+OK"),
        ("ACL DRYRUN u GET k", "$User u has no permissions to access database GET"),
        ("ACL DRYRUN u SELECT 0", "+OK"),
        ("ACL DRYRUN u PING", "+OK"),
        ("AUTH u x", "+OK"),
        ("DBSIZE", f"-{NO_DATABASE}"),
        ("""EVAL "return 1" 0""", f"-{NO_DATABASE}"),
        ("SELECT 0", "+OK"),
        ("SELECT 1", f"-{NO_DATABASE}"),
        ("SELECT 99", "-ERR DB index is out of range"),
        ("SET k v", "+OK"),
        ("MOVE k 1", f"-{NO_DATABASE}"),
        ("COPY k l DB 2 DB 1", f"-{NO_DATABASE}"),
        ("COPY k l DB 1 DB 99", "-ERR DB index is out of range"),
        ("COPY k l DB 2", ":1"),
        ("SWAPDB 0 1", f"-{NO_DATABASE}"),
        ("SWAPDB 0 2", "+OK"),
        ("FLUSHALL", f"-{NO_DATABASE}"),
        ("""EVAL "return server.call('select', 1)" 0""", f"-ERR ACL failure in script: {NO_DATABASE[7:]}" + ON),
        ("""EVAL "return server.acl_check_cmd('move', 'k', 1)" 0""", "NullBulk()"),
        ("MULTI", "+OK"),
        ("SELECT 2", "+QUEUED"),
        ("GET k", "+QUEUED"),
        ("EXEC", "*2 +OK $v"),
        ("MULTI", "+OK"),
        ("SELECT 1", f"-{NO_DATABASE}"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        ("MULTI", "+OK"),
        ("ACL SETUSER u db=0", "+QUEUED"),
        ("DBSIZE", "+QUEUED"),
        ("EXEC", f"*2 +OK -{CHANGED}"),
        ("AUTH default x", "+OK"),
        ("ACL DELUSER u", ":1"),
    ],
    "INFO has its own names": [
        ("HSET h f v", ":1"),
        ("INFO keyspace", "$# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=0\r\n"),
    ],
    "HSETEX has conditions on the key": [
        ("HSETEX h XX FIELDS 1 f v", ":0"),
        ("EXISTS h", ":0"),
        ("HSETEX h FNX NX EX 100 FIELDS 1 f v", ":1"),
        ("HSETEX h nx FIELDS 1 f w", ":0"),
        ("HSETEX h XX FXX KEEPTTL FIELDS 1 f x", ":1"),
        ("HGET h f", "$x"),
        ("HSETEX h NX XX FIELDS 1 f v", "-ERR syntax error"),
        ("SET s v", "+OK"),
        ("HSETEX s NX FIELDS 1 f v", f"-{WRONG}"),
    ],
    "fields are the last words": [
        ("HSETEX h FIELDS 1 f v EX 10", WRONG_COUNT),
        ("HSETEX h EX 10 ZZ 20", WRONG_COUNT),
        ("HSETEX h EX FIELDS 1 f v", "-ERR syntax error"),
        ("HSETEX h ZZ FIELDS 1 f v", "-ERR syntax error"),
        ("HSETEX h EX 10 PX 10 FIELDS 1 f v", "-ERR syntax error"),
        ("HSETEX h EX x EX 20 FIELDS 1 f v", ":1"),
        ("HTTL h FIELDS 1 f", "*1 :20"),
        ("HSETEX h FIELDS x f v", "-ERR value is not an integer or out of range"),
        ("HGETEX h FIELDS 2 f", WRONG_COUNT),
        ("HGETEX h KEEPTTL FIELDS 1 f", "-ERR syntax error"),
        ("HGETEX h PERSIST PERSIST FIELDS 1 f", "*1 $v"),
        ("HGETEX h EX 10 FIELDS 1", WRONG_COUNT),
        ("HTTL h FIELDS 2 f", "-ERR syntax error"),
        ("HTTL h f g h", "-ERR syntax error"),
        ("HPERSIST h FIELDS 0 f", WRONG_COUNT),
        ("HGETDEL h FIELDS 1 f g", WRONG_COUNT),
    ],
    "times of fields are refused as those of keys": [
        ("HSET h f v", ":1"),
        ("HEXPIRE h -1 FIELDS 1 f", "-ERR invalid expire time in 'hexpire' command"),
        ("HEXPIRE h -1 FIELDS 0 f", WRONG_COUNT),
        ("HSETEX h EX -1 FIELDS 1 f v", "-ERR invalid expire time in 'hsetex' command"),
        ("HEXPIREAT h 9223372036854776 FIELDS 1 f", "-ERR invalid expire time in 'hexpireat' command"),
        ("HPEXPIREAT h 9223372036854775807 FIELDS 1 f", "*1 :1"),
        ("HGETEX h PXAT 9223372036854775807 FIELDS 1 f", "*1 $v"),
        ("SET s v", "+OK"),
        ("HEXPIRE s -1 FIELDS 1 f", "-ERR invalid expire time in 'hexpire' command"),
    ],
    "conditions of fields' times are those of keys": [
        ("HSET h f v g w", ":2"),
        ("HEXPIRE h 10 ZZ FIELDS 1 f", "-ERR Unsupported option ZZ"),
        ("HEXPIRE h 10 NX XX FIELDS 1 f",
         "-ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("HEXPIRE h 10 GT LT FIELDS 1 f", "-ERR GT and LT options at the same time are not compatible"),
        ("HEXPIRE h 100 FIELDS 1 f", "*1 :1"),
        ("HEXPIRE h 50 LT XX FIELDS 2 f g", "*2 :1 :0"),
        ("HEXPIRE h 90 XX GT FIELDS 2 f g", "*2 :1 :0"),
        ("HTTL h FIELDS 2 f g", "*2 :90 :-1"),
    ],
}  # fmt: skip

SINCE_9_2 = {
    "DELEX has conditions on strings": [
        ("SET a x", "+OK"),
        ("DELEX a", "-ERR wrong number of arguments for 'delex' command"),
        ("DELEX a IFDEQ 0123456789abcdef", "-ERR syntax error"),
        ("DELEX nokey IFXX x", "-ERR syntax error"),
        ("DELEX nokey IFNE x", ":0"),
        ("DELEX a IFEQ y", ":0"),
        ("DELEX a ifne y", ":1"),
        ("SADD s m", ":1"),
        ("DELEX s IFEQ m", f"-{WRONG}"),
    ],
    "SET has IFNE": [
        ("SET a x IFNE x", "+OK"),
        ("SET a y IFNE x", "NullBulk()"),
        ("SET a y IFNE z", "+OK"),
        ("GET a", "$y"),
        ("SET a y IFDNE 0123456789abcdef", "-ERR syntax error"),
    ],
    "INCREX has conditions on the key": [
        ("INCREX a XX", "*2 :0 :0"),
        ("EXISTS a", ":0"),
        ("INCREX a NX BYINT 5", "*2 :5 :5"),
        ("INCREX a NX UBOUND 3 SATURATE", "*2 :5 :0"),
        ("INCREX a BYFLOAT 0.5 NX", "*2 $5 $0"),
        ("INCREX a XX BYINT 2", "*2 :7 :2"),
        ("INCREX a XX NX", "-ERR syntax error"),
    ],
    "entries are deleted with their references": [
        ("XADD s 1-0 f v", "$1-0"),
        ("XADD s 2-0 f v", "$2-0"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XREADGROUP GROUP g c COUNT 2 STREAMS s >", "*1 *2 $s *2 *2 $1-0 *2 $f $v *2 $2-0 *2 $f $v"),
        ("XDELEX s DELREF IDS 1 1-0", "*1 :1"),
        ("XACKDEL s g ACKED IDS 2 1-0 2-0", "*2 :-1 :1"),
    ],
    "EXEC has conditions": [
        ("SET a x", "+OK"),
        ("MULTI", "+OK"),
        ("INCR n", "+QUEUED"),
        ("EXEC IFEQ a x NX nokey XX a IFNE a y IFNE nokey x", "*1 :1"),
        ("MULTI", "+OK"),
        ("INCR n", "+QUEUED"),
        ("EXEC XX a IFEQ nokey x", "NullArray()"),
        ("GET n", "$1"),
        ("MULTI", "+OK"),
        ("EXEC IFEQ a", "-EXECABORT Transaction discarded because of: invalid check condition syntax"),
        ("MULTI", "+OK"),
        ("EXEC FOO a", "-EXECABORT Transaction discarded because of: invalid check condition syntax"),
        ("SADD s m", ":1"),
        ("MULTI", "+OK"),
        ("EXEC IFNE s m", f"-{WRONG}"),
        ("EXEC NX s", "-ERR EXEC without MULTI"),
        ("ACL SETUSER u on nopass +@all ~b", "+OK"),
        ("AUTH u p", "+OK"),
        ("MULTI", "+OK"),
        ("EXEC NX b XX a",
         "-EXECABORT Transaction discarded because of: NOPERM No permissions to access a key"),
        ("AUTH default p", "+OK"),
        ("ACL DELUSER u", ":1"),
    ],
    "lag counts what is left, as Redis since 7.4.2 (9.1.4)": [
        ("XADD s 1-0 f v", "$1-0"),
        ("XADD s 2-0 f v", "$2-0"),
        ("XADD s 3-0 f v", "$3-0"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "*1 *2 $s *1 *2 $1-0 *2 $f $v"),
        ("XTRIM s MAXLEN 1", ":2"),
        ("XINFO GROUPS s",
         "*1 *12 $name $g $consumers :1 $pending :1 $last-delivered-id $1-0 $entries-read :1 $lag :1"),
        ("XTRIM s MAXLEN 0", ":1"),
        ("XINFO GROUPS s",
         "*1 *12 $name $g $consumers :1 $pending :1 $last-delivered-id $1-0 $entries-read :1 $lag :0"),
    ],
    "a bound needs a number": [
        ("ZADD z 1 a", ":1"),
        ("ZRANGEBYSCORE z ( 5", "-ERR min or max is not a float"),
        ('ZCOUNT z "" 5', "-ERR min or max is not a float"),
        ("ZRANGESTORE t z ( 5 BYSCORE", "-ERR min or max is not a float"),
        ("ZREVRANGEBYSCORE z 5 (0", "*1 $a"),
    ],
    "a large sorted set is a btree": [
        ("CONFIG SET zset-max-listpack-entries 1", "+OK"),
        ("ZADD z 1 a 2 b", ":2"),
        ("OBJECT ENCODING z", "$btree"),
    ],
    "what is not in 9.2 is unknown": [
        ("XADD s 1-0 f v", "$1-0"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XREADGROUP GROUP g c CLAIM 5 STREAMS s >", "-ERR syntax error"),
        ("XNACK s g FAIL IDS 1 1-0",
         "-ERR unknown command 'XNACK', with args beginning with: 's' 'g' 'FAIL' 'IDS' '1' '1-0' "),
        ("DIGEST a", "-ERR unknown command 'DIGEST', with args beginning with: 'a' "),
    ],
}  # fmt: skip
ALL = [("valkey-9.1", requests) for requests in DIALOGUES.values()]
ALL += [("valkey-9.2", requests) for requests in (DIALOGUES | SINCE_9_2).values()]
NAMES = [*DIALOGUES, *[f"9.2: {name}" for name in (DIALOGUES | SINCE_9_2)]]


def shown(value: Value) -> str:
    """A reply in one line."""
    match value:
        case Simple(text):
            return f"+{text.decode()}"
        case Error(text):
            return f"-{text.decode()}"
        case Integer(number):
            return f":{number}"
        case Bulk(text):
            return f"${text.decode()}"
        case Array(values):
            return " ".join([f"*{len(values)}", *map(shown, values)])
    return str(value)


@pytest.mark.parametrize(("version", "dialogue"), ALL, ids=NAMES)
def test_valkey_s_dialect_is_spoken(clock: ManualClock, version: str, dialogue: list[tuple[str, str]]) -> None:
    client = Dialogue(make_engine(clock, settings=settings_with(compat_version=version)))

    asked = [request for request, _ in dialogue]
    assert [(request, shown(parse(client.raw(request))[0])) for request in asked] == dialogue


@pytest.mark.parametrize("version", ["newest", "8.12", "7.2"])
@pytest.mark.parametrize("name", ["delifeq", "commandlog|len", "client|capa", "script|show"])
def test_what_only_valkey_has_is_unknown_to_redis_s_versions(version: str, name: str) -> None:
    client = Dialogue(make_engine(settings=settings_with(compat_version=version)))

    assert str(client(f"{name.replace('|', ' ')} a x")).startswith("ERR unknown ")
    assert client(f"COMMAND INFO {name}") == [None]
    assert str(client(f"ACL SETUSER u +{name}")).startswith("ERR Error in ACL SETUSER")


@pytest.mark.parametrize(("version", "changes"), [("valkey-9.2", 2), ("valkey-9.1", 1), ("newest", 1)])
def test_a_key_that_expires_by_itself_is_a_change_since_9_2(clock: ManualClock, version: str, changes: int) -> None:
    client = Dialogue(make_engine(clock, settings=settings_with(compat_version=version)))
    client("SET a 1 PX 100")
    clock.advance(150)
    client.engine.tick()

    assert client("DBSIZE") == 0
    assert b"rdb_changes_since_last_save:%d\r\n" % changes in client("INFO persistence")


@pytest.mark.parametrize(("version", "dialogue"), ALL, ids=NAMES)
def test_what_is_logged_in_valkey_s_dialect_is_loaded_with_any(
    clock: ManualClock, version: str, dialogue: list[tuple[str, str]]
) -> None:
    log = UnitLog()
    client = Dialogue(make_engine(clock, log, settings_with(compat_version=version)))

    client(*[request for request, _ in dialogue])
    assert keyspace(loaded_engine([log.text], NOW_MS)) == keyspace(client.engine)


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_valkey_speaks_so(valkey: int, name: str) -> None:
    assert told_by(valkey, DIALOGUES[name]) == DIALOGUES[name]


@pytest.mark.parametrize("name", SINCE_9_2)
def test_a_valkey_9_2_speaks_so(valkey: int, name: str) -> None:
    with Connection("127.0.0.1", valkey) as client:
        if "valkey_version:9.2" not in str(client.ask("INFO", "server")):
            pytest.skip("the Valkey at hand is older")
    assert told_by(valkey, SINCE_9_2[name]) == SINCE_9_2[name]


def test_info_has_only_fields_that_a_valkey_has(valkey: int) -> None:
    ours = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1"))).raw("INFO everything")
    with Connection("127.0.0.1", valkey) as client:
        theirs = client.ask("INFO", "everything")

    assert isinstance(theirs, Bulk)
    assert fields_of(ours) - fields_of(theirs.text) == {b"penstock_version", b"penstock_build", b"python_version"}


def fields_of(info: bytes) -> set[bytes]:
    """The names of fields, but for those of single commands and databases."""
    names = {line.partition(b":")[0] for line in info.split(b"\r\n") if b":" in line}
    return {
        name for name in names if not name.startswith((b"cmdstat_", b"latency_percentiles_usec_", b"db", b"errorstat_"))
    }


EVENTS = {
    "a time in the past": [
        ("SET k v", "+OK", ["set k"]),
        ("EXPIRE k -1", ":1", ["expired k"]),
        ("SET k v", "+OK", ["set k"]),
        ("GETEX k PXAT 1", "$v", ["expired k"]),
        ("HSET h f v g w i x", ":3", ["hset h"]),
        ("HEXPIRE h 0 FIELDS 1 f", "*1 :2", ["hexpired h"]),
        ("HGETEX h PXAT 1 FIELDS 1 g", "*1 $w", ["hexpired h"]),
        ("HGETDEL h FIELDS 1 i", "*1 $x", ["hdel h", "del h"]),
        ("HSET h f v", ":1", ["hset h"]),
        ("HPEXPIREAT h 1 FIELDS 1 f", "*1 :2", ["hexpired h", "del h"]),
        (LOOK.format("expired_keys"), "$2", []),
        (LOOK.format("expired_fields"), "$3", []),
    ],
}


@pytest.mark.parametrize("dialogue", EVENTS.values(), ids=EVENTS)
def test_valkey_s_events_are_published(clock: ManualClock, dialogue: list[tuple[str, str, list[str]]]) -> None:
    client = Dialogue(make_engine(clock, settings=settings_with(compat_version="valkey-9.1")))
    listener = client.another()
    listener("PSUBSCRIBE __keyevent@0__:*")
    client("CONFIG SET notify-keyspace-events EA")

    for request, reply, events in dialogue:
        assert (request, shown(parse(client.raw(request))[0])) == (request, reply)
        assert [event_of(*message[-2:]) for message in listener.arrived()] == events


@pytest.mark.parametrize("dialogue", EVENTS.values(), ids=EVENTS)
def test_a_valkey_publishes_these_events(valkey: int, dialogue: list[tuple[str, str, list[str]]]) -> None:
    with Connection("127.0.0.1", valkey) as client, Connection("127.0.0.1", valkey) as listener:
        for line in ("FLUSHALL", "CONFIG RESETSTAT", "CONFIG SET notify-keyspace-events EA"):
            client.ask(*line.split())
        listener.ask("PSUBSCRIBE", "__keyevent@0__:*")

        for request, reply, events in dialogue:
            assert (request, shown(client.ask(*split(request)))) == (request, reply)
            heard = [listener.reply() for _ in events]
            assert [
                event_of(*[part.text for part in one.elements[-2:] if isinstance(part, Bulk)])
                for one in heard
                if isinstance(one, Array)
            ] == events


def event_of(channel: bytes, key: bytes) -> str:
    return f"{channel.decode().partition(':')[2]} {key.decode()}"


def told_by(port: int, dialogue: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The requests of a dialogue, each with a server's reply."""
    with Connection("127.0.0.1", port) as client:
        client.ask("FLUSHALL")
        return [(request, shown(client.ask(*split(request)))) for request, _ in dialogue]


def test_conditions_of_exec_are_in_the_slot_of_the_transaction() -> None:
    client = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.2", cluster_enabled="yes")))
    client("CLUSTER ADDSLOTSRANGE 0 16383", "MULTI", "SET {a}x 1")

    assert str(client("EXEC NX {b}y")).startswith("CROSSSLOT ")
    client("MULTI", "SET {a}x 1")
    assert client("EXEC NX {a}y") == [b"OK"]


OF_VALKEY = [name for name, row in DIRECTIVES.items() if row.only_in and not name.startswith("commandlog-")]


def test_hello_names_the_zone_only_if_there_is_one() -> None:
    client = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))

    assert b"availability_zone" not in client("HELLO 3")
    assert client("CONFIG SET availability-zone eu-1", "HELLO 3")[b"availability_zone"] == b"eu-1"


@pytest.mark.parametrize("name", OF_VALKEY)
def test_a_directive_has_valkey_s_default_and_refuses_as_valkey(valkey: int, name: str) -> None:
    """What Valkey takes and Penstock does not have is refused with a sentence of its own."""
    client = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))
    with Connection("127.0.0.1", valkey) as theirs:
        assert shown(parse(client.raw(f"CONFIG GET {name}"))[0]) == shown(theirs.ask("CONFIG", "GET", name))
        for word in ("zz", "-1", "-2", "1.5", "99999999999999999999", "1kb"):
            ours = shown(parse(client.raw(f"CONFIG SET {name} {word}"))[0])
            assert ours == shown(theirs.ask("CONFIG", "SET", name, word)) or " - Penstock " in ours, word
