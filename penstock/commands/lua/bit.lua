-- The library bit: operations on 32 bits, done by the host.
return function(host)
    local error, select, type, tonumber, tostring = error, select, type, tonumber, tostring
    local apply, hex = host.bits, host.hex

    local function checked(name, count, ...)
        for place = 1, count do
            local number = select(place, ...)
            if type(number) ~= "number" and not (type(number) == "string" and tonumber(number)) then
                error("bad argument #" .. place .. " to '" .. name .. "' (number expected, got "
                    .. (select("#", ...) < place and "no value" or type(number)) .. ")", 3)
            end
        end
    end

    local bit = {}
    for _, name in ipairs({"tobit", "bnot", "bswap"}) do
        bit[name] = function(...)
            checked(name, 1, ...)
            local number = ...
            local answer = apply(name, tonumber(number), 0)
            return answer
        end
    end
    for _, name in ipairs({"lshift", "rshift", "arshift", "rol", "ror"}) do
        bit[name] = function(...)
            checked(name, 2, ...)
            local number, by = ...
            local answer = apply(name, tonumber(number), tonumber(by))
            return answer
        end
    end
    for _, name in ipairs({"band", "bor", "bxor"}) do
        bit[name] = function(...)
            local count = select("#", ...)
            checked(name, count == 0 and 1 or count, ...)
            local answer = apply("tobit", tonumber((...)), 0)
            for place = 2, count do
                answer = apply(name, answer, tonumber((select(place, ...))))
            end
            return answer
        end
    end
    bit.tohex = function(...)
        checked("tohex", 1, ...)
        local number, digits = ...
        if digits ~= nil and not tonumber(digits) then
            error("bad argument #2 to 'tohex' (number expected, got " .. type(digits) .. ")", 2)
        end
        local answer = hex(tonumber(number), tonumber(digits or 8))
        return answer
    end
    return bit
end
