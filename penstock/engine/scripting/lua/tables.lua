-- The tables that all scripts share, which none of them may change, and the functions of tables.
-- A shared table is shown as a stand-in: an empty table whose reading goes to the real one, which no script can reach.

local host, guard = ...
local error, type, select, tonumber, floor = error, type, select, tonumber, math.floor
local raw_next, raw_get, raw_set, raw_equal = next, rawget, rawset, rawequal
local raw_getmetatable, raw_setmetatable, shown_metatable = debug.getmetatable, setmetatable, getmetatable
local raw_insert, raw_sort, raw_maxn = table.insert, table.sort, table.maxn
local raw_remove, raw_concat = table.remove, table.concat

local READONLY = "Attempt to modify a readonly table"
local MOST_NATIVE = 50000 -- items that are sorted or moved by C, which cannot be stopped
local ITEMS_OF_STEP = 40 -- that C moves in 100 ns

local MOST_WEIGHED = 200 -- items of a list that are looked at before C joins them, where the script can be stopped

local shared = {}
local real_of = raw_setmetatable({}, {__mode = "k"}) -- the real table of a stand-in
local shown_meta = raw_setmetatable({}, {__mode = "k"}) -- what getmetatable says of a stand-in

local function refuse()
    error(READONLY, 2)
end

-- Show a table. meta: what scripts see as its metatable, itself a stand-in.
function shared.standin(real, meta)
    local shown = raw_setmetatable({}, {__index = real, __newindex = refuse})
    real_of[shown] = real
    shown_meta[shown] = meta
    return shown
end

-- The table behind a stand-in, for reading alone; any other table itself.
function shared.revealed(value)
    return real_of[value] or value
end

function shared.is_standin(value)
    return real_of[value] ~= nil
end

local wrong, refuse = guard.wrong, guard.refuse
local base = {}
shared.base = base

function base.getmetatable(...)
    local value = ...
    if select("#", ...) == 0 then
        refuse(1, "value expected", 1)
    end
    local kind = type(value)
    if kind == "string" then
        return shared.text_meta
    elseif kind == "table" then
        if real_of[value] then
            return shown_meta[value]
        end
        return shown_metatable(value)
    end
    return nil -- nothing else has one that is anybody's
end

function base.setmetatable(...)
    local value, meta = ...
    if type(value) ~= "table" then
        wrong(1, "table", value, select("#", ...))
    end
    if meta ~= nil and type(meta) ~= "table" or select("#", ...) < 2 then
        refuse(2, "nil or table expected", 1)
    end
    if real_of[value] then
        error(READONLY, 0)
    end
    guard.leave_place() -- from here on anything may call functions of the script
    local before = raw_getmetatable(value)
    if before and raw_get(before, "__metatable") ~= nil then
        error("cannot change a protected metatable", 2)
    end
    return raw_setmetatable(value, meta)
end

function base.rawget(...)
    local value, name = ...
    if type(value) ~= "table" then
        wrong(1, "table", value, select("#", ...))
    elseif select("#", ...) < 2 then
        refuse(2, "value expected", 1)
    end
    return raw_get(real_of[value] or value, name)
end

function base.rawset(...)
    local value, name, held = ...
    if type(value) ~= "table" then
        wrong(1, "table", value, select("#", ...))
    elseif select("#", ...) < 3 then
        refuse(math.max(2, select("#", ...) + 1), "value expected", 1)
    end
    if real_of[value] then
        error(READONLY, 0)
    end
    if name == nil or name ~= name then
        error("table index is " .. (name == nil and "nil" or "NaN"), 2)
    end
    return raw_set(value, name, held)
end

function base.next(...)
    local value, name = ...
    if type(value) ~= "table" then
        wrong(1, "table", value, select("#", ...))
    end
    if real_of[value] then
        return raw_next(real_of[value], name)
    end
    return raw_next(value, name)
end

local next = base.next

function base.pairs(...)
    local value = ...
    if type(value) ~= "table" then
        wrong(1, "table", value, select("#", ...))
    end
    return real_of[value] and next or raw_next, value, nil
end

-- table ----------------------------------------------------------------------------------------------------------------

local tables = {maxn = raw_maxn}
shared.tables = tables

-- Refuse what is no table, for the function that calls this.
local function checked(value, count)
    if type(value) ~= "table" then
        wrong(1, "table", value, count, 2)
    end
end

-- How many bytes the text has that concat makes, up to an item that C refuses. A long list of a script that is watched
-- is not looked at: that takes ten times as long as to join it.
local function size_of_concat(list, separator)
    if type(list) ~= "table" then
        return 0
    end
    if #list > MOST_WEIGHED and not guard.is_in_place() then
        return 0
    end
    guard.spend(#list / 4)
    local joint, size = type(separator) == "string" and #separator or 8, 0
    for place = 1, #list do
        local item = raw_get(list, place)
        local kind = type(item)
        if kind ~= "string" and kind ~= "number" then
            return size
        end
        size = size + joint + (kind == "string" and #item or 8)
    end
    return size
end

function tables.concat(...)
    guard.room(size_of_concat(...)) -- C would take a second to find that there is not enough
    return raw_concat(...)
end

function tables.getn(...)
    local list = ...
    checked(list, select("#", ...))
    return #list
end

function tables.setn(...)
    checked((...), select("#", ...))
    error("'setn' is obsolete", 2)
end

function tables.foreach(...)
    local list, each = ...
    checked(list, select("#", ...))
    if type(each) ~= "function" then
        wrong(2, "function", each, select("#", ...))
    end
    each = guard.callable(each)
    for name, held in raw_next, real_of[list] or list do
        guard.spend(5)
        guard.deeper()
        local answer = each(name, held)
        guard.shallower()
        if answer ~= nil then
            return answer
        end
    end
end

function tables.foreachi(...)
    local list, each = ...
    checked(list, select("#", ...))
    if type(each) ~= "function" then
        wrong(2, "function", each, select("#", ...))
    end
    each = guard.callable(each)
    for place = 1, #list do
        guard.spend(5)
        guard.deeper()
        local answer = each(place, raw_get(list, place))
        guard.shallower()
        if answer ~= nil then
            return answer
        end
    end
end

function tables.insert(...)
    local count = select("#", ...)
    local list, place, value = ...
    checked(list, count)
    if count == 2 then
        if real_of[list] then
            error(READONLY, 0)
        end
        raw_set(list, #list + 1, place)
        return
    elseif count ~= 3 then
        error("wrong number of arguments to 'insert'", 2)
    end
    local at = tonumber(place)
    if not at then
        wrong(2, "number", place, count)
    elseif real_of[list] then
        error(READONLY, 0)
    end
    local length = #list
    if at >= 1 and at < 2147483648 and length <= MOST_NATIVE then
        guard.spend(length / ITEMS_OF_STEP)
        raw_insert(list, at, value)
        return
    end
    at = shared.as_int(at) -- Lua 5.1 takes 32 bits of it; LuaJIT would move two thousand million items
    guard.spend(at < length and length - at or 0)
    for from = length, at, -1 do
        raw_set(list, from + 1, raw_get(list, from))
    end
    raw_set(list, at, value)
end

function tables.remove(...)
    local list, place = ...
    local count = select("#", ...)
    checked(list, count)
    local length = #list
    local at = place == nil and length or tonumber(place)
    if not at or type(place) == "boolean" then
        wrong(2, "number", place, count)
    end
    at = at ~= at and 0 or at < 0 and -floor(-at) or floor(at)
    if at < 1 or at > length then
        return
    end
    local value = raw_get(list, at)
    if length - at <= MOST_NATIVE then
        guard.spend(length / ITEMS_OF_STEP)
        raw_remove(list, at)
        return value
    end
    guard.spend(length - at)
    for from = at, length - 1 do
        raw_set(list, from, raw_get(list, from + 1))
    end
    raw_set(list, length, nil)
    return value
end

local function less(one, other)
    local kind, other_kind = type(one), type(other)
    if kind == other_kind then
        if kind == "number" or kind == "string" then
            return one < other
        end
        local meta, other_meta = raw_getmetatable(one), raw_getmetatable(other)
        local way = meta and raw_get(meta, "__lt")
        if kind == "table" and way ~= nil and other_meta and raw_equal(way, raw_get(other_meta, "__lt")) then
            return way(one, other)
        end
        error("attempt to compare two " .. kind .. " values", 0)
    end
    error("attempt to compare " .. kind .. " with " .. other_kind, 0)
end

-- Quicksort with the middle of three, the smaller part first: items that are equal come out in the order in which
-- C's table.sort leaves them, which is the oracle of this one in a test. True if `before` is no order.
local function sort(list, low, high, before)
    while low < high do
        guard.spend(2 * (high - low)) -- comparisons
        local first, last = raw_get(list, low), raw_get(list, high)
        if before(last, first) then
            raw_set(list, low, last)
            raw_set(list, high, first)
        end
        if high - low == 1 then
            return false
        end
        local middle = floor((low + high) / 2)
        local pivot, edge = raw_get(list, middle), raw_get(list, low)
        if before(pivot, edge) then
            raw_set(list, middle, edge)
            raw_set(list, low, pivot)
        else
            edge = raw_get(list, high)
            if before(edge, pivot) then
                raw_set(list, middle, edge)
                raw_set(list, high, pivot)
            end
        end
        if high - low == 2 then
            return false
        end
        pivot = raw_get(list, middle)
        local moved = raw_get(list, high - 1)
        raw_set(list, middle, moved)
        raw_set(list, high - 1, pivot)
        local left, right = low, high - 1
        while true do
            left = left + 1
            local one = raw_get(list, left)
            while before(one, pivot) do
                if left > high then
                    return true
                end
                left = left + 1
                one = raw_get(list, left)
            end
            right = right - 1
            local other = raw_get(list, right)
            while before(pivot, other) do
                if right < low then
                    return true
                end
                right = right - 1
                other = raw_get(list, right)
            end
            if right < left then
                break
            end
            raw_set(list, left, other)
            raw_set(list, right, one)
        end
        local held = raw_get(list, high - 1)
        raw_set(list, high - 1, raw_get(list, left))
        raw_set(list, left, held)
        if left - low < high - left then
            if sort(list, low, left - 1, before) then
                return true
            end
            low = left + 1
        else
            if sort(list, left + 1, high, before) then
                return true
            end
            high = left - 1
        end
    end
end

function tables.sort(...)
    local list, before = ...
    local count = select("#", ...)
    checked(list, count)
    if before ~= nil and type(before) ~= "function" then
        wrong(2, "function", before, count)
    end
    local length = #list
    guard.spend(2 * length)
    if before == nil and length <= MOST_NATIVE then
        local kind, size = type(raw_get(list, 1)), 0
        local is_plain = kind == "number" or kind == "string"
        for place = 1, is_plain and length or 0 do
            local item = raw_get(list, place)
            if type(item) ~= kind then
                is_plain = false
                break
            end
            size = size + (kind == "string" and #item or 0)
        end
        if is_plain then
            guard.spend(size) -- before C begins
            raw_sort(list)
            return
        end
    end
    guard.deeper()
    local is_disorder = sort(list, 1, length, before and guard.callable(before) or less)
    guard.shallower()
    if is_disorder then
        error("invalid order function for sorting", 2)
    end
end

return shared
