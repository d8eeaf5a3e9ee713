-- The libraries math and bit, as Redis's scripts know them.

local host, guard, shared = ...
local error, type, select, tonumber = error, type, select, tonumber
local floor, least, most = math.floor, math.min, math.max
local raw_pairs, wrong, refuse = pairs, guard.wrong, guard.refuse

-- As a C compiler casts a double to int on a 64-bit machine.
function shared.as_int(number)
    if number ~= number or number >= 9223372036854775808 or number < -9223372036854775808 then
        return 0
    end
    number = math.fmod(number < 0 and -floor(-number) or floor(number), 4294967296) + 0 -- no -0
    return number >= 2147483648 and number - 4294967296 or number < -2147483648 and number + 4294967296 or number
end

local as_integer = shared.as_int

-- Chance is Redis's own: the same sequence everywhere, until it is seeded.
local maths = {}
for _, name in ipairs({"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "exp", "floor", "fmod",
    "frexp", "huge", "ldexp", "log10", "max", "min", "modf", "pi", "pow", "sin", "sinh", "sqrt", "tan",
    "tanh"}) do
    maths[name] = math[name]
end
-- Without an argument LuaJIT's read what was left on the stack.
for _, name in ipairs({"floor", "ceil"}) do
    local raw = math[name]
    maths[name] = function(...)
        if select("#", ...) == 0 then
            wrong(1, "number", nil, 0)
        end
        return raw(...)
    end
end
-- Of two arguments Redis looks at the second one first.
for name, raw in raw_pairs({atan2 = math.atan2, fmod = math.fmod, ldexp = math.ldexp, mod = math.fmod,
    pow = math.pow}) do
    maths[name] = function(...)
        local _, other = ...
        if not tonumber(other) then
            wrong(2, "number", other, select("#", ...))
        end
        if name == "ldexp" and tonumber((...)) then
            return raw((...), as_integer(tonumber(other)))
        end
        return raw(...)
    end
end
for name, factor in raw_pairs({deg = 180 / math.pi, rad = math.pi / 180}) do
    maths[name] = function(...)
        local number = tonumber((...))
        if not number or type((...)) == "boolean" then
            wrong(1, "number", (...), select("#", ...))
        end
        return name == "deg" and number / (math.pi / 180) or number * factor
    end
end
local raw_log = math.log
maths.log = function(...)
    if select("#", ...) > 1 then
        return raw_log((...))
    end
    return raw_log(...)
end
maths.randomseed = function(...)
    local number = tonumber((...))
    if not number then
        wrong(1, "number", (...), select("#", ...))
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
            wrong(place, "number", (select(place, ...)), count)
        end
    end
    if count == 1 then
        low, high = 1, low
    end
    low, high = as_integer(tonumber(low)), as_integer(tonumber(high))
    if not (low <= high) then
        refuse(count, "interval is empty", 1)
    end
    return floor(host.random() * (high - low + 1)) + low
end

local bits, raw_tohex = {}, bit.tohex
for name, tool in raw_pairs(bit) do
    bits[name] = tool
end
bits.tohex = function(...)
    local number, digits = ...
    local count = tonumber(digits)
    if count and (count > 8 or count < -8) then
        return raw_tohex(number, most(-8, least(8, bit.tobit(count))))
    end
    return raw_tohex(...)
end

return {math = maths, bit = bits}
