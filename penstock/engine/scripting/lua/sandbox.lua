-- What scripts see, and how they are run. Run once, before any script, with the host's functions (lua_machine.py).

local host, guard, shared, replies, text, numbers, libraries = ...
local OURS = host.ours -- the source of what is ours; no chunk of a script can be named so

local error, type, select, tostring, tonumber = error, type, select, text.tostring, text.tonumber
local raw_pcall, raw_xpcall, raw_pairs, raw_next, raw_get, raw_set = pcall, xpcall, pairs, next, rawget, rawset
local raw_setmetatable, raw_loadstring, setfenv = setmetatable, loadstring, setfenv
local raw_load, getinfo = load, debug.getinfo
local byte, find, sub, concat, floor = string.byte, string.find, string.sub, table.concat, math.floor
local standin, wrong, clean = shared.standin, guard.wrong, guard.clean
local reply_to, spend, decode = replies.reply, guard.spend, host.decode
local begin_replies, begin_in_place = replies.begin, guard.begin_in_place

-- errors ---------------------------------------------------------------------------------------------------------------

-- An error becomes a table that says where it was raised: the script's line, not one of ours.
local function located(problem)
    local level = 2
    local place = getinfo(level, "Sl")
    if place and place.what == "C" then
        level = level + 1
        place = getinfo(level, "Sl")
    end
    while place and (place.source == OURS) do
        level = level + 1
        place = getinfo(level, "Sl")
    end
    problem = clean(problem)
    if problem == "stack overflow" and place and place.what ~= "C" then
        problem = sub(place.source, 2) .. ":" .. place.currentline .. ": " .. problem
    end
    if type(problem) == "table" and type(raw_get(problem, "err")) ~= "string" then
        local done, text = raw_pcall(function()
            return problem.err
        end)
        if done and type(text) == "string" then
            problem = {err = text}
        end
    end
    if type(problem) ~= "table" then
        problem = {err = "ERR " .. tostring(problem)}
    end
    if place and place.what ~= "C" and not shared.is_standin(problem) then
        raw_set(problem, "source", place.source)
        raw_set(problem, "line", place.currentline)
    end
    return problem
end

-- Functions that call one of the script's. Each is one level of the stack, as in Redis, with all that works for it.
local CALLERS = {}

-- Where the function is that is so many levels above `error`, to be put before a text; empty where that is no script.
local function place_of(level)
    local index, counted, callers, is_in_c = 3, 0, 0, false
    while true do
        local place = getinfo(index, "Slf")
        if not place then
            return ""
        elseif place.what == "C" or place.source == OURS then
            callers = callers + (CALLERS[place.func] and 1 or 0)
            is_in_c = is_in_c or place.what == "C"
        else
            counted = counted + (callers == 0 and is_in_c and 1 or callers)
            if counted >= level then
                return ""
            end
            counted, callers, is_in_c = counted + 1, 0, false
            if counted == level then
                return place.short_src .. ":" .. place.currentline .. ": "
            end
        end
        index = index + 1
    end
end

-- C's own would count our functions, too.
local function raise_error(...)
    local problem, level = ...
    local kind, levels = type(problem), tonumber(level)
    if kind ~= "string" and kind ~= "number" or not levels or levels < 2 or type(level) == "boolean" then
        return error(...)
    end
    error(place_of(floor(levels)) .. problem, 0)
end

-- LuaJIT's raises any message, also none.
local function asserted(...)
    local condition, message = ...
    if condition then
        return ...
    end
    local count = select("#", ...)
    if count == 0 then
        guard.refuse(1, "value expected", 1)
    elseif message == nil then
        error("assertion failed!", 2)
    elseif type(message) ~= "string" and type(message) ~= "number" then
        wrong(2, "string", message, count)
    end
    error(message .. "", 2)
end

-- Ten values take a step.
local function unpacked(...)
    spend(select("#", ...) == 1 and type((...)) == "table" and #(...) / 10 or 800)
    return unpack(...)
end

-- redis.* --------------------------------------------------------------------------------------------------------------

local function raise(text)
    error({err = "ERR " .. text}, 0)
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

local is_valkey = host.valkey_version ~= ""
local ours = is_valkey and "server" or "redis" -- what errors call the table

local redis = {
    call = guard.redis_call,
    pcall = guard.redis_pcall,
    error_reply = reply_of("err", function(text)
        text = text:match("^%-?([^%z]*)")
        local space = find(text, " ", 1, true)
        local code = space and sub(text, 1, space) or "ERR "
        return code .. sub(text, (space or 0) + 1):match("^[\r\n]*(.-)[\r\n]*$")
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
        spend(kind == "string" and #text / 20 or 0)
        return host.sha1((kind == "string" and text) or (kind == "number" and tostring(text)) or "")
    end,
    log = function(...)
        local count = select("#", ...)
        local given = ...
        if count < 2 then
            raise(ours .. ".log() requires two arguments or more.")
        end
        local level = tonumber(given)
        if not level or type(given) == "boolean" then
            raise("First argument must be a number (log level).")
        end
        if not (level > -1 and level < 4) then
            raise("Invalid log level.")
        end
        spend(100) -- it may be written to a file
        local parts = {}
        for place = 2, count do
            local part = select(place, ...)
            if type(part) == "string" or type(part) == "number" then
                parts[#parts + 1] = tostring(part)
            end
        end
        host.log(level < 0 and 0 or floor(level), concat(parts, " "))
    end,
    setresp = function(...)
        if select("#", ...) ~= 1 then
            raise(ours .. ".setresp() requires one argument.")
        end
        local version = ...
        version = tonumber(version) or 0
        version = floor(version)
        if version ~= 2 and version ~= 3 then
            raise("RESP version must be 2 or 3.")
        end
        replies.set_script(version)
        host.set_resp(version)
    end,
    set_repl = function(...)
        if select("#", ...) ~= 1 then
            raise(ours .. ".set_repl() requires one argument.")
        end
        local flags = tonumber((...)) or 0
        if not (flags > -1 and flags < 4) then
            raise("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
        end
    end,
    acl_check_cmd = function(...)
        local text = host.allowed(...)
        if text == "denied" then
            return false
        elseif text ~= "" then
            error({err = text}, 0)
        end
        return true
    end,
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
    REDIS_VERSION = host.version, REDIS_VERSION_NUM = host.version_number,
}
if is_valkey then
    redis.SERVER_NAME = "valkey"
    redis.VALKEY_VERSION, redis.VALKEY_VERSION_NUM = host.valkey_version, host.valkey_version_number
end

-- Globals with the table; Valkey's scripts call it `server`, too.
local function with_ours(names, shown)
    names.redis = shown
    if is_valkey then
        names.server = shown
    end
    return names
end

-- compiling ------------------------------------------------------------------------------------------------------------

local env, library_env
local in_library = false -- what runs is a function's or a library's

-- A chunk of a script's text, or nil and why not; and whether it counts its steps, if it is to. Compiled chunks
-- (byte 27) and our own name are refused.
local function compiled(code, name, is_script)
    if byte(code, 1) == 27 then
        local shown = select(2, raw_loadstring("@", name))
        if name == code then
            shown = '[string "' .. sub(name:match("^[^\n]*"), 1, 46) .. "\"]:1: unexpected symbol near '@'"
        end
        return nil, shown:gsub("near '@'$", "") .. "near 'char(27)'"
    end
    if name == OURS then
        name = OURS .. " "
    end
    local ready = host.prepare(code, is_script)
    if not ready then
        error("not enough memory", 0)
    end
    if byte(ready, 1) == 45 then -- -
        local shown = select(2, raw_loadstring("@", name))
        return nil, shown:gsub(":1: [^:]*$", "") .. ":" .. sub(ready, 2)
    end
    local chunk, problem = raw_loadstring(sub(ready, 2), name)
    local counts = chunk ~= nil
    if not chunk then -- what we changed is not to be seen in what is said
        chunk, problem = raw_loadstring(sub(host.spelt(code), 2), name)
    end
    return chunk, problem, counts
end

local function in_env(chunk, problem)
    if chunk then
        setfenv(chunk, in_library and library_env or env)
    end
    return chunk, problem
end

local function loadstring(...)
    guard.leave_place() -- what is compiled here counts no steps
    local code, name = ...
    if type(code) == "number" then
        code = code .. ""
    elseif type(code) ~= "string" then
        wrong(1, "string", code, select("#", ...))
    end
    if name ~= nil and type(name) ~= "string" and type(name) ~= "number" then
        wrong(2, "string", name, select("#", ...))
    end
    return in_env(compiled(code, name and name .. "" or code, false))
end

local function load(...)
    guard.leave_place()
    local piece_of, name = ...
    if type(piece_of) ~= "function" then
        wrong(1, "function", piece_of, select("#", ...))
    end
    local called = guard.callable(piece_of)
    local pieces = {}
    local done, problem = guard.attempt(function()
        while true do
            guard.deeper()
            local piece = called()
            guard.shallower()
            if piece == nil or piece == "" then
                return
            end
            if type(piece) ~= "string" and type(piece) ~= "number" then
                error("reader function must return a string", 0)
            end
            pieces[#pieces + 1] = piece
        end
    end)
    if not done then
        return nil, problem
    end
    return in_env(compiled(concat(pieces), type(name) == "string" and name or "=(load)", false))
end

-- the globals ----------------------------------------------------------------------------------------------------------

local function copy(table)
    local copied = {}
    for name, held in raw_pairs(table) do
        copied[name] = held
    end
    return copied
end

local base = copy(shared.base)
for name, tool in raw_pairs({
    _VERSION = "Lua 5.1", assert = asserted, collectgarbage = guard.collectgarbage, error = raise_error, gcinfo = gcinfo,
    ipairs = ipairs, load = load, loadstring = loadstring, pcall = guard.pcall, rawequal = rawequal, select = select,
    tonumber = tonumber, tostring = tostring, type = type, unpack = unpacked, xpcall = guard.xpcall,
    __redis__err__handler = located,
}) do
    base[name] = tool
end
for _, caller in ipairs({guard.pcall, guard.xpcall, load, raise_error, text.library.gsub, shared.tables.sort,
    shared.tables.foreach, shared.tables.foreachi}) do
    CALLERS[caller] = true
end
base.string, base.table = standin(text.library), standin(shared.tables)
base.math, base.os = standin(numbers.math), standin({clock = os.clock})
base.coroutine, base.bit = standin(guard.coroutine), standin(numbers.bit)
for name, library in raw_pairs(libraries) do
    base[name] = standin(library)
end

getmetatable("").__index = text.library
shared.text_meta = standin({__index = base.string})

-- The table `arg` of a function with `...`, as Lua 5.1 makes it. Texts of scripts call it by this name.
local function packed(...)
    return {n = select("#", ...), ...}
end

-- What a function of a library gave, for a function of the script that gives it back: so the call is no tail call.
local function all_results(...)
    return ...
end

local function nonexistent(_, name)
    if name == "__packed_arguments" then
        return packed
    elseif name == "__all_results" then
        return all_results
    elseif name == "__turn_of_a_loop" then
        return guard.turns
    elseif name == "__joined" then
        return guard.joined
    end
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

-- A table of globals as scripts see it. What it has not got is refused by name.
local function globals(real)
    raw_setmetatable(real, {__index = nonexistent})
    local shown = standin(real, standin({__index = nonexistent}))
    real._G = shown
    return shown
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
env = globals(with_ours(for_scripts, standin(script_redis)))

local for_functions = copy(base)
with_ours(for_functions, standin(redis))
for_functions.cjson = standin(libraries.cjson.new()) -- with settings of its own
library_env = globals(for_functions)
local usual_meta = getmetatable(library_env)

-- running --------------------------------------------------------------------------------------------------------------

local starts, shown = {}, {} -- of scripts and functions by number: what runs one, and its name in errors
local last = 0 -- the last number
local held -- KEYS and ARGV of the next run, where the host has passed them as one text

-- KEYS and ARGV.
local function words_of(keys, ...)
    local all = held or {...}
    held = nil
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

local interface = {}

-- Take the words of the next run, packed.
function interface.hold(packed)
    held = decode(packed)
end

-- The number of a script that is now ready to run, or why it is none.
function interface.compile(sha, code)
    local chunk, problem, counts = compiled(code, "@user_script", true)
    if not chunk then
        return problem
    end
    setfenv(chunk, env)
    last = last + 1
    shown[last] = sha
    starts[last] = function(names, words)
        if not counts then
            guard.leave_place()
        end
        in_library = false
        for_scripts.KEYS, for_scripts.ARGV = names, words
        return reply_to(chunk())
    end
    return last
end

local function add_function(number, name, body)
    shown[number] = name
    starts[number] = function(names, words)
        in_library = true
        usual_meta.__index = for_functions
        return reply_to(body(names, words))
    end
end

function interface.forget(number)
    starts[number], shown[number] = nil, nil
end

-- The reply of what failed.
local function failed(problem, name)
    problem = guard.reason(problem)
    guard.finish()
    return replies.failure(type(problem) == "table" and problem or {err = "ERR " .. tostring(problem)}, name)
end

-- Run a script or function: its reply.
local function run(number, keys, first, ...)
    local names, words
    if keys == 1 and not held then
        names, words = {first}, {...}
    else
        names, words = words_of(keys, first, ...)
    end
    local done, answer = raw_xpcall(starts[number], located, names, words)
    if done then
        return answer
    end
    return failed(answer, shown[number])
end

function interface.run(number, resp, is_watched, ...)
    begin_replies(resp)
    guard.begin(is_watched)
    local is_whole, answer = raw_pcall(run, number, ...)
    if not is_whole then
        return failed(answer, shown[number])
    end
    guard.finish()
    return answer
end

local function run_in_place(number, resp, steps, ...)
    begin_replies(resp)
    begin_in_place(steps)
    return run(number, ...)
end

-- A coroutine for what runs in place. Resumed with (number, resp, steps, keys, ...) it yields the reply, but see guard.
function interface.place()
    return guard.place(run_in_place)
end

-- Go on with what has left its place, under a name that errors are to tell.
function interface.go_on(name)
    local is_whole, answer = guard.go_on()
    if not is_whole then
        return failed(answer, name)
    end
    guard.finish()
    return answer
end

-- What a script left behind, for the collector.
function interface.clear()
    for_scripts.KEYS, for_scripts.ARGV, held = nil, nil, nil
    replies.clear()
    guard.clear()
end

-- Take the watch away, which would stop even `clear` while much memory is in use.
interface.unhook = guard.unhook

-- The line of a library's text in which a function begins; -1 for one that is no library's, or does not count its
-- steps.
local function line_of(body, counts)
    local place = getinfo(body, "S")
    return counts and place.source == "@user_function" and place.linedefined or -1
end

-- While a library is loaded it sees little but redis.register_function; `found` gets (number, name, described,
-- description, flags, line) and gives the number.
function interface.load(code, found)
    local chunk, problem, counts = compiled(code, "@user_function", true)
    if not chunk then
        return "ERR Error compiling function: " .. problem
    end
    local registered, loads = {}, true
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
        if not loads then -- a script has kept it
            refuse_function("redis.register_function can only be called on FUNCTION LOAD command")
        end
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
        last = last + 1
        add_function(found(last, name, described, description, concat(flags, " "), line_of(body, counts)), name, body)
    end
    local loading_redis = {register_function = register, log = redis.log}
    for name, held in raw_pairs(redis) do
        if type(held) ~= "function" then
            loading_redis[name] = held
        end
    end
    local loading = with_ours({}, (globals(loading_redis)))
    loading_redis._G = nil
    globals(loading)
    loading._G = nil
    usual_meta.__index = loading
    setfenv(chunk, library_env)
    in_library = true
    begin_replies(2)
    guard.begin(true)
    local is_whole, done, trouble = raw_pcall(raw_xpcall, chunk, located)
    guard.finish()
    if not is_whole then
        done, trouble = false, done
    end
    usual_meta.__index = for_functions
    loads = false
    if done then
        return nil
    end
    local text = type(trouble) == "table" and raw_get(trouble, "err") or trouble
    return "ERR Error registering functions: " .. (type(text) == "string" and text or "ERR unknown error")
end

-- lupa looks for debug.traceback at each call, and does without.
debug = nil

return interface
