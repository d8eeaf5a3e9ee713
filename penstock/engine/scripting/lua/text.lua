-- The library string, tostring and tonumber, as Lua 5.1 has them, with nothing in C that takes long.
-- Functions of C are called last, as tail calls, so that their errors name the script's line.

local host, guard, shared, patterns = ...
local error, type, select, tonumber, tostring, floor = error, type, select, tonumber, tostring, math.floor
local byte, char, sub, concat = string.byte, string.char, string.sub, table.concat
local raw_find, raw_match, raw_gmatch, raw_gsub = string.find, string.match, string.gmatch, string.gsub
local raw_rep, raw_format, raw_next, unpack = string.rep, string.format, next, unpack
local wrong, refuse, room, spend = guard.wrong, guard.refuse, guard.room, guard.spend

local MOST_STEPS = 3e7 -- of C's matcher: a tenth of a second
local MOST_REPLACED = 10000000 -- items that C matches and bytes that it puts together in gsub: a second at most
local MOST_KNOWN, LONGEST_PLANNED = 500, 200 -- patterns, and layouts, that are remembered; bytes of a layout

local text = {
    byte = byte, char = char, lower = string.lower, reverse = string.reverse, sub = sub,
    upper = string.upper,
}

function text.len(...)
    local subject = ...
    if type(subject) ~= "string" then
        if type(subject) ~= "number" then
            wrong(1, "string", subject, select("#", ...))
        end
        return #(subject .. "")
    end
    return #subject
end

-- patterns -------------------------------------------------------------------------------------------------------------

local weights, known = {}, 0

local function weight_of(pattern)
    local weight = weights[pattern]
    if not weight then
        local found, problem = patterns.weigh(pattern)
        weight = found or problem
        if known == MOST_KNOWN then
            weights, known = {}, 0
        end
        weights[pattern], known = weight, known + 1
    end
    if type(weight) == "string" then
        return nil, weight
    end
    return weight
end

-- Whether C's matcher may do it. Where something is wrong with the pattern that is for C to say, if it comes so far
-- in short time.
local function is_quick(subject, pattern)
    local weight, problem = weight_of(pattern)
    if not weight then
        local _, loops = raw_gsub(pattern, "[%*%+%-%?%%]", "")
        if (#subject + 1) ^ (loops + 1) > MOST_STEPS then
            error(problem, 3)
        end
        spend((#subject + 1) ^ (loops + 1) / 10)
        return true
    end
    spend(#pattern + (#subject + 1) ^ (weight < 1 and 1 or weight) / 10)
    return weight <= 1 or (#subject + 1) ^ weight <= MOST_STEPS
end

local function start_of(subject, init)
    init = init == nil and 1 or floor(tonumber(init))
    if init < 0 then
        init = #subject + init + 1
    end
    return init < 1 and 1 or init
end

local function found_slowly(subject, pattern, init)
    if init > #subject + 1 then
        init = #subject + 1
    end
    return patterns.matcher(pattern)(subject, init)
end

-- A plain text in another: no step of C's is longer than a million comparisons.
local function find_plain(subject, wanted, init)
    local head, size = sub(wanted, 1, 100), #wanted
    local at = init
    while true do
        local first = raw_find(subject, head, at, true)
        if not first or first + size - 1 > #subject then
            return nil
        end
        if size <= 100 or sub(subject, first + 100, first + size - 1) == sub(wanted, 101) then
            return first, first + size - 1
        end
        at = first + 1
    end
end

local function are_texts(subject, pattern, init)
    local kind, other = type(subject), type(pattern)
    return (kind == "string" or kind == "number") and (other == "string" or other == "number")
        and (init == nil or tonumber(init) ~= nil)
end

function text.find(...)
    local subject, pattern, init, is_plain = ...
    if type(subject) ~= "string" or type(pattern) ~= "string" then
        if not are_texts(subject, pattern, init) then
            return raw_find(...)
        end
        subject, pattern = subject .. "", pattern .. ""
    end
    if is_plain then
        spend(#subject * #pattern / 100)
        if #subject * #pattern <= MOST_STEPS or not tonumber(init or 1) then
            return raw_find(subject, pattern, init, true)
        end
        return find_plain(subject, pattern, start_of(subject, init))
    end
    if is_quick(subject, pattern) or init ~= nil and not tonumber(init) then
        return raw_find(subject, pattern, init)
    end
    local first, last, values, count = found_slowly(subject, pattern, start_of(subject, init))
    if not first then
        return nil
    end
    return first, last, unpack(values, 1, count)
end

function text.match(...)
    local subject, pattern, init = ...
    if type(subject) ~= "string" or type(pattern) ~= "string" then
        if not are_texts(subject, pattern, init) then
            return raw_match(...)
        end
        subject, pattern = subject .. "", pattern .. ""
    end
    if is_quick(subject, pattern) or init ~= nil and not tonumber(init) then
        return raw_match(subject, pattern, init)
    end
    local first, last, values, count = found_slowly(subject, pattern, start_of(subject, init))
    if not first then
        return nil
    elseif count == 0 then
        return sub(subject, first, last)
    end
    return unpack(values, 1, count)
end

function text.gmatch(...)
    local subject, pattern = ...
    if not are_texts(subject, pattern) then
        return raw_gmatch(...)
    end
    subject, pattern = subject .. "", pattern .. ""
    local weighed = byte(pattern, 1) == 94 and "%" .. pattern or pattern -- a ^ is a letter here
    if is_quick(subject, weighed) then
        return raw_gmatch(subject, pattern)
    end
    guard.leave_place()
    local matcher, at = patterns.matcher(pattern), 1
    return function()
        if at > #subject + 1 then
            return nil
        end
        local first, last, values, count = matcher(subject, at, true)
        if not first then
            at = #subject + 2
            return nil
        end
        at = last < first and first + 1 or last + 1
        if count == 0 then
            return sub(subject, first, last)
        end
        return unpack(values, 1, count)
    end
end
text.gfind = text.gmatch

-- What a replacement text says, with the captures put in; problems are raised at the caller of gsub.
local function expanded(replacement, whole, values, count, level)
    return (raw_gsub(replacement, "%%(.?)", function(mark)
        local code = byte(mark)
        if not code or code < 48 or code > 57 then
            return mark
        elseif code == 48 or code == 49 and count == 0 then
            return whole
        end
        local value = values[code - 48]
        if value == nil then
            error("invalid capture index", level)
        end
        return value .. ""
    end))
end

local function first_of(subject, pattern, at, matcher)
    if matcher then
        local first, last, values, count = matcher(subject, at)
        return first, last, values, count
    end
    local function packed(first, last, ...)
        return first, last, {...}, select("#", ...)
    end
    return packed(raw_find(subject, pattern, at))
end

-- gsub whose steps are Lua's: no function is called from C.
local function substituted(subject, pattern, replacement, most)
    local kind = type(replacement)
    local matcher = not is_quick(subject, pattern) and patterns.matcher(pattern) or nil
    local called = kind == "function" and guard.callable(replacement)
    local is_anchored = byte(pattern, 1) == 94
    local out, size, at, count = {}, 0, 1, 0
    while count < most do
        local first, last, values, captures = first_of(subject, pattern, at, matcher)
        if not first then
            break
        end
        count = count + 1
        spend(10)
        local whole = sub(subject, first, last)
        local value
        if kind == "string" then
            value = expanded(replacement, whole, values, captures, 7)
        else
            if captures == 0 then
                values[1], captures = whole, 1
            end
            if kind == "table" then
                value = replacement[values[1]]
            else
                value = called(unpack(values, 1, captures))
            end
            if not value then
                value = whole
            elseif type(value) ~= "string" and type(value) ~= "number" then
                error("invalid replacement value (a " .. type(value) .. ")", 3)
            end
        end
        out[size + 1], out[size + 2] = sub(subject, at, first - 1), value
        size = size + 2
        if last >= first then
            at = last + 1
        else
            out[size + 1] = sub(subject, first, first)
            size, at = size + 1, first + 1
        end
        if is_anchored or at > #subject + 1 then
            break
        end
    end
    out[size + 1] = sub(subject, at)
    return concat(out), count
end

local function never_called() end

function text.gsub(...)
    local subject, pattern, replacement, most = ...
    local kind = type(replacement)
    if not are_texts(subject, pattern) or most ~= nil and not tonumber(most)
        or kind ~= "string" and kind ~= "number" and kind ~= "table" and kind ~= "function" then
        if are_texts(subject, pattern) and (most == nil or tonumber(most)) and kind ~= "string" and kind ~= "number" and kind ~= "table"
            and kind ~= "function" then
            refuse(3, "string/function/table expected", 1)
        end
        return raw_gsub(...)
    end
    subject, pattern = subject .. "", pattern .. ""
    local weight = weight_of(pattern)
    if not weight and (kind == "table" or kind == "function") and is_quick(subject, pattern) then
        return raw_gsub(subject, pattern, never_called, most) -- a pattern that is wrong as a whole matches nothing
    end
    if kind == "number" then
        replacement, kind = replacement .. "", "string"
    end
    if kind == "string" then
        spend(#subject / 10 * (#replacement + 1))
    end
    if kind == "string" and (#subject + 1) * (#replacement + #pattern + 1) <= MOST_REPLACED
        and is_quick(subject, pattern) then
        return raw_gsub(subject, pattern, replacement, most)
    end
    guard.deeper()
    most = most == nil and #subject + 1 or tonumber(most)
    return guard.shallower(substituted(subject, pattern, replacement, most - most % 1))
end

-- making texts ---------------------------------------------------------------------------------------------------------

function text.rep(...)
    local subject, count = ...
    local times = tonumber(count)
    if times and (type(subject) == "string" or type(subject) == "number") then
        if times ~= times or times >= 2147483648 or times < -2147483648 then
            times = times ~= times and 0 or times < 0 and 0 or times
        end
        room(#(subject .. "") * times)
        return raw_rep(subject, times)
    end
    return raw_rep(...)
end

function text.dump(...)
    local body = ...
    if type(body) ~= "function" then
        wrong(1, "function", body, select("#", ...))
    end
    error("unable to dump given function", 2)
end

local QUOTES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\\n", ["\r"] = "\\r", ["\0"] = "\\000"}

local function quoted(value)
    return '"' .. raw_gsub(value, '["\\\n\r%z]', QUOTES) .. '"'
end

local function number_text(value)
    return value == value and tostring(value) or host.number_text(value)
end

-- A directive that C would write otherwise, or refuse otherwise: its text.
local function directive(spec, letter, value, place, count)
    if place > count then
        wrong(place, (letter == "s" or letter == "q") and "string" or "number", value, count, 2)
    end
    if letter == "s" or letter == "q" then
        local kind = type(value)
        if kind == "number" then
            value = number_text(value)
        elseif kind ~= "string" then
            wrong(place, "string", value, count, 2)
        end
        if letter == "q" then
            return quoted(value)
        elseif not raw_find(spec, ".", 1, true) and #value >= 100 then
            return value
        end
        local stop = raw_find(value, "\0", 1, true)
        return raw_format(spec, stop and sub(value, 1, stop - 1) or value)
    end
    local number = tonumber(value)
    if type(value) ~= "number" and type(value) ~= "string" or not number then
        wrong(place, "number", value, count, 2)
    end
    if letter == "c" then
        local made = raw_format(spec, number)
        local stop = raw_find(made, "\0", 1, true)
        return stop and sub(made, 1, stop - 1) or made
    elseif number ~= number and raw_find(letter, "[eEfgG]") then
        local _, _, flags, width = raw_find(spec, "^%%([-+ #0]*)(%d*)")
        local made = host.number_text(number)
        if sub(made, 1, 1) ~= "-" then
            made = (raw_find(flags, "+", 1, true) and "+" or raw_find(flags, " ", 1, true) and " " or "") .. made
        end
        local shape = "%" .. (raw_find(flags, "-", 1, true) and "-" or "") .. width .. "s"
        return raw_format(shape, (letter == "E" or letter == "G") and made:upper() or made)
    elseif letter == "i" or letter == "d" or letter == "u" or raw_find(letter, "[oxX]") then
        if number ~= number or number >= 9223372036854775808 or number < -9223372036854775808 then
            number = letter == "d" or letter == "i" or number < 0 or number ~= number and -9223372036854775808 or number
            number = type(number) == "number" and number or -9223372036854775808
        end
        if letter == "u" then
            return host.unsigned_text(spec, number)
        end
        return raw_format(letter == "i" and sub(spec, 1, -2) .. "d" or spec, number)
    end
    return raw_format(spec, number)
end

-- Layouts in which nothing is wrong, cut into what is written and what is filled in: {text, spec, text, spec, text}.
local plans, plans_known = {}, 0

local function plan_of(layout)
    if #layout > LONGEST_PLANNED then
        return nil
    end
    local plan, size, at = {}, 0, 1
    while true do
        local mark, stop, letter = raw_find(layout, "%%[-+ #0]?%d?%d?([cdiouxXeEfgGqs])", at)
        if mark ~= raw_find(layout, "%", at, true) then
            return nil -- a sign per cent, or something rare or wrong
        elseif not mark then
            break
        end
        plan[size + 1], plan[size + 2], plan[size + 3] = sub(layout, at, mark - 1), sub(layout, mark, stop), letter
        size, at = size + 3, stop + 1
    end
    plan[size + 1], plan.count = sub(layout, at), size / 3
    if plans_known == MOST_KNOWN then
        plans, plans_known = {}, 0
    end
    plans[layout], plans_known = plan, plans_known + 1
    return plan
end

-- Called as a tail call: the script's line is one level up.
local function filled(plan, count, given)
    local out = {}
    for place = 1, plan.count do
        local at, value = 3 * place, given[place + 1]
        local spec, piece = plan[at - 1], nil
        if spec == "%s" and type(value) == "string" and (#value >= 100 or not raw_find(value, "\0", 1, true)) then
            spend(#value)
            piece = value
        elseif spec == "%d" and type(value) == "number" and value == value and value < 1e15 and value > -1e15 then
            piece = raw_format("%d", value)
        else
            piece = directive(spec, plan[at], value, place + 1, count)
        end
        out[2 * place - 1], out[2 * place] = plan[at - 2], piece
    end
    out[2 * plan.count + 1] = plan[3 * plan.count + 1]
    return concat(out)
end

function text.format(...)
    local count = select("#", ...)
    local layout = ...
    if type(layout) == "number" then
        layout = layout .. ""
    elseif type(layout) ~= "string" then
        wrong(1, "string", layout, count)
    end
    spend(#layout)
    local plan = plans[layout] or plan_of(layout)
    if plan and count > plan.count then
        return filled(plan, count, {...})
    end
    local given = {...}
    local out, size, at, place = {}, 0, 1, 1
    while true do
        local mark = raw_find(layout, "%", at, true)
        if not mark then
            break
        end
        size = size + 1
        out[size] = sub(layout, at, mark - 1)
        local following = sub(layout, mark + 1, mark + 1)
        if following == "%" then
            size = size + 1
            out[size], at = "%", mark + 2
        else
            local _, flags_end = raw_find(layout, "^[-+ #0]*", mark + 1)
            if flags_end - mark > 5 then
                error("invalid format (repeated flags)", 2)
            end
            local _, stop = raw_find(layout, "^%d?%d?", flags_end + 1)
            if sub(layout, stop + 1, stop + 1) == "." then
                _, stop = raw_find(layout, "^%.%d?%d?", stop + 1)
            end
            if raw_find(layout, "^%d", stop + 1) then
                error("invalid format (width or precision too long)", 2)
            end
            local letter = sub(layout, stop + 1, stop + 1)
            local spec = sub(layout, mark, stop + 1)
            place = place + 1
            if not raw_find(letter, "^[cdiouxXeEfgGqs]") then
                if place > count then
                    refuse(place, "no value", 1)
                end
                error("invalid option '%" .. sub(layout, mark + 1, stop + 1) .. "' to 'format'", 2)
            end
            local piece
            if place > count then
                refuse(place, "no value", 1)
            end
            local value = given[place]
            if spec == "%s" and type(value) == "string" and #value >= 100 then
                spend(#value)
                piece = value
            elseif spec == "%d" and type(value) == "number" and value == value and value < 1e15 and value > -1e15 then
                piece = raw_format("%d", value)
            else
                piece = directive(spec, letter, value, place, count)
            end
            size = size + 1
            out[size], at = piece, stop + 2
        end
    end
    out[size + 1] = sub(layout, at)
    return concat(out)
end

-- numbers and texts ----------------------------------------------------------------------------------------------------

local function text_of(...)
    local value = ...
    local kind = type(value)
    if kind == "number" then
        return value == value and tostring(value) or host.number_text(value)
    elseif kind == "function" then
        return (raw_gsub(tostring(value), "builtin.*", "0x55d1c0de0000"))
    elseif kind == "userdata" then
        return "userdata: (nil)"
    end
    return tostring(...)
end

local function number_of(...)
    local value, radix = ...
    if type(value) == "string" then
        spend(#value / 100)
        if radix == nil and raw_find(value, "^%s*[-+]?0[bB]") then
            return nil -- LuaJIT reads binary numbers
        end
    end
    return tonumber(...)
end

return {library = text, tostring = text_of, tonumber = number_of}
