-- What keeps a script within its bounds: how deep it nests in C, how much memory it takes, whether it was killed.
-- All that can catch an error is made here (pcall, xpcall, coroutines), so that no script outlives being killed, and
-- what it catches is never an object of the host.

local host = ...
local error, select, type = error, select, type
local raw_pcall, raw_xpcall, collect, clock, byte, sub = pcall, xpcall, collectgarbage, os.clock, string.byte, string.sub
local create, raw_resume, raw_yield, status, running = coroutine.create, coroutine.resume, coroutine.yield,
    coroutine.status, coroutine.running
local sethook, getinfo, gsub, floor, unpack = debug.sethook, debug.getinfo, string.gsub, math.floor, unpack
local call, killed, widen, narrow = host.call, host.killed, host.widen, host.narrow
local decode, null, soft_limit = host.decode, host.null, host.soft_limit / 1024
local convert = host.converted

local OUT_OF_MEMORY = "not enough memory"
local NOT_SAID = "error in error handling" -- LuaJIT's, where what should say where an error was raised fails itself
local HOOK_EVERY, HOOK_SOON = 1000, 10 -- instructions; soon: where these take long
local ASK_EVERY = 0.005 -- seconds of processor time between two looks at what the host wants
local SLOW = 0.02 -- seconds that HOOK_EVERY instructions take where each of them does much
local DEEPEST, DEEPEST_THREAD = 200, 201 -- levels of C calls, as in Lua 5.1; the script itself is at 2

local MOST_AT_ONCE = 4000 -- words: with 7996 and more no room is left on the stack for what lupa adds

local guard = {}
local depth, base = 2, 0 -- levels of C calls now, and where the running coroutine began
local dying -- what the script ends with, once it must
local is_watched = false

-- What a script may see of an error: no object of the host, and no line of ours, where C's functions called us.
local function clean(problem)
    if type(problem) == "userdata" and problem ~= null then
        return "ERR internal error"
    elseif type(problem) == "string" then
        return (gsub(problem, "^%[penstock%]:%d+: ", ""))
    end
    return problem
end

-- refusing arguments ---------------------------------------------------------------------------------------------------

-- Refuse an argument of the library function that is so many levels up, 1 for the one that calls this: by the name that
-- the script called it by, and by `?` where C or an operator called it.
function guard.refuse(at, problem, level)
    local called, caller = getinfo(level + 1, "n"), getinfo(level + 2, "S")
    local is_by_script = caller and caller.what ~= "C" and caller.source ~= host.ours
    local name = is_by_script and called.namewhat ~= "metamethod" and called.name or "?"
    if called.namewhat == "method" then
        at = at - 1
    end
    local text = at == 0 and called.namewhat == "method" and "calling '" .. name .. "' on bad self"
        or "bad argument #" .. at .. " to '" .. name .. "'"
    error(text .. " (" .. problem .. ")", is_by_script and level + 2 or 0)
end

-- Refuse an argument, of `count`, for its type: of the library function that calls this, or is so many levels up.
function guard.wrong(at, wanted, given, count, level)
    guard.refuse(at, wanted .. " expected, got " .. (count < at and "no value" or type(given)), (level or 1) + 1)
end

local refuse = guard.refuse

-- After the allocator said no, Lua does not collect by itself, and a collection needs memory, too.
local function relieve()
    widen()
    collect("collect")
    collect("collect") -- LuaJIT halves the buffer in which it makes texts
    narrow()
end

local look -- the watch

local function caught(problem)
    if dying then
        error(dying, 0)
    end
    if problem == OUT_OF_MEMORY then
        relieve()
        if is_watched then
            look()
        end
    end
    return clean(problem)
end

function guard.deeper()
    if depth >= DEEPEST then
        error("C stack overflow", 0)
    end
    depth = depth + 1
end

function guard.shallower(...)
    depth = depth - 1
    return ...
end

-- in place -------------------------------------------------------------------------------------------------------------

-- A script runs in place, in a coroutine, as long as it takes few steps. What could take long for little code says its
-- cost first, and so does each turn of a loop, each function of the script, and each text that is joined (quick_code.py).
-- Where that is too much the coroutine yields, and goes on in a thread, under the watch.
--
-- The host resumes the coroutine with what to run, and with replies; the coroutine yields two words or more for a
-- request, one for the script's own reply or, behind a NUL, for a text to be converted, and nil where the script goes on elsewhere.

local in_place, steps_left = false, 0
local STEPS_OF_REQUEST = 40
local GRANT = 1000 -- steps that a text may take before it counts them here
local grants, began_at = 0, 0 -- in place so far; when the second was given
local LONGEST = 0.01 -- seconds of processor time in place from then on: a step may take longer than a step
local own_thread -- that runs in place, or did and goes on

-- Say that so many steps follow, of 100 ns each: as long as it takes Lua to read or to make a byte of text.
local function spend(steps)
    steps_left = steps_left - steps
    if steps_left < 0 then
        guard.leave_place()
    end
end
guard.spend = spend

function guard.is_in_place()
    return in_place
end

-- A text has used the steps that it was granted: -left is how many more it took. How many it may take next.
function guard.turns(left)
    spend(GRANT - (left < 0 and left or 0))
    grants = grants + 1
    if grants == 2 then
        began_at = clock()
    end
    if in_place and grants > 2 and clock() - began_at > LONGEST then
        guard.leave_place()
    end
    return GRANT
end

-- A text that was joined, or what a metamethod made of it. Counts its bytes.
function guard.joined(text)
    if type(text) == "string" then
        spend(#text)
    end
    return text
end

-- Say that it is not known how many steps follow, or that they cannot be left half-way.
local function leave_place()
    steps_left = math.huge
    if in_place then
        in_place = false
        raw_yield(nil)
    end
end
guard.leave_place = leave_place

-- Begin to run in place, in so many steps.
function guard.begin_in_place(steps)
    depth, base, dying, is_watched = 2, 0, nil, false
    in_place, steps_left, grants = true, steps, 0
end

-- A coroutine that runs body(...) again and again: what it is resumed with, and yields what that gave.
function guard.place(body)
    own_thread = create(function()
        local answer
        while true do
            answer = body(raw_yield(answer))
            in_place = false
        end
    end)
    raw_resume(own_thread)
    return own_thread
end

-- Go on, watched, with what has left its place: true and what `body` gave, or false and why there is no such.
function guard.go_on()
    guard.watch()
    return raw_resume(own_thread)
end

-- requests -------------------------------------------------------------------------------------------------------------

-- What no request was made of: no error of a command.
local WORDS_REFUSED = {
    ["ERR Please specify at least one argument for this redis lib call"] = true,
    ["ERR Lua redis lib command arguments must be strings or integers"] = true,
    ["ERR Please specify at least one argument for this call"] = true, -- Valkey's words
    ["ERR Command arguments must be strings or integers"] = true,
}

-- What a request gave, and whether that is an error, of what the host handed over (lua_values.py): a bulk string as it
-- is, an integer as a number, a null as false, OK as true; anything else behind a NUL and a sign.
local function taken(found)
    if type(found) ~= "string" then
        spend(STEPS_OF_REQUEST)
        if found == true then
            return {ok = "OK"}, false
        end
        return found, false
    end
    spend(STEPS_OF_REQUEST + #found)
    if byte(found, 1) ~= 0 then
        return found, false
    end
    local sign, rest = byte(found, 2), sub(found, 3)
    if sign == 61 then -- =
        return decode(rest), false
    elseif sign == 33 then -- !, a script that has run too long in place
        leave_place()
        return taken(rest)
    end
    return {err = rest, ignore_error_stats_update = not WORDS_REFUSED[rest] or nil}, true
end

-- What the host answers to a request of more words than a call of the host takes: the first half is handed over before.
local function in_halves(count, ...)
    local words, half = {...}, floor(count / 2)
    host.first_words(unpack(words, 1, half))
    return call(unpack(words, half + 1, count))
end

-- What the host answers to a request. In place it is asked by a yield, which takes half as long as a call, but for one
-- word alone, which would be a script's reply. (No metatable of a script is in place: what calls this can yield.)
local function answered(...)
    local _, second, _, _, _, sixth = ...
    if sixth ~= nil and select("#", ...) > MOST_AT_ONCE then
        return in_halves(select("#", ...), ...)
    end
    if in_place and second ~= nil then
        return raw_yield(...)
    end
    return call(...)
end

function guard.redis_call(...)
    local found = answered(...)
    if type(found) == "string" and byte(found, 1) ~= 0 then -- the commonest
        steps_left = steps_left - STEPS_OF_REQUEST - #found
        if steps_left < 0 then
            leave_place()
        end
        return found
    end
    local answer, is_error = taken(found)
    if is_error then
        error(answer, 0)
    end
    return answer
end

function guard.redis_pcall(...)
    return (taken(answered(...)))
end

-- What the host makes of a text, to be decoded; nil where it makes nothing of it. sign: what the text is, behind a NUL.
function guard.converted(sign, text)
    if in_place then
        return raw_yield(sign .. text)
    end
    return convert(sign .. text)
end

-- calling --------------------------------------------------------------------------------------------------------------

-- A function of C, or one of ours: scripts have such by the name of a library.
local function is_builtin(body)
    local place = getinfo(body, "S")
    return place.what == "C" or place.source == host.ours
end

local function returned(done, ...)
    if done then
        return ...
    end
    local problem = ...
    if dying then
        error(dying, 0)
    end
    error(clean(problem), 0)
end

-- A function that we call for a script. What a builtin one complains of is at no line: it was called from C.
function guard.callable(body)
    if not is_builtin(body) then
        return body
    end
    return function(...)
        return returned(raw_pcall(body, ...))
    end
end

-- catching -------------------------------------------------------------------------------------------------------------

-- As Redis looks for it: by the metatable, too.
local function err_of(problem)
    return problem.err
end

local function settled(level, done, ...)
    depth = base + level
    if done then
        return true, ...
    end
    local problem = caught((...))
    if type(problem) == "table" then
        local text = returned(raw_pcall(err_of, problem))
        if type(text) == "string" or type(text) == "number" then
            return false, text
        end
    end
    return false, problem
end

function guard.pcall(...)
    if select("#", ...) == 0 then
        return false, "attempt to call a boolean value" -- as Redis, whose Lua looks at what is on the stack
    end
    if depth >= DEEPEST then
        return false, "C stack overflow"
    end
    local level = depth - base
    depth = depth + 1
    return settled(level, raw_pcall(...))
end

local function handled(level, done, ...)
    depth = base + level
    if done then
        return true, ...
    end
    return false, caught((...))
end

-- Run a function of ours for a script: true and its results, or false and what a script may see of the error.
function guard.attempt(body)
    local level = depth - base
    return handled(level, raw_pcall(body))
end

function guard.xpcall(...)
    if select("#", ...) < 2 then
        refuse(2, "value expected", 1)
    end
    guard.leave_place() -- nothing leaves it amid an error
    local body, handler = ...
    local level = depth - base
    if depth >= DEEPEST then
        return false, "C stack overflow"
    end
    depth = depth + 1
    return handled(level, raw_xpcall(body, function(problem)
        if dying then
            return dying
        end
        depth = depth + 1
        return handler(clean(problem))
    end))
end

-- coroutines -----------------------------------------------------------------------------------------------------------

local function left(outer_base, outer_depth, done, ...)
    base, depth = outer_base, outer_depth
    if done then
        return true, ...
    end
    return false, caught((...))
end

local function resume(thread, ...)
    guard.leave_place() -- not to yield from another coroutine
    if depth >= DEEPEST_THREAD then
        return false, "C stack overflow"
    end
    local outer_base, outer_depth = base, depth
    depth = depth + 1
    base = depth
    return left(outer_base, outer_depth, raw_resume(thread, ...))
end

local function passed(done, ...)
    if done then
        return ...
    end
    local problem = ...
    error(problem, type(problem) == "string" and 2 or 0)
end

guard.coroutine = {status = status}

function guard.coroutine.running()
    local thread = running()
    if thread ~= own_thread then
        return thread
    end
end

function guard.coroutine.create(...)
    local body = ...
    if type(body) ~= "function" or is_builtin(body) then
        refuse(1, "Lua function expected", 1)
    end
    return create(body)
end

function guard.coroutine.resume(...)
    local thread = ...
    if type(thread) ~= "thread" then
        refuse(1, "coroutine expected", 1)
    end
    return resume(...)
end

function guard.coroutine.wrap(...)
    local body = ...
    if type(body) ~= "function" or is_builtin(body) then
        refuse(1, "Lua function expected", 1)
    end
    local thread = create(body)
    return function(...)
        return passed(resume(thread, ...))
    end
end

function guard.coroutine.yield(...)
    if depth ~= base then
        error("attempt to yield across metamethod/C-call boundary", 0)
    end
    return raw_yield(...)
end

-- memory ---------------------------------------------------------------------------------------------------------------

local pause, step_multiplier = 200, 200 -- as the script set them: told, and without effect

-- No script turns the collector off.
function guard.collectgarbage(...)
    guard.leave_place()
    local option, number = ...
    if option == "stop" or option == "restart" then
        return 0
    elseif option == "setpause" or option == "setstepmul" then
        number = math.floor(tonumber(number) or 0)
        local before
        if option == "setpause" then
            before, pause = pause, number
        else
            before, step_multiplier = step_multiplier, number
        end
        return before
    end
    return collect(...)
end

-- The size of a text to be made, in bytes: refused if it is beyond what any script may have.
function guard.room(size)
    if size > host.soft_limit then
        error(OUT_OF_MEMORY, 0)
    end
    guard.spend(size > 0 and size or 0)
end

-- the watch ------------------------------------------------------------------------------------------------------------

local asked_at, looked_at, every = 0, 0, HOOK_EVERY

-- Called every so many instructions of a script that may last, whatever runs then.
look = function()
    if dying then
        error(dying, 0)
    end
    local now = clock()
    local wanted = now - looked_at > SLOW * every / HOOK_EVERY and HOOK_SOON or HOOK_EVERY
    looked_at = now
    if wanted ~= every then
        every = wanted
        sethook(look, "", every)
    end
    if now - asked_at >= ASK_EVERY then
        asked_at = now
        local text = killed()
        if text then
            dying, every = {err = text}, HOOK_EVERY -- time enough to say so: nothing catches it
            sethook(look, "", HOOK_EVERY)
            error(dying, 0)
        end
    end
    if collect("count") > soft_limit then
        collect("collect")
        if collect("count") > soft_limit then
            error(OUT_OF_MEMORY, 0)
        end
    end
end

-- From here on the script is watched: it may last.
function guard.watch()
    is_watched = true
    looked_at, asked_at, every = clock(), clock(), HOOK_EVERY
    sethook(look, "", HOOK_EVERY)
end

-- Begin to run what a client sent.
function guard.begin(watched)
    depth, base, dying = 2, 0, nil
    is_watched, in_place = false, false
    if watched then
        guard.watch()
    end
end

function guard.finish()
    if is_watched then
        sethook()
        is_watched = false
    end
    dying = nil
end

-- Why a run failed: for want of memory not even that could be said.
function guard.reason(problem)
    if problem == NOT_SAID and (dying or collect("count") > soft_limit) then
        return dying or OUT_OF_MEMORY
    end
    return problem
end

-- Let go of what was run, however it ended.
function guard.clear()
    guard.finish()
    own_thread, in_place = nil, false
end

guard.unhook = sethook -- for the host: a function of C, during which no hook is called
guard.clean = clean
return guard
