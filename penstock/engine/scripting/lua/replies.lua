-- Replies: values as RESP for the client.

local host, guard = ...
local error, type, raw_next, raw_get = error, type, next, rawget
local find, sub, gsub, concat, floor = string.find, string.sub, string.gsub, table.concat, math.floor
local number_text, spend = host.number_text, guard.spend
local create, resume = coroutine.create, coroutine.resume

local replies = {}

local client_resp, script_resp = 2, 2 -- what the client speaks, what the script asked for
local DEEPEST, DEEPEST_STACK = 7995, 1000 -- arrays in arrays, as in Redis; as many as one stack of LuaJIT takes

-- Statuses and errors are C strings in Redis: they end at the first NUL, and are one line.
local function one_line(text)
    return (gsub(text, "[\r\n]", " "))
end

local function flat(text)
    if not find(text, "[%z\r\n]") then
        return text
    end
    local stop = find(text, "%z")
    return one_line(stop and sub(text, 1, stop - 1) or text)
end

-- Line ends at an error's own end go.
local function flat_error(text)
    local last = #text
    while last > 0 and find(text, "^[\r\n]", last) do
        last = last - 1
    end
    return flat(sub(text, 1, last))
end

local function null()
    return client_resp == 3 and "_\r\n" or "$-1\r\n"
end

local HEADERS = {} -- of bulk strings, by their size
for count = 0, 255 do
    HEADERS[count] = "$" .. count .. "\r\n"
end

local function bulk(text)
    return (HEADERS[#text] or "$" .. #text .. "\r\n") .. text .. "\r\n"
end

-- An error that the request of the script has counted begins with another sign (scripts.py, error_of).
local function sign_of(problem)
    return raw_get(problem, "ignore_error_stats_update") and "!" or "-"
end

local out, size -- the pieces of the reply that is made

local function add(piece)
    size = size + 1
    out[size] = piece
end

local function add_bulk(text)
    out[size + 1], out[size + 2], out[size + 3] = HEADERS[#text] or "$" .. #text .. "\r\n", text, "\r\n"
    size = size + 3
end

local render
local LARGE, large_size = 65536, 0 -- texts from so many bytes on, and how large they are together
local stack_until = DEEPEST_STACK -- the depth at which another stack is begun

-- A number as an integer, cut off. What has no more than 14 digits Lua writes as it is.
local function integer_text(number)
    if number >= 0 and number < 1e14 then
        return floor(number) + 0 -- no -0
    elseif number < 0 and number > -1e14 then
        return 0 - floor(-number)
    end
    return host.integer_text(number)
end

local render_table
render_table = function(value, depth)
    if depth >= stack_until then
        guard.leave_place() -- not to yield from another coroutine
        local before = stack_until
        stack_until = depth + DEEPEST_STACK
        local done, problem = resume(create(render_table), value, depth)
        stack_until = before
        if not done then
            error(problem, 0)
        end
        return
    end
    local part = raw_get(value, "err")
    if type(part) == "string" then
        local sign = depth == 1 and sign_of(value) or "-"
        add(sign .. flat_error(part) .. "\r\n")
        return
    end
    part = raw_get(value, "ok")
    if type(part) == "string" then
        add("+" .. flat(part) .. "\r\n")
        return
    end
    part = raw_get(value, "double")
    if type(part) == "number" then
        local text = part ~= part and "nan" or part == 0 and 1 / part < 0 and "-0" or number_text(part)
        add(client_resp == 3 and "," .. text .. "\r\n" or bulk(text))
        return
    end
    part = raw_get(value, "map")
    if type(part) == "table" then
        local count = 0
        for _ in raw_next, part do
            count = count + 1
        end
        add(client_resp == 3 and "%" .. count .. "\r\n" or "*" .. 2 * count .. "\r\n")
        for name, held in raw_next, part do
            render(name, depth + 3) -- Redis has a map, a name and a value on its stack
            render(held, depth + 3)
        end
        return
    end
    part = raw_get(value, "set")
    if type(part) == "table" then
        local count = 0
        for _ in raw_next, part do
            count = count + 1
        end
        add((client_resp == 3 and "~" or "*") .. count .. "\r\n")
        for name in raw_next, part do
            render(name, depth + 3)
        end
        return
    end
    part = raw_get(value, "big_number")
    if type(part) == "string" then
        add(client_resp == 3 and "(" .. one_line(part) .. "\r\n" or bulk(one_line(part)))
        return
    end
    part = raw_get(value, "verbatim_string")
    if type(part) == "table" then
        local text, format = raw_get(part, "string"), raw_get(part, "format")
        if type(text) == "string" and type(format) == "string" then
            add(client_resp == 3
                and "=" .. #text + 4 .. "\r\n" .. sub(format .. "   ", 1, 3) .. ":" .. text .. "\r\n" or bulk(text))
            return
        end
    end
    add("")
    local at, count = size, 0
    while true do
        local item = raw_get(value, count + 1)
        if item == nil then
            break
        end
        count = count + 1
        if type(item) == "string" and #item < 256 then -- the commonest
            spend(2)
            add_bulk(item)
        else
            render(item, depth + 1)
        end
    end
    out[at] = "*" .. count .. "\r\n"
end

render = function(value, depth)
    if depth > DEEPEST then
        add("-ERR reached lua stack limit\r\n")
        return
    end
    local kind = type(value)
    local text
    spend(1)
    if kind == "string" then
        spend(#value / 100)
        if #value > LARGE then
            large_size = large_size + #value
            guard.room(large_size)
        end
        return add_bulk(value)
    elseif kind == "number" then
        text = ":" .. integer_text(value) .. "\r\n"
    elseif kind == "boolean" then
        if script_resp == 3 then
            text = client_resp == 3 and (value and "#t\r\n" or "#f\r\n") or (value and ":1\r\n" or ":0\r\n")
        else
            text = value and ":1\r\n" or null()
        end
    elseif kind == "table" then
        return render_table(value, depth)
    else
        text = null()
    end
    add(text)
end

local function rendered(value)
    out, size = {nil, nil, nil, nil, nil, nil, nil, nil}, 0 -- room for a small array
    stack_until, large_size = DEEPEST_STACK, 0
    render(value, 1)
    local pieces = out
    out = nil
    return concat(pieces)
end

-- The reply of what failed, under a name that errors are to tell.
function replies.failure(problem, name)
    out = nil
    local text = raw_get(problem, "err")
    if type(text) == "number" then
        text = text .. ""
    elseif type(text) ~= "string" then
        text = "ERR unknown error"
    end
    text = flat(text)
    local source, line = raw_get(problem, "source"), raw_get(problem, "line")
    if source then
        local named = host.valkey_version == "" and name .. ", " or "" -- Valkey does not say which script
        text = text .. " script: " .. named .. "on " .. source .. ":" .. line .. "."
    end
    return sign_of(problem) .. flat_error(text) .. "\r\n"
end

-- Let go of what was made.
function replies.clear()
    out = nil
end

-- A new script runs, for a client that speaks so; scripts begin with RESP2.
function replies.begin(resp)
    client_resp, script_resp = resp, 2
end

function replies.set_script(resp)
    script_resp = resp
end

-- What a script or a function gave, as a reply.
function replies.reply(answer)
    local kind = type(answer)
    if kind == "string" then
        return bulk(answer)
    elseif kind == "number" then
        return ":" .. integer_text(answer) .. "\r\n"
    end
    return rendered(answer)
end

return replies
