-- Lua's patterns, matched step by step in Lua: for what could keep C busy for long, where it cannot be stopped.
-- C's matcher is the oracle of this one in a test. Some fifty times slower than C where both take the same steps.

local error, type = error, type
local byte, find, sub = string.byte, string.find, string.sub

local MOST_CAPTURES, DEEPEST = 32, 3000
local OPEN, PLACE = -1, -2 -- lengths of captures that are not closed, and that are places

local patterns = {}

-- Where the single item at `at` ends.
local function item_end(pattern, at)
    local code = byte(pattern, at)
    at = at + 1
    if code == 37 then -- %
        if at > #pattern then
            error("malformed pattern (ends with '%')", 0)
        end
        return at + 1
    elseif code == 91 then -- [
        if byte(pattern, at) == 94 then
            at = at + 1
        end
        repeat
            code = byte(pattern, at)
            if not code then
                error("malformed pattern (missing ']')", 0)
            end
            at = at + 1
            if code == 37 then
                if at > #pattern then
                    error("malformed pattern (missing ']')", 0)
                end
                at = at + 1
            end
        until byte(pattern, at) == 93 -- ]
        return at + 1
    end
    return at
end

-- What can be said of a pattern before it is used: nil and what is wrong with it, or how often the length of the text
-- multiplies the steps it may take, and whether C's matcher goes deeper than it likes.
function patterns.weigh(pattern)
    local at, stop = 1, #pattern
    local loops, items, opened, captures = 1, 0, {}, 0
    if byte(pattern, 1) == 94 then
        at, loops = 2, 0
    end
    while at <= stop do
        local code = byte(pattern, at)
        items = items + 1
        if code == 40 then -- (
            captures = captures + 1
            if captures > MOST_CAPTURES then
                return nil, "too many captures"
            end
            if byte(pattern, at + 1) == 41 then
                at = at + 2
            else
                opened[#opened + 1] = captures
                at = at + 1
            end
        elseif code == 41 then -- )
            if #opened == 0 then
                return nil, "invalid pattern capture"
            end
            opened[#opened] = nil
            at = at + 1
        elseif code == 36 and at == stop then -- $
            at = at + 1
        elseif code == 37 and byte(pattern, at + 1) == 98 then -- %b
            if at + 3 > stop then
                return nil, "unbalanced pattern"
            end
            at, loops = at + 4, loops + 1
        elseif code == 37 and byte(pattern, at + 1) == 102 then -- %f
            if byte(pattern, at + 2) ~= 91 then
                return nil, "missing '[' after '%f' in pattern"
            end
            local done, after = pcall(item_end, pattern, at + 2)
            if not done then
                return nil, after
            end
            at = after
        elseif code == 37 and find(pattern, "^%d", at + 1) then
            local index = byte(pattern, at + 1) - 48
            if index < 1 or index > captures then
                return nil, "invalid capture index"
            end
            for place = 1, #opened do
                if opened[place] == index then
                    return nil, "invalid capture index"
                end
            end
            at, loops = at + 2, loops + 1
        else
            local done, after = pcall(item_end, pattern, at)
            if not done then
                return nil, after
            end
            local suffix = byte(pattern, after)
            at = after
            if suffix == 42 or suffix == 43 or suffix == 45 then -- * + -
                at = at + 1
                -- The last one of a pattern is not tried again: what follows it always matches.
                if find(pattern, "^%)*$", at) == nil then
                    loops = loops + 1
                end
            elseif suffix == 63 then -- ?
                at, loops = at + 1, loops + 0.25
            end
        end
    end
    if #opened > 0 then
        return nil, "unfinished capture"
    end
    return items > 100 and 1000 or loops
end

local CLASSES = {[97] = "^%a", [99] = "^%c", [100] = "^%d", [108] = "^%l", [112] = "^%p", [115] = "^%s",
    [117] = "^%u", [119] = "^%w", [120] = "^%x", [122] = "^%z", [65] = "^%A", [67] = "^%C", [68] = "^%D",
    [76] = "^%L", [80] = "^%P", [83] = "^%S", [85] = "^%U", [87] = "^%W", [88] = "^%X", [90] = "^%Z"}

-- Which bytes each item matches, by its text: `[a-z]` is asked once a byte, and remembered.
local function new_sets()
    local sets = {}
    return function(item)
        local set = sets[item]
        if not set then
            set = {}
            local first = byte(item, 1)
            if first == 46 then -- .
                for code = 0, 255 do
                    set[code] = true
                end
            elseif first == 91 or first == 37 and CLASSES[byte(item, 2)] then
                for code = 0, 255 do
                    set[code] = find(string.char(code), item) ~= nil
                end
            else
                set[byte(item, first == 37 and 2 or 1)] = true
            end
            sets[item] = set
        end
        return set
    end
end

-- A matcher of one pattern: match(text, at) gives where the match ends and the captures, or nil.
function patterns.matcher(pattern)
    local set_of = new_sets()
    local stop_at = #pattern
    local text, length
    local count, starts, sizes, depth = 0, {}, {}, 0
    local match

    local function repeated(at, after, set, from, fewest)
        local most = 0
        while from + most <= length and set[byte(text, from + most)] do
            most = most + 1
        end
        for taken = most, fewest, -1 do
            local stop = match(from + taken, after)
            if stop then
                return stop
            end
        end
        return nil
    end

    local function shortest(after, set, from)
        while true do
            local stop = match(from, after)
            if stop then
                return stop
            elseif from <= length and set[byte(text, from)] then
                from = from + 1
            else
                return nil
            end
        end
    end

    local function special(from, at)
        local code = byte(pattern, at + 1)
        if code == 98 then -- %b
            local open, close = byte(pattern, at + 2), byte(pattern, at + 3)
            if byte(text, from) ~= open then
                return nil
            end
            local nested, place = 1, from + 1
            while place <= length do
                local found = byte(text, place)
                if found == close then
                    nested = nested - 1
                    if nested == 0 then
                        return match(place + 1, at + 4)
                    end
                elseif found == open then
                    nested = nested + 1
                end
                place = place + 1
            end
            return nil
        elseif code == 102 then -- %f
            local after = item_end(pattern, at + 2)
            local set = set_of(sub(pattern, at + 2, after - 1))
            local before, here = from > 1 and byte(text, from - 1) or 0, byte(text, from) or 0
            if set[before] or not set[here] then
                return nil
            end
            return match(from, after)
        end
        local index = code - 48
        local size = sizes[index]
        if size < 0 then
            error("invalid capture index", 0)
        end
        if sub(text, from, from + size - 1) == sub(text, starts[index], starts[index] + size - 1)
            and length - from + 1 >= size then
            return match(from + size, at + 2)
        end
        return nil
    end

    local function step(from, at)
        while at <= stop_at do
            local code = byte(pattern, at)
            local following = byte(pattern, at + 1)
            if code == 40 then -- (
                local is_place = following == 41
                count = count + 1
                local index = count
                starts[index], sizes[index] = from, is_place and PLACE or OPEN
                local stop = match(from, is_place and at + 2 or at + 1)
                if not stop then
                    count = index - 1
                end
                return stop
            elseif code == 41 then -- )
                local index = count
                while sizes[index] ~= OPEN do
                    index = index - 1
                end
                sizes[index] = from - starts[index]
                local stop = match(from, at + 1)
                if not stop then
                    sizes[index] = OPEN
                end
                return stop
            elseif code == 36 and at == stop_at then -- $
                return from == length + 1 and from or nil
            elseif code == 37 and (following == 98 or following == 102 or following >= 48 and following <= 57) then
                return special(from, at)
            end
            local after = item_end(pattern, at)
            local suffix = byte(pattern, after)
            local set = set_of(sub(pattern, at, after - 1))
            if suffix == 42 then -- *
                return repeated(at, after + 1, set, from, 0)
            elseif suffix == 43 then -- +
                return repeated(at, after + 1, set, from, 1)
            elseif suffix == 45 then -- -
                return shortest(after + 1, set, from)
            end
            local fits = from <= length and set[byte(text, from)]
            if suffix == 63 then -- ?
                if fits then
                    local stop = match(from + 1, after + 1)
                    if stop then
                        return stop
                    end
                end
                at = after + 1
            elseif fits then
                from, at = from + 1, after
            else
                return nil
            end
        end
        return from
    end

    match = function(from, at)
        if depth > DEEPEST then
            error("pattern too complex", 0)
        end
        depth = depth + 1
        local stop = step(from, at)
        depth = depth - 1
        return stop
    end

    local function captures()
        local values = {}
        for index = 1, count do
            local size = sizes[index]
            if size == PLACE then
                values[index] = starts[index]
            else
                values[index] = sub(text, starts[index], starts[index] + size - 1)
            end
        end
        return values, count
    end

    local is_anchored = byte(pattern, 1) == 94

    -- The first match from a place on: where it begins and ends, its captures and how many they are.
    return function(given, from, ignores_anchor)
        text, length = given, #given
        local anchored = is_anchored and not ignores_anchor
        local first = anchored and 2 or 1
        repeat
            count, depth = 0, 0
            local stop = match(from, first)
            if stop then
                local values, many = captures()
                return from, stop - 1, values, many
            end
            from = from + 1
        until anchored or from > length + 1
        return nil
    end
end

return patterns
