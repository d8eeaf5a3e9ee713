-- The library cjson: JSON, as Redis's scripts know it (lua-cjson 2.1.0).
return function(host, shared, guard)
    local spend, wrong, refuse = guard.spend, guard.wrong, guard.refuse
    local error, type, select, pcall, next, tonumber = error, type, select, pcall, next, tonumber
    local rawget, setmetatable, getmetatable = rawget, setmetatable, getmetatable
    local byte, char, find, format, gsub, sub = string.byte, string.char, string.find, string.format, string.gsub,
        string.sub
    local concat, floor, tostring = table.concat, math.floor, tostring
    local null, revealed, as_int = host.null, shared.revealed, shared.as_int
    local BEYOND_INT = 2 ^ 31
    local NAN = -host.unpack_double("\127\248\0\0\0\0\0\0") -- no sign: LuaJIT sets it for what comes from outside
    local LEAST, MOST = 24, host.most_converted -- bytes of a text that the host converts
    local LEAST_DEPTH = 30 -- as many tables in tables as the host knows
    local PIECE = 65536 -- bytes that are escaped at a time
    local MOST_KNOWN, LONGEST_KNOWN = 500, 40 -- names of fields that are remembered; their bytes
    local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n",
        ["\r"] = "\\r", ["\t"] = "\\t", ["\127"] = "\\u007f"}
    for code = 0, 31 do
        ESCAPES[char(code)] = ESCAPES[char(code)] or format("\\u%04x", code)
    end
    local PLAIN = {[34] = '"', [92] = "\\", [47] = "/", [98] = "\b", [102] = "\f", [110] = "\n", [114] = "\r",
        [116] = "\t"}
    local SIGNS = {[123] = "T_OBJ_BEGIN", [125] = "T_OBJ_END", [91] = "T_ARR_BEGIN", [93] = "T_ARR_END",
        [44] = "T_COMMA", [58] = "T_COLON"}
    local ARRAY_META = shared.standin({})

    local function new()
        local sparse_convert, sparse_ratio, sparse_safe = false, 2, 10
        local encode_depth, decode_depth, precision, keep_buffer = 1000, 1000, 14, true
        local invalid_out, invalid_in, array_meta = false, true, false
        local number_format = "%.14g"
        local encode_value

        -- How long a table is as an array; nil where it must be an object.
        local function length_of(value)
            local count, most = 0, 0
            for name in next, value do
                if type(name) ~= "number" or name <= 0 or name ~= floor(name) then
                    return nil
                end
                if name >= BEYOND_INT then
                    return nil -- lua-cjson keeps the largest in an int, which overflows
                end
                if name > most then
                    most = name
                end
                count = count + 1
            end
            if sparse_ratio > 0 and most > count * sparse_ratio and most > sparse_safe then
                if not sparse_convert then
                    error("Cannot serialise table: excessively sparse array", 0)
                end
                return nil
            end
            return most
        end

        local function text_of_number(number)
            if number ~= number or number == 1 / 0 or number == -1 / 0 then
                if invalid_out == "null" then
                    return "null"
                elseif not invalid_out then
                    error("Cannot serialise number: must not be NaN or Inf", 0)
                end
                return number ~= number and "nan" or number > 0 and "inf" or "-inf"
            end
            if precision == 14 and number < 1e14 and number > -1e14 and number == floor(number) then
                return number .. ""
            end
            return format(number_format, number)
        end

        local out, size -- the pieces of the text that is made

        local function add(piece)
            size = size + 1
            out[size] = piece
        end

        local function escaped(text)
            if #text <= PIECE then
                return gsub(text, '[%c"\\/\127]', ESCAPES)
            end
            local parts = {}
            for from = 1, #text, PIECE do -- C cannot be stopped
                parts[#parts + 1] = gsub(sub(text, from, from + PIECE - 1), '[%c"\\/\127]', ESCAPES)
            end
            return concat(parts)
        end

        local function add_string(text)
            spend(#text / 10)
            if #text > PIECE or find(text, '[%c"\\/\127]') then
                text = escaped(text)
            end
            out[size + 1], out[size + 2], out[size + 3] = '"', text, '"'
            size = size + 3
        end

        local names, known = {}, 0 -- fields' names as they are written

        local function add_name(name)
            local written = names[name]
            if not written then
                spend(#name / 10)
                written = '"' .. escaped(name) .. '":'
                if #name <= LONGEST_KNOWN then
                    if known == MOST_KNOWN then
                        names, known = {}, 0
                    end
                    names[name], known = written, known + 1
                end
            end
            add(written)
        end

        local function add_array(value, count, depth)
            add("[")
            for place = 1, count do
                if place > 1 then
                    add(",")
                end
                encode_value(rawget(value, place), depth)
            end
            add("]")
        end

        local function add_table(value, depth)
            value = revealed(value)
            if depth > encode_depth then
                error("Cannot serialise, excessive nesting (" .. depth .. ")", 0)
            end
            local count = length_of(value)
            if count and (count > 0 or array_meta and getmetatable(value) == ARRAY_META) then
                return add_array(value, count, depth)
            end
            local before = "{"
            for name, held in next, value do
                add(before)
                if type(name) == "string" then
                    add_name(name)
                elseif type(name) == "number" then
                    add('"' .. text_of_number(name) .. '":')
                else
                    error("Cannot serialise " .. type(name) .. ": table key must be a number or string", 0)
                end
                before = ","
                encode_value(held, depth)
            end
            add(before == "{" and "{}" or "}")
        end

        encode_value = function(value, depth)
            local kind = type(value)
            spend(2)
            if kind == "string" then
                add_string(value)
            elseif kind == "number" then
                add(text_of_number(value))
            elseif kind == "boolean" then
                add(value and "true" or "false")
            elseif kind == "table" then
                add_table(value, depth + 1)
            elseif value == nil or value == null then
                add("null")
            else
                error("Cannot serialise " .. kind .. ": type not supported", 0)
            end
        end

        local function encode(...)
            if select("#", ...) ~= 1 then
                refuse(1, "expected 1 argument", 1)
            end
            out, size = {}, 0
            local done, problem = pcall(encode_value, ..., 0)
            local pieces = out
            out = nil
            if not done then
                error(problem, 2)
            end
            return concat(pieces)
        end

        -- decoding: a token is its kind, its value and where it ends -------------------------------------------------

        local function unicode(text, at, stop)
            local digits = sub(text, at + 2, at + 5)
            if not find(digits, "^%x%x%x%x$") then
                return nil
            end
            local code = tonumber(digits, 16)
            at = at + 6
            if code >= 0xdc00 and code < 0xe000 then
                return nil
            elseif code >= 0xd800 and code < 0xdc00 then
                local low = sub(text, at, at + 5)
                if not find(low, "^\\u%x%x%x%x$") then
                    return nil
                end
                low = tonumber(sub(low, 3), 16)
                if low < 0xdc00 or low > 0xdfff then
                    return nil
                end
                code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00)
                at = at + 6
            end
            if code < 0x80 then
                return char(code), at
            elseif code < 0x800 then
                return char(0xc0 + floor(code / 64), 0x80 + code % 64), at
            elseif code < 0x10000 then
                return char(0xe0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64), at
            end
            return char(0xf0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64, 0x80 + floor(code / 64) % 64,
                0x80 + code % 64), at
        end

        local function string_token(text, at)
            local stop = find(text, '["\\%z]', at + 1)
            if stop and byte(text, stop) == 34 then
                return "T_STRING", sub(text, at + 1, stop - 1), stop + 1
            end
            local parts, from = {}, at + 1
            while true do
                stop = find(text, '["\\%z]', from)
                if not stop or byte(text, stop) == 0 then
                    return "T_ERROR", "unexpected end of string", stop or #text + 1
                end
                parts[#parts + 1] = sub(text, from, stop - 1)
                if byte(text, stop) == 34 then
                    return "T_STRING", concat(parts), stop + 1
                end
                local letter = byte(text, stop + 1)
                if letter == 117 then
                    local made, after = unicode(text, stop)
                    if not made then
                        return "T_ERROR", "invalid unicode escape code", stop
                    end
                    parts[#parts + 1], from = made, after
                elseif PLAIN[letter] then
                    parts[#parts + 1], from = PLAIN[letter], stop + 2
                else
                    return "T_ERROR", "invalid escape code", stop
                end
            end
        end

        local function number_token(text, at)
            local _, stop = find(text, "^[+-]?0[xX]%x+", at)
            if not stop then
                _, stop = find(text, "^[+-]?%d+%.?%d*[eE][+-]?%d+", at)
            end
            if not stop then
                _, stop = find(text, "^[+-]?%d+%.?%d*", at)
            end
            if not stop then -- strtod needs no digit before the point
                _, stop = find(text, "^[+-]%.%d+[eE][+-]?%d+", at)
            end
            if not stop then
                _, stop = find(text, "^[+-]%.%d+", at)
            end
            if stop then
                local given = sub(text, at, stop)
                return "T_NUMBER", tonumber(given) or tonumber(sub(given, 2)), stop + 1
            end
            for word, number in next, {infinity = 1 / 0, inf = 1 / 0, nan = NAN} do
                local sign = byte(text, at)
                local from = (sign == 43 or sign == 45) and at + 1 or at
                if sub(text, from, from + #word - 1):lower() == word
                    and not (word == "inf" and sub(text, from, from + 7):lower() == "infinity") then
                    return "T_NUMBER", sign == 45 and -number or number, from + #word
                end
            end
            return "T_ERROR", "invalid number", at
        end

        local function token(text, at)
            at = find(text, "[^ \t\n\r]", at) or #text + 1
            local code = byte(text, at)
            if not code or code == 0 then
                return "T_END", nil, at, at
            end
            local sign = SIGNS[code]
            if sign then
                return sign, nil, at + 1, at
            elseif code == 34 then
                local kind, value, after = string_token(text, at)
                return kind, value, after, kind == "T_ERROR" and after or at
            elseif code >= 48 and code <= 57 or code == 45 or code == 43 then
                local kind, value, after = number_token(text, at)
                return kind, value, after, at
            elseif sub(text, at, at + 3) == "true" then
                return "T_BOOLEAN", true, at + 4, at
            elseif sub(text, at, at + 4) == "false" then
                return "T_BOOLEAN", false, at + 5, at
            elseif sub(text, at, at + 3) == "null" then
                return "T_NULL", null, at + 4, at
            elseif invalid_in and find(text, "^[iInN]", at) then
                local kind, value, after = number_token(text, at)
                if kind == "T_NUMBER" then
                    return kind, value, after, at
                end
            end
            return "T_ERROR", "invalid token", at, at
        end

        local function unexpected(wanted, kind, value, at)
            error("Expected " .. wanted .. " but found " .. (kind == "T_ERROR" and value or kind) .. " at character "
                .. at, 0)
        end

        local function deeper(depth, at)
            if depth > decode_depth then
                error("Found too many nested data structures (" .. depth .. ") at character " .. at - 1, 0)
            end
            return depth
        end

        local has_escapes -- whether the text that is decoded has a backslash or a NUL anywhere

        local function miss(wanted, text, at)
            local kind, value, _, place = token(text, at)
            unexpected(wanted, kind, value, place)
        end

        -- The next byte that is no blank, and where it is.
        local function past_blanks(text, at)
            local code = byte(text, at)
            while code == 32 or code == 10 or code == 13 or code == 9 do
                at = at + 1
                code = byte(text, at)
            end
            return code, at
        end

        -- The string whose quote is there, and where it ends; nil where that is for string_token to say.
        local function plain_string(text, at)
            local stop = not has_escapes and find(text, '"', at + 1, true)
            if stop then
                return sub(text, at + 1, stop - 1), stop + 1
            end
        end

        -- The number of no more than nine digits that is there, and where it ends; nil where it is another.
        local function plain_number(text, at, code)
            local number, stop = code - 48, at + 9
            while true do
                at = at + 1
                code = byte(text, at)
                if code == 44 or code == 125 or code == 93 then
                    return number, at
                elseif not code or code < 48 or code > 57 or at >= stop or number == 0 then
                    return nil
                end
                number = number * 10 + code - 48
            end
        end

        local array_of, object_of

        local function value_of(text, at, depth)
            local code
            code, at = past_blanks(text, at)
            if code == 123 then -- {
                return object_of(text, at + 1, deeper(depth + 1, at + 1))
            elseif code == 91 then -- [
                return array_of(text, at + 1, deeper(depth + 1, at + 1))
            end
            local value, after
            if code == 34 then -- "
                value, after = plain_string(text, at)
            elseif code and code >= 48 and code <= 57 then
                value, after = plain_number(text, at, code)
            end
            if after then
                return value, after
            end
            local kind, place
            kind, value, after, place = token(text, at)
            if kind == "T_STRING" or kind == "T_NUMBER" or kind == "T_BOOLEAN" or kind == "T_NULL" then
                return value, after
            end
            unexpected("value", kind, value, place)
        end

        array_of = function(text, at, depth)
            local values, count = {}, 0
            if array_meta then
                setmetatable(values, ARRAY_META)
            end
            local code
            code, at = past_blanks(text, at)
            if code == 93 then -- ]
                return values, at + 1
            end
            while true do
                count = count + 1
                values[count], at = value_of(text, at, depth)
                code, at = past_blanks(text, at)
                if code == 93 then
                    return values, at + 1
                elseif code ~= 44 then -- ,
                    miss("comma or array end", text, at)
                end
                at = at + 1
            end
        end

        object_of = function(text, at, depth)
            local values = {}
            local code
            code, at = past_blanks(text, at)
            if code == 125 then -- }
                return values, at + 1
            end
            while true do
                local name, after
                if code == 34 then -- "
                    name, after = plain_string(text, at)
                end
                if not after then
                    local kind, place
                    kind, name, after, place = token(text, at)
                    if kind ~= "T_STRING" then
                        unexpected("object key string", kind, name, place)
                    end
                end
                code, at = past_blanks(text, after)
                if code ~= 58 then -- :
                    miss("colon", text, at)
                end
                values[name], at = value_of(text, at + 1, depth)
                code, at = past_blanks(text, at)
                if code == 125 then
                    return values, at + 1
                elseif code ~= 44 then
                    miss("comma or object end", text, at)
                end
                code, at = past_blanks(text, at + 1)
            end
        end

        local function decode_all(text)
            if #text > 1 and (byte(text, 1) == 0 or byte(text, 2) == 0) then
                error("JSON parser does not support UTF-16 or UTF-32", 0)
            end
            has_escapes = find(text, "\\", 1, true) or find(text, "\0", 1, true)
            local found, after = value_of(text, 1, 0)
            local kind, value, _, place = token(text, after)
            if kind ~= "T_END" then
                unexpected("the end", kind, value, place)
            end
            return found
        end

        local function decode(...)
            local text = ...
            if select("#", ...) ~= 1 then
                refuse(1, "expected 1 argument", 1)
            end
            if type(text) ~= "string" then
                if type(text) ~= "number" then
                    wrong(1, "string", text, 1)
                end
                text = tostring(text)
            end
            spend(#text)
            if #text >= LEAST and #text <= MOST and decode_depth >= LEAST_DEPTH and not array_meta
                and find(text, "^[ \t\r\n]*[{%[]") then
                local packed = guard.converted("\0j", text)
                if packed then
                    local done, found = pcall(host.decode, packed)
                    if done then
                        return found
                    end
                end
            end
            local done, found = pcall(decode_all, text)
            if not done then
                error(found, 2)
            end
            return found
        end

        -- settings ---------------------------------------------------------------------------------------------------

        local function whole(place, given, low, high)
            local number = tonumber(given)
            if not number then
                wrong(place, "number", given, place, 2)
            end
            number = as_int(number)
            if number < low or number > high then
                refuse(place, "expected integer between " .. low .. " and " .. format("%d", high), 2)
            end
            return number
        end

        local function yes_no(place, given, also)
            if type(given) == "boolean" then
                return given
            end
            for _, word in next, {"off", "on", also} do
                if given == word then
                    return word ~= "off" and (word == "on" or word)
                end
            end
            if type(given) == "number" then
                given = given .. ""
            end
            if type(given) ~= "string" then
                wrong(place, "string", given, place, 2)
            end
            refuse(place, "invalid option '" .. given:match("^%Z*") .. "'", 2)
        end

        local function at_most(count, ...)
            if select("#", ...) > count then
                refuse(count + 1, "found too many arguments", 2)
            end
            return ...
        end

        local library = {null = null, _NAME = "cjson", _VERSION = "2.1.0", encode = encode, decode = decode, new = new}
        function library.encode_sparse_array(...)
            local convert, ratio, safe = at_most(3, ...)
            if convert ~= nil then
                sparse_convert = yes_no(1, convert)
            end
            if ratio ~= nil then
                sparse_ratio = whole(2, ratio, 0, 2147483647)
            end
            if safe ~= nil then
                sparse_safe = whole(3, safe, 0, 2147483647)
            end
            return sparse_convert, sparse_ratio, sparse_safe
        end
        function library.encode_max_depth(...)
            local depth = at_most(1, ...)
            if depth ~= nil then
                encode_depth = whole(1, depth, 1, 2147483647)
            end
            return encode_depth
        end
        function library.decode_max_depth(...)
            local depth = at_most(1, ...)
            if depth ~= nil then
                decode_depth = whole(1, depth, 1, 2147483647)
            end
            return decode_depth
        end
        function library.encode_number_precision(...)
            local digits = at_most(1, ...)
            if digits ~= nil then
                precision = whole(1, digits, 1, 14)
                number_format = "%." .. precision .. "g"
            end
            return precision
        end
        function library.encode_keep_buffer(...)
            local keeps = at_most(1, ...)
            if keeps ~= nil then
                keep_buffer = yes_no(1, keeps)
            end
            return keep_buffer
        end
        function library.encode_invalid_numbers(...)
            local how = at_most(1, ...)
            if how ~= nil then
                invalid_out = yes_no(1, how, "null")
            end
            return invalid_out
        end
        function library.decode_invalid_numbers(...)
            local how = at_most(1, ...)
            if how ~= nil then
                invalid_in = yes_no(1, how)
            end
            return invalid_in
        end
        function library.decode_array_with_array_mt(...)
            local how = at_most(1, ...)
            if how ~= nil then
                array_meta = yes_no(1, how)
            end
            return array_meta
        end
        return library
    end

    return new()
end
