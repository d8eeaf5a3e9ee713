-- The library cmsgpack: MessagePack, as Redis's scripts know it.
return function(host, shared, guard)
    local spend, wrong = guard.spend, guard.wrong
    local error, type, select, pcall, next, tonumber = error, type, select, pcall, next, tonumber
    local byte, char, sub, concat, floor = string.byte, string.char, string.sub, table.concat, math.floor
    local DEEPEST, revealed, as_int = 16, shared.revealed, shared.as_int
    local pack_number, unpack_double, unpack_integer = host.pack_double, host.unpack_double, host.unpack_integer
    local decode, reverse, maxn = host.decode, string.reverse, table.maxn
    local EXACT, FOUR_BYTES = 2 ^ 53, 2 ^ 32 -- below the first, whole numbers are exact

    local function sized(small, most_small, codes, count)
        if most_small and count <= most_small then
            return char(small + count)
        elseif codes[1] and count <= 255 then
            return char(codes[1], count)
        elseif count <= 65535 then
            return char(codes[2], floor(count / 256), count % 256)
        end
        return char(codes[3], floor(count / 16777216) % 256, floor(count / 65536) % 256, floor(count / 256) % 256,
            count % 256)
    end

    local STRING, ARRAY, MAP = {0xd9, 0xda, 0xdb}, {nil, 0xdc, 0xdd}, {nil, 0xde, 0xdf}
    local pack

    local function four_bytes(number)
        return char(floor(number / 16777216), floor(number / 65536) % 256, floor(number / 256) % 256, number % 256)
    end

    -- A number in its shortest form. The host makes those that are rare.
    local function packed(number)
        if number ~= floor(number) or number < -32 or number >= EXACT then
            return pack_number(number)
        elseif number < 0 then
            return char(256 + number)
        elseif number < 128 then
            return char(number)
        elseif number < 256 then
            return char(0xcc, number)
        elseif number < 65536 then
            return char(0xcd, floor(number / 256), number % 256)
        elseif number < FOUR_BYTES then
            return "\206" .. four_bytes(number)
        end
        return "\207" .. four_bytes(floor(number / FOUR_BYTES)) .. four_bytes(number % FOUR_BYTES)
    end

    -- The length of a table that is an array: its keys are 1 to n; else nil.
    local function length_of(value)
        local count, most = 0, 0
        for name in next, value do
            if type(name) ~= "number" or name <= 0 or name ~= floor(name) then
                return nil
            end
            if name > most then
                most = name
            end
            count = count + 1
        end
        return most == count and count or nil
    end

    pack = function(value, out, depth)
        local kind = type(value)
        spend(kind == "string" and #value / 100 + 2 or 10)
        if kind == "table" and depth == DEEPEST then
            kind = "nil"
        end
        if kind == "string" then
            out[#out + 1] = sized(0xa0, 31, STRING, #value)
            out[#out + 1] = value
        elseif kind == "number" then
            out[#out + 1] = packed(value)
        elseif kind == "boolean" then
            out[#out + 1] = value and "\195" or "\194"
        elseif kind == "table" then
            value = revealed(value)
            local count = length_of(value)
            if count then
                out[#out + 1] = sized(0x90, 15, ARRAY, count)
                for place = 1, count do
                    pack(value[place], out, depth + 1)
                end
            else
                count = 0
                for _ in next, value do
                    count = count + 1
                end
                out[#out + 1] = sized(0x80, 15, MAP, count)
                for name, held in next, value do
                    pack(name, out, depth + 1)
                    pack(held, out, depth + 1)
                end
            end
        else
            out[#out + 1] = "\192"
        end
    end

    local MISSING, BAD = "Missing bytes in input.", "Bad data format in input."
    local unpack_at

    local function need(text, at, size)
        if at + size - 1 > #text then
            error(MISSING, 0)
        end
    end

    local function number_at(text, at, size)
        need(text, at, size)
        local number = 0
        for place = at, at + size - 1 do
            number = number * 256 + byte(text, place)
        end
        return number, at + size
    end

    -- A whole number, with a sign if code says so.
    local function whole_at(text, at, size, code)
        local first, after = number_at(text, at, size < 4 and size or 4)
        if size < 8 then
            local most = 256 ^ size
            return code >= 0xd0 and first >= most / 2 and first - most or first, after
        elseif first < EXACT / FOUR_BYTES then
            local rest
            rest, after = number_at(text, after, 4)
            return first * FOUR_BYTES + rest, after
        end
        need(text, at, size)
        return unpack_integer(sub(text, at, at + size - 1), code >= 0xd0), at + size
    end

    -- A float. Of eight bytes, C reads it, but for what is no number, whose sign the host knows.
    local function float_at(text, at, size)
        need(text, at, size)
        local bytes = sub(text, at, at + size - 1)
        local number = size == 8 and decode("\7" .. reverse(bytes))
        if not number or number ~= number then
            number = unpack_double(bytes)
        end
        return number, at + size
    end

    local function text_at(text, at, size)
        need(text, at, size)
        return sub(text, at, at + size - 1), at + size
    end

    local function array_at(text, at, count)
        local values = {}
        for place = 1, count do
            values[place], at = unpack_at(text, at)
        end
        return values, at
    end

    local function map_at(text, at, count)
        local values, name, held = {}, nil, nil
        for _ = 1, count do
            name, at = unpack_at(text, at)
            held, at = unpack_at(text, at)
            if name == nil or name ~= name then
                error(BAD, 0)
            end
            values[name] = held
        end
        return values, at
    end

    local READERS = {[0xda] = {2, text_at}, [0xd9] = {1, text_at}, [0xdb] = {4, text_at}, [0xdc] = {2, array_at},
        [0xdd] = {4, array_at}, [0xde] = {2, map_at}, [0xdf] = {4, map_at}}
    local NUMBERS = {[0xcc] = 1, [0xcd] = 2, [0xce] = 4, [0xcf] = 8, [0xd0] = 1, [0xd1] = 2, [0xd2] = 4, [0xd3] = 8}

    unpack_at = function(text, at)
        local code = byte(text, at)
        if not code then
            error(MISSING, 0)
        end
        at = at + 1
        if code < 0x80 then
            return code, at
        elseif code >= 0xe0 then
            return code - 256, at
        elseif code >= 0xa0 and code < 0xc0 then
            return text_at(text, at, code - 0xa0)
        elseif code >= 0x90 and code < 0xa0 then
            return array_at(text, at, code - 0x90)
        elseif code < 0x90 then
            return map_at(text, at, code - 0x80)
        elseif code == 0xc0 then
            return nil, at
        elseif code == 0xc2 or code == 0xc3 then
            return code == 0xc3, at
        elseif code == 0xca or code == 0xcb then
            return float_at(text, at, code == 0xca and 4 or 8)
        end
        local size = NUMBERS[code]
        if size then
            return whole_at(text, at, size, code)
        end
        local reader = READERS[code]
        if not reader then
            error(BAD, 0)
        end
        local count
        count, at = number_at(text, at, reader[1])
        return reader[2](text, at, count)
    end

    local function unpack_some(given, text, limit, offset, whole)
        if type(text) == "number" then
            text = text .. ""
        end
        if type(text) ~= "string" then
            wrong(1, "string", text, given, 2)
        end
        if limit < 0 or offset < 0 then
            error("Invalid request to unpack with offset of " .. as_int(offset) .. " and limit of "
                .. #text .. ".", 3)
        elseif offset > #text then
            error("Start offset " .. as_int(offset) .. " greater than input length " .. #text .. ".", 3)
        end
        spend(#text)
        local values, count, at = {}, 0, offset + 1
        local done, problem = pcall(function()
            while at <= #text and (whole or count < limit) do
                values[count + 1], at = unpack_at(text, at)
                count = count + 1
            end
        end)
        if not done then
            error(problem, 3)
        end
        return values, count, at > #text and -1 or at - 1
    end

    local function integer_of(place, word, given)
        local number = tonumber(word)
        if not number then
            wrong(place, "number", word, given, 2)
        end
        if number ~= number or number >= 9223372036854775808 or number < -9223372036854775808 then
            return -9223372036854775808 -- as C casts it
        end
        return number < 0 and -floor(-number) or floor(number)
    end

    -- The table that a text is, made by C of what the host converts; nil where unpack_some has to read it.
    local LEAST, MOST = 16, host.most_converted -- bytes
    local function converted(text)
        spend(#text)
        local packed = guard.converted("\0m", text)
        if not packed then
            return nil
        end
        local has_nil = byte(packed, 1) == 0
        local done, values = pcall(decode, has_nil and sub(packed, 2) or packed)
        if not done then
            return nil -- a name that is there twice
        elseif not has_nil then
            return values
        end
        local made = {}
        for place = 1, maxn(values) do
            made[place] = values[place]
        end
        return made
    end

    local unpack = unpack
    return {
        _NAME = "cmsgpack",
        _VERSION = "lua-cmsgpack 0.4.0",
        _COPYRIGHT = "Copyright (C) 2012, Salvatore Sanfilippo",
        _DESCRIPTION = "MessagePack C implementation for Lua",
        pack = function(...)
            local count = select("#", ...)
            if count == 0 then
                guard.refuse(0, "MessagePack pack needs input.", 1)
            end
            local out = {}
            for place = 1, count do
                pack((select(place, ...)), out, 0)
            end
            return concat(out)
        end,
        unpack = function(...)
            local text = ...
            if type(text) == "string" and #text >= LEAST and #text <= MOST then
                local code = byte(text, 1)
                if code >= 0x80 and code < 0xa0 or code >= 0xdc and code < 0xe0 then
                    local made = converted(text)
                    if made then
                        return made
                    end
                end
            end
            local values, count = unpack_some(select("#", ...), (...), 0, 0, true)
            return unpack(values, 1, count)
        end,
        unpack_one = function(...)
            local text, offset = ...
            local given = select("#", ...)
            offset = offset == nil and 0 or integer_of(2, offset, given)
            local values, count, after = unpack_some(given, text, 1, offset, false)
            return after, unpack(values, 1, count)
        end,
        unpack_limit = function(...)
            local text, limit, offset = ...
            local given = select("#", ...)
            limit = integer_of(2, limit, given)
            offset = offset == nil and 0 or integer_of(3, offset, given)
            local is_whole = limit == 0 and offset == 0
            local values, count, after = unpack_some(given, text, limit, offset, is_whole)
            if is_whole then
                return unpack(values, 1, count)
            end
            return after, unpack(values, 1, count)
        end,
    }
end
