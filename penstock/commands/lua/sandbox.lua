-- What scripts see of Lua, and what they say to the server. Run once, before any script, with the host's functions:
-- call(words...) -> RESP2 or RESP3 bytes; number_text(n); sha1(text); log(level, text); allowed(words...) -> error text
-- or ""; set_resp(n); killed() -> boolean; untail(bytecode) -> bytecode; random() -> 0..1; seed(n); versions.
-- The tables that scripts get are stand-ins: reading goes to the real one, writing is refused, as Redis refuses it.

local host, libraries = ...
local OURS = "=penstock"

local error, type, select, tostring, tonumber = error, type, select, tostring, tonumber
local raw_pcall, raw_xpcall, raw_pairs, raw_next, raw_get, raw_set = pcall, xpcall, pairs, next, rawget, rawset
local raw_getmetatable, raw_setmetatable, raw_loadstring, setfenv = getmetatable, setmetatable, loadstring, setfenv
local getinfo, sethook = debug.getinfo, debug.sethook
local byte, find, sub, gsub, concat = string.byte, string.find, string.sub, string.gsub, table.concat
local dump, floor, count_memory = string.dump, math.floor, collectgarbage
local create, resume, status = coroutine.create, coroutine.resume, coroutine.status
local call, number_text, untail, killed = host.call, host.number_text, host.untail, host.killed

local READONLY = "Attempt to modify a readonly table"
local HOOK_EVERY = 100000 -- instructions

-- stand-ins ------------------------------------------------------------------------------------------------------------

local real_of = raw_setmetatable({}, {__mode = "k"}) -- the real table of a stand-in

local function refuse()
    error(READONLY, 2)
end

local function standin(real, meta)
    meta = meta or {}
    meta.__index, meta.__newindex = real, refuse
    local shown = raw_setmetatable({}, meta)
    real_of[shown] = real
    return shown
end

local function wrong(at, name, wanted, given, count)
    error("bad argument #" .. at .. " to '" .. name .. "' (" .. wanted .. " expected, got "
        .. (count < at and "no value" or type(given)) .. ")", 3)
end

-- errors ---------------------------------------------------------------------------------------------------------------

-- An error becomes a table that says where it was raised: the script's line, not one of ours.
local function located(problem)
    local level = 2
    local place = getinfo(level, "Sl")
    if place and place.what == "C" then
        level = level + 1
        place = getinfo(level, "Sl")
    end
    while place and (place.source == OURS or place.what == "tail") do
        level = level + 1
        place = getinfo(level, "Sl")
    end
    if type(problem) ~= "table" then
        problem = {err = "ERR " .. tostring(problem)}
    end
    if place and place.what ~= "C" then
        problem.source, problem.line = place.source, place.currentline
    end
    return problem
end

local function plain(done, ...)
    if not done then
        local problem = ...
        if type(problem) == "table" and type(raw_get(problem, "err")) == "string" then
            return false, problem.err
        end
    end
    return done, ...
end

local function pcall(...)
    if select("#", ...) == 0 then
        error("bad argument #1 to 'pcall' (value expected)", 2)
    end
    return plain(raw_pcall(...))
end

-- replies: RESP to Lua -------------------------------------------------------------------------------------------------

local parse

local function parse_many(text, at, count)
    local values = {}
    for place = 1, count do
        values[place], at = parse(text, at)
    end
    return values, at
end

parse = function(text, at)
    local stop = find(text, "\r\n", at, true)
    local kind, head = byte(text, at), sub(text, at + 1, stop - 1)
    local after = stop + 2
    if kind == 36 then -- $
        local size = tonumber(head)
        if size < 0 then
            return false, after
        end
        return sub(text, after, after + size - 1), after + size + 2
    elseif kind == 58 then -- :
        return tonumber(head), after
    elseif kind == 42 or kind == 62 then -- * >
        local count = tonumber(head)
        if count < 0 then
            return false, after
        end
        return parse_many(text, after, count)
    elseif kind == 43 then -- +
        return {ok = head}, after
    elseif kind == 45 then -- -
        return {err = head, ignore_error_stats_update = true}, after
    elseif kind == 95 then -- _
        return nil, after
    elseif kind == 35 then -- #
        return head == "t", after
    elseif kind == 44 then -- ,
        return {double = tonumber(head) or (head == "inf" and 1 / 0) or (head == "-inf" and -1 / 0) or 0 / 0}, after
    elseif kind == 37 then -- %
        local map, key, value = {}, nil, nil
        for _ = 1, tonumber(head) do
            key, after = parse(text, after)
            value, after = parse(text, after)
            map[key] = value
        end
        return {map = map}, after
    elseif kind == 126 then -- ~
        local set, key = {}, nil
        for _ = 1, tonumber(head) do
            key, after = parse(text, after)
            set[key] = true
        end
        return {set = set}, after
    elseif kind == 40 then -- (
        return {big_number = head}, after
    elseif kind == 61 then -- =
        local size = tonumber(head)
        local format, body = sub(text, after, after + 2), sub(text, after + 4, after + size - 1)
        return {verbatim_string = {format = format, string = body}}, after + size + 2
    end
    error("the server's reply cannot be read", 0)
end

-- replies: Lua to RESP -------------------------------------------------------------------------------------------------

local client_resp, script_resp = 2, 2
local DEEPEST = 5000

-- Statuses and errors are C strings in Redis: they end at the first NUL.
local function flat(text)
    local stop = find(text, "%z")
    return (gsub(stop and sub(text, 1, stop - 1) or text, "[\r\n]", " "))
end

local function null()
    return client_resp == 3 and "_\r\n" or "$-1\r\n"
end

local function bulk(text)
    return "$" .. #text .. "\r\n" .. text .. "\r\n"
end

local render

local function render_table(value, out, depth)
    if depth > DEEPEST then
        out[#out + 1] = "-ERR reached lua stack limit\r\n"
        return
    end
    local part = raw_get(value, "err")
    if type(part) == "string" then
        out[#out + 1] = "-" .. flat(part) .. "\r\n"
        return
    end
    part = raw_get(value, "ok")
    if type(part) == "string" then
        out[#out + 1] = "+" .. flat(part) .. "\r\n"
        return
    end
    part = raw_get(value, "double")
    if type(part) == "number" then
        local text = number_text(part)
        out[#out + 1] = client_resp == 3 and "," .. text .. "\r\n" or bulk(text)
        return
    end
    part = raw_get(value, "map")
    if type(part) == "table" then
        local size = 0
        for _ in raw_next, part do
            size = size + 1
        end
        out[#out + 1] = client_resp == 3 and "%" .. size .. "\r\n" or "*" .. 2 * size .. "\r\n"
        for name, held in raw_next, part do
            render(name, out, depth + 1)
            render(held, out, depth + 1)
        end
        return
    end
    part = raw_get(value, "set")
    if type(part) == "table" then
        local size = 0
        for _ in raw_next, part do
            size = size + 1
        end
        out[#out + 1] = (client_resp == 3 and "~" or "*") .. size .. "\r\n"
        for name in raw_next, part do
            render(name, out, depth + 1)
        end
        return
    end
    part = raw_get(value, "big_number")
    if type(part) == "string" then
        out[#out + 1] = client_resp == 3 and "(" .. flat(part) .. "\r\n" or bulk(flat(part))
        return
    end
    part = raw_get(value, "verbatim_string")
    if type(part) == "table" then
        local text, format = raw_get(part, "string"), raw_get(part, "format")
        if type(text) == "string" and type(format) == "string" then
            out[#out + 1] = client_resp == 3
                and "=" .. #text + 4 .. "\r\n" .. sub(format .. "   ", 1, 3) .. ":" .. text .. "\r\n" or bulk(text)
            return
        end
    end
    local at, count = #out + 1, 0
    out[at] = ""
    while true do
        local item = raw_get(value, count + 1)
        if item == nil then
            break
        end
        count = count + 1
        render(item, out, depth + 1)
    end
    out[at] = "*" .. count .. "\r\n"
end

render = function(value, out, depth)
    local kind = type(value)
    local text
    if kind == "string" then
        text = bulk(value)
    elseif kind == "number" then
        text = ":" .. host.integer_text(value) .. "\r\n"
    elseif kind == "boolean" then
        if script_resp == 3 then
            text = client_resp == 3 and (value and "#t\r\n" or "#f\r\n") or (value and ":1\r\n" or ":0\r\n")
        else
            text = value and ":1\r\n" or null()
        end
    elseif kind == "table" then
        return render_table(value, out, depth)
    else
        text = null()
    end
    out[#out + 1] = text
end

local function rendered(value)
    local out = {}
    render(value, out, 1)
    return concat(out)
end

local function failure(problem, name)
    local text = raw_get(problem, "err")
    if type(text) ~= "string" then
        text = "ERR unknown error"
    end
    text = flat(text)
    local source, line = raw_get(problem, "source"), raw_get(problem, "line")
    if source then
        text = text .. " script: " .. name .. ", on " .. source .. ":" .. line .. "."
    end
    return "-" .. flat(text) .. "\r\n"
end

-- redis.* --------------------------------------------------------------------------------------------------------------

local function raise(text)
    error({err = "ERR " .. text}, 0)
end

local function redis_call(...)
    local answer = parse(call(...), 1)
    if type(answer) == "table" and raw_get(answer, "ignore_error_stats_update") then
        error(answer, 0)
    end
    return answer
end

local function redis_pcall(...)
    return (parse(call(...), 1))
end

local function reply_of(field, prefix)
    return function(...)
        local text = ...
        if select("#", ...) ~= 1 or type(text) ~= "string" then
            return {err = "ERR wrong number or type of arguments"}
        end
        return {[field] = prefix(text)}
    end
end

local redis = {
    call = redis_call,
    pcall = redis_pcall,
    error_reply = reply_of("err", function(text)
        if byte(text, 1) == 45 then
            text = sub(text, 2)
        end
        return find(text, " ", 1, true) and text or "ERR " .. text
    end),
    status_reply = reply_of("ok", function(text)
        return text
    end),
    sha1hex = function(...)
        if select("#", ...) ~= 1 then
            raise("wrong number of arguments")
        end
        local text = ...
        local kind = type(text)
        return host.sha1((kind == "string" and text) or (kind == "number" and tostring(text)) or "")
    end,
    log = function(...)
        local count = select("#", ...)
        local level = ...
        if count < 2 then
            raise("redis.log() requires two arguments or more.")
        end
        if type(level) ~= "number" then
            raise("First argument must be a number (log level).")
        end
        if level < 0 or level >= 4 then
            raise("Invalid log level.")
        end
        local parts = {}
        for place = 2, count do
            local part = select(place, ...)
            if type(part) == "string" or type(part) == "number" then
                parts[#parts + 1] = tostring(part)
            end
        end
        host.log(floor(level), concat(parts, " "))
    end,
    setresp = function(...)
        if select("#", ...) ~= 1 then
            raise("redis.setresp() requires one argument.")
        end
        local version = ...
        version = tonumber(version) or 0
        if version ~= 2 and version ~= 3 then
            raise("RESP version must be 2 or 3.")
        end
        script_resp = version
        host.set_resp(version)
    end,
    set_repl = function(...)
        if select("#", ...) ~= 1 then
            raise("redis.set_repl() requires one argument.")
        end
        local flags = tonumber((...)) or 0
        if flags < 0 or flags > 3 or flags ~= floor(flags) then
            raise("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
        end
    end,
    acl_check_cmd = function(...)
        local text = host.allowed(...)
        if text ~= "" then
            error({err = text}, 0)
        end
        return true
    end,
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
    REDIS_VERSION = host.version, REDIS_VERSION_NUM = host.version_number,
}

-- what of Lua itself is changed ----------------------------------------------------------------------------------------

local string_meta = {}

local function getmetatable(...)
    local value = ...
    if select("#", ...) == 0 then
        error("bad argument #1 to 'getmetatable' (value expected)", 2)
    end
    if type(value) == "string" then
        return string_meta.shown
    elseif real_of[value] then
        return string_meta[value]
    elseif value == host.null then
        return nil
    end
    return raw_getmetatable(value)
end

local function setmetatable(...)
    local value, meta = ...
    if type(value) ~= "table" then
        wrong(1, "setmetatable", "table", value, select("#", ...))
    end
    if real_of[value] then
        error(READONLY, 0)
    end
    if meta ~= nil and type(meta) ~= "table" or select("#", ...) < 2 then
        error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
    end
    local before = raw_getmetatable(value)
    if before and raw_get(before, "__metatable") ~= nil then
        error("cannot change a protected metatable", 2)
    end
    return raw_setmetatable(value, meta)
end

local function rawget(...)
    local value, name = ...
    if type(value) ~= "table" then
        wrong(1, "rawget", "table", value, select("#", ...))
    end
    return raw_get(real_of[value] or value, name)
end

local function rawset(...)
    local value, name, held = ...
    if type(value) ~= "table" then
        wrong(1, "rawset", "table", value, select("#", ...))
    end
    if real_of[value] then
        error(READONLY, 0)
    end
    return raw_set(value, name, held)
end

local function next(...)
    local value, name = ...
    if type(value) ~= "table" then
        wrong(1, "next", "table", value, select("#", ...))
    end
    return raw_next(real_of[value] or value, name)
end

local function pairs(...)
    local value = ...
    if type(value) ~= "table" then
        wrong(1, "pairs", "table", value, select("#", ...))
    end
    return raw_next, real_of[value] or value, nil
end

local env, library_env

local function in_env(chunk, problem)
    if chunk then
        setfenv(chunk, string_meta.in_library and library_env or env)
    end
    return chunk, problem
end

local function loadstring(...)
    local text, name = ...
    if type(text) ~= "string" then
        wrong(1, "loadstring", "string", text, select("#", ...))
    end
    if byte(text, 1) == 27 then
        return nil, '[string "' .. tostring(name or "binary") .. '"]:1: unexpected symbol near \'char(27)\''
    end
    return in_env(raw_loadstring(text, name or text))
end

local function load(...)
    local piece_of, name = ...
    if type(piece_of) ~= "function" then
        wrong(1, "load", "function", piece_of, select("#", ...))
    end
    local pieces = {}
    while true do
        local piece = piece_of()
        if piece == nil or piece == "" then
            break
        end
        if type(piece) ~= "string" then
            error("reader function must return a string", 2)
        end
        pieces[#pieces + 1] = piece
    end
    return loadstring(concat(pieces), name or "=(load)")
end

local hook -- of the script that runs, if it is watched

local function watched(thread)
    if hook then
        sethook(thread, hook, "", HOOK_EVERY)
    end
    return thread
end

local coroutines = {}
for name, tool in raw_pairs(coroutine) do
    coroutines[name] = tool
end
coroutines.create = function(...)
    local body = ...
    if type(body) ~= "function" then
        error("bad argument #1 to 'create' (Lua function expected)", 2)
    end
    return watched(create(body))
end
coroutines.wrap = function(...)
    local body = ...
    if type(body) ~= "function" then
        error("bad argument #1 to 'wrap' (Lua function expected)", 2)
    end
    local thread = watched(create(body))
    local function passed(done, ...)
        if done then
            return ...
        end
        error((...), 0)
    end
    return function(...)
        return passed(resume(thread, ...))
    end
end

-- Chance is Redis's own: the same sequence everywhere, until it is seeded.
local maths = {}
for name, tool in raw_pairs(math) do
    maths[name] = tool
end
maths.randomseed = function(...)
    local number = tonumber((...))
    if not number then
        wrong(1, "randomseed", "number", (...), select("#", ...))
    end
    host.seed(number)
end
maths.random = function(...)
    local count = select("#", ...)
    local low, high = ...
    if count == 0 then
        return host.random()
    elseif count > 2 then
        error("wrong number of arguments", 2)
    end
    for place = 1, count do
        if not tonumber((select(place, ...))) then
            wrong(place, "random", "number", (select(place, ...)), count)
        end
    end
    if count == 1 then
        low, high = 1, low
    end
    low, high = tonumber(low), tonumber(high)
    low, high = low < 0 and -floor(-low) or floor(low), high < 0 and -floor(-high) or floor(high)
    if low > high then
        error("bad argument #" .. count .. " to 'random' (interval is empty)", 2)
    end
    return floor(host.random() * (high - low + 1)) + low
end

-- the globals ----------------------------------------------------------------------------------------------------------

local base = {
    _VERSION = _VERSION, assert = assert, collectgarbage = collectgarbage, error = error, gcinfo = gcinfo,
    getmetatable = getmetatable, ipairs = ipairs, load = load, loadstring = loadstring, next = next, pairs = pairs,
    pcall = pcall, rawequal = rawequal, rawget = rawget, rawset = rawset, select = select, setmetatable = setmetatable,
    tonumber = tonumber, tostring = tostring, type = type, unpack = unpack, xpcall = xpcall,
    __redis__err__handler = located,
}
local function copy(table)
    local twin = {}
    for name, held in raw_pairs(table) do
        twin[name] = held
    end
    return twin
end

local tables, insert = copy(table), table.insert
tables.insert = function(...)
    local count = select("#", ...)
    local list, place, value = ...
    if type(list) ~= "table" then
        wrong(1, "insert", "table", list, count)
    elseif real_of[list] then
        error(READONLY, 0)
    elseif count == 2 then
        raw_set(list, #list + 1, place)
        return
    elseif count ~= 3 then
        error("wrong number of arguments to 'insert'", 2)
    elseif not tonumber(place) then
        wrong(2, "insert", "number", place, count)
    end
    insert(list, place, value)
end
base.string, base.table = standin(string), standin(tables)
base.math, base.os = standin(maths), standin({clock = os.clock})
base.coroutine = standin(coroutines)
for name, make in raw_pairs(libraries) do
    base[name] = standin(make(host))
end

local text_meta = raw_getmetatable("")
text_meta.__index = base.string
string_meta.shown = standin(text_meta)

local function globals(real)
    local nonexistent = raw_setmetatable(real, {
        __index = function(_, name)
            error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
        end,
    })
    local meta = {}
    local shown = standin(nonexistent, meta)
    string_meta[shown] = standin(meta)
    real._G = shown
    return shown, meta
end

local for_scripts = copy(base)
local script_redis = copy(redis)
script_redis.replicate_commands = function()
    return true
end
script_redis.breakpoint = function()
    return false
end
script_redis.debug = function() end
for_scripts.redis = standin(script_redis)
env = globals(for_scripts)

local for_functions = copy(base)
for_functions.redis = standin(redis)
local function_meta
library_env, function_meta = globals(for_functions)

-- running --------------------------------------------------------------------------------------------------------------

local scripts, functions = {}, {}
local memory_limit = host.memory_limit / 1024
local KILLED = {err = "ERR Script killed by user with SCRIPT KILL..."}

local check_again
local function check()
    if getinfo(2, "S").source == OURS then
        return -- what we do for a script is done to its end
    end
    if killed() then
        sethook(check_again, "l") -- from here on at every line: no pcall keeps it alive
        error({err = KILLED.err}, 0)
    end
    if count_memory("count") > memory_limit then
        count_memory("collect")
        if count_memory("count") > memory_limit then
            error("not enough memory", 0)
        end
    end
end

check_again = check

local function finish(name, done, answer)
    if hook then
        sethook()
        hook = nil
    end
    if not done then
        return failure(answer, name)
    end
    local kind = type(answer)
    if kind == "string" then
        return bulk(answer)
    elseif kind == "number" and answer >= 0 and answer < 1e9 then
        return ":" .. floor(answer) .. "\r\n"
    end
    local rendered_well, text = raw_pcall(rendered, answer)
    return rendered_well and text or "-ERR reached lua stack limit\r\n"
end

local function split(keys, ...)
    if keys == 1 then
        return {(...)}, {select(2, ...)}
    end
    local all = {...}
    if keys == 0 then
        return {}, all
    end
    local names, rest = {}, {}
    for place = 1, keys do
        names[place] = all[place]
    end
    for place = keys + 1, #all do
        rest[place - keys] = all[place]
    end
    return names, rest
end

local function begin(resp, is_watched)
    client_resp, script_resp = resp, 2
    if is_watched then
        hook = check
        sethook(check, "", HOOK_EVERY)
    end
end

local function words_of(keys, packed, ...)
    if packed then
        local all = parse(packed, 1)
        local names, rest = {}, {}
        for place = 1, keys do
            names[place] = all[place]
        end
        for place = keys + 1, #all do
            rest[place - keys] = all[place]
        end
        return names, rest
    end
    return split(keys, ...)
end

local interface = {}

function interface.compile(sha, code)
    local chunk, problem = raw_loadstring(code, "@user_script")
    if not chunk then
        return problem
    end
    chunk = raw_loadstring(untail(dump(chunk)))
    scripts[sha] = setfenv(chunk, env)
    return nil
end

function interface.forget(sha)
    scripts[sha] = nil
end

function interface.run(sha, resp, is_watched, keys, packed, ...)
    string_meta.in_library = false
    for_scripts.KEYS, for_scripts.ARGV = words_of(keys, packed, ...)
    begin(resp, is_watched)
    return finish(sha, raw_xpcall(scripts[sha], located))
end

function interface.call(name, shown, resp, is_watched, keys, packed, ...)
    string_meta.in_library = true
    local names, rest = words_of(keys, packed, ...)
    local body = functions[name]
    begin(resp, is_watched)
    return finish(shown, raw_xpcall(function()
        return (body(names, rest))
    end, located))
end

function interface.drop(name)
    functions[name] = nil
end

-- While a library is loaded it sees little but redis.register_function; `found` gets (name, description, flags...).
function interface.load(code, found)
    local chunk, problem = raw_loadstring(code, "@user_function")
    if not chunk then
        return "ERR Error compiling function: " .. problem
    end
    chunk = raw_loadstring(untail(dump(chunk)))
    local registered = {}
    local function refuse_function(text)
        error({err = "ERR " .. text}, 0)
    end
    local function is_text(value)
        return type(value) == "string" or type(value) == "number"
    end
    local function register(...)
        local count = select("#", ...)
        local name, body, description, flags = nil, nil, "", {}
        local described = false
        if count < 1 or count > 2 then
            refuse_function("wrong number of arguments to redis.register_function")
        end
        if count == 1 then
            local given = ...
            if type(given) ~= "table" then
                refuse_function("calling redis.register_function with a single argument is only applicable to Lua"
                    .. " table (representing named arguments).")
            end
            for field, value in raw_next, given do
                if field == "function_name" then
                    if not is_text(value) then
                        refuse_function("function_name argument given to redis.register_function must be a string")
                    end
                    name = tostring(value)
                elseif field == "description" then
                    if not is_text(value) then
                        refuse_function("description argument given to redis.register_function must be a string")
                    end
                    description, described = tostring(value), true
                elseif field == "callback" then
                    if type(value) ~= "function" then
                        refuse_function("callback argument given to redis.register_function must be a function")
                    end
                    body = value
                elseif field == "flags" then
                    if type(value) ~= "table" then
                        refuse_function("flags argument to redis.register_function must be a table representing"
                            .. " function flags")
                    end
                    for _, flag in ipairs(value) do
                        if not host.is_flag(tostring(flag)) then
                            refuse_function("unknown flag given")
                        end
                        flags[#flags + 1] = flag
                    end
                else
                    refuse_function("unknown argument given to redis.register_function")
                end
            end
            if not name then
                refuse_function("redis.register_function must get a function name argument")
            end
            if not body then
                refuse_function("redis.register_function must get a callback argument")
            end
        else
            name, body = ...
            if not is_text(name) then
                refuse_function("first argument to redis.register_function must be a string")
            end
            if type(body) ~= "function" then
                refuse_function("second argument to redis.register_function must be a function")
            end
            name = tostring(name)
        end
        if not host.is_name(name) then
            refuse_function("Library names can only contain letters, numbers, or underscores(_) and must be at least"
                .. " one character long")
        end
        if registered[name] then
            refuse_function("Function already exists in the library")
        end
        registered[name] = true
        local key = found(name, described, description, concat(flags, " "))
        functions[key] = body
    end
    local loading_redis = {register_function = register, log = redis.log}
    for name, held in raw_pairs(redis) do
        if type(held) ~= "function" then
            loading_redis[name] = held
        end
    end
    local loading = {redis = (globals(loading_redis))}
    for _, name in ipairs({"string", "table", "math", "bit", "cjson", "cmsgpack", "struct", "os", "_VERSION"}) do
        loading[name] = base[name]
    end
    loading_redis._G = nil
    globals(loading)
    local usual = function_meta.__index
    function_meta.__index = loading
    setfenv(chunk, library_env)
    string_meta.in_library = true
    begin(2, true)
    local done, trouble = raw_xpcall(chunk, located)
    sethook()
    hook = nil
    function_meta.__index = usual
    if done then
        return nil
    end
    local text = raw_get(trouble, "err")
    return "ERR Error registering functions: " .. (type(text) == "string" and text or "ERR unknown error")
end

return interface
