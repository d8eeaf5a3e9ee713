-- The library struct: binary data, as Redis's scripts know it.
return function(host, shared, guard)
    local wrong, refuse = guard.wrong, guard.refuse
    local error, type, select, tonumber = error, type, select, tonumber
    local byte, char, find, rep, sub, concat = string.byte, string.char, string.find, string.rep, string.sub, table.concat
    local pack_integer, unpack_whole = host.pack_whole, host.unpack_whole
    local pack_float, unpack_float = host.pack_float, host.unpack_float
    local SIZES = {b = 1, B = 1, h = 2, H = 2, l = 8, L = 8, T = 8, f = 4, d = 8, x = 1}
    local NATURAL = 8 -- the largest alignment that `!` asks for

    -- Walk a format; `each` gets the option, its size and the bytes of padding before it. length: of the text that is
    -- unpacked; whatever comes behind its end is refused.
    local function walk(name, layout, total, each, length)
        local at, little, most = 1, true, 1
        guard.spend(10 * #layout)
        while at <= #layout do
            local option = sub(layout, at, at)
            at = at + 1
            local size, aligned = SIZES[option] or 0, SIZES[option] or 0
            local function digits(default)
                local _, stop = find(layout, "^%d+", at)
                if not stop then
                    return default
                end
                local number = tonumber(sub(layout, at, stop))
                at = stop + 1
                if number > 2147483647 then
                    error("integral size overflow", 4)
                end
                return number
            end
            if option == "i" or option == "I" then
                size = digits(4)
                aligned = size
                if size > 32 then
                    error("integral size " .. size .. " is larger than limit of 32", 3)
                end
            elseif option == "c" then
                size, aligned = digits(1), 0
            elseif option == "x" or option == "s" then
                aligned = 0
            end
            if length and total > length then
                refuse(2, "data string too short", 2)
            elseif option == " " then
                size = 0
            elseif option == "<" or option == ">" then
                little = option == "<"
            elseif option == "!" then
                most = digits(NATURAL)
                local power = most
                while power > 1 and power % 2 == 0 do
                    power = power / 2
                end
                if power ~= 1 then
                    error("alignment " .. most .. " is not a power of 2", 3)
                end
            elseif find("bBhHlLTfdxsciI", option, 1, true) then
                local padding = 0
                if aligned > 1 and most > 1 then
                    local to = aligned < most and aligned or most
                    padding = (to - total % to) % to
                end
                total = each(option, size, padding, little, total)
            elseif name ~= "size" or not find(option, "^%w") then
                refuse(1, "invalid format option '" .. option .. "'", 2)
            end
        end
        return total
    end

    local function format_of(count, layout)
        if type(layout) == "number" then
            return layout .. ""
        elseif type(layout) ~= "string" then
            wrong(1, "string", layout, count, 2)
        end
        return layout
    end

    return {
        pack = function(...)
            local layout = format_of(select("#", ...), (...))
            local given, place, out = {...}, 1, {}
            local function number()
                place = place + 1
                local value = given[place]
                local found = (type(value) == "number" or type(value) == "string") and tonumber(value)
                if not found then
                    wrong(place, "number", value, place, 4)
                end
                return found
            end
            local function step(option, size, padding, little, total)
                out[#out + 1] = rep("\0", padding)
                total = total + padding
                if option == "x" then
                    out[#out + 1] = "\0"
                elseif option == "f" or option == "d" then
                    out[#out + 1] = pack_float(number(), size, little)
                elseif option == "s" or option == "c" then
                    place = place + 1
                    local text = given[place]
                    if type(text) == "number" then
                        text = text .. ""
                    elseif type(text) ~= "string" then
                        wrong(place, "string", text, place, 3)
                    end
                    if option == "c" and size == 0 or option == "s" then
                        size = #text
                    end
                    if #text < size then
                        refuse(place + 1, "string too short", 3)
                    end
                    out[#out + 1] = sub(text, 1, size)
                    if option == "s" then
                        out[#out + 1] = "\0"
                        size = size + 1
                    end
                else
                    out[#out + 1] = pack_integer(number(), size, little)
                end
                return total + size
            end
            walk("pack", layout, 0, step)
            local made = concat(out)
            return made
        end,
        unpack = function(...)
            local layout, text, from = ...
            layout = format_of(select("#", ...), layout)
            if type(text) == "number" then
                text = text .. ""
            elseif type(text) ~= "string" then
                wrong(2, "string", text, select("#", ...))
            end
            from = from == nil and 1 or tonumber(from)
            if not from then
                wrong(3, "number", (select(3, ...)), 3)
            end
            if from < 0 or from ~= from then
                refuse(2, "data string too short", 1)
            elseif from < 1 then
                refuse(3, "offset must be 1 or greater", 1)
            end
            local values, count = {}, 0
            local last
            local function step(option, size, padding, little, total)
                total = total + padding
                if total + size > #text then
                    refuse(2, "data string too short", 3)
                end
                local value
                if option == "x" then
                    return total + 1
                elseif option == "f" or option == "d" then
                    value = unpack_float(sub(text, total + 1, total + size), little)
                elseif option == "c" then
                    if size == 0 then
                        if type(values[count]) ~= "number" then
                            error("format 'c0' needs a previous size", 4)
                        end
                        size = values[count]
                        count = count - 1
                        if size < 0 or total + size > #text then
                            refuse(2, "data string too short", 3)
                        end
                    end
                    value = sub(text, total + 1, total + size)
                elseif option == "s" then
                    local stop = find(text, "%z", total + 1)
                    if not stop then
                        error("unfinished string in data", 4)
                    end
                    value = sub(text, total + 1, stop - 1)
                    size = #value + 1
                else
                    value = unpack_whole(sub(text, total + 1, total + size), little, find(option, "%l") ~= nil)
                end
                count = count + 1
                values[count] = value
                return total + size
            end
            last = walk("unpack", layout, from - 1, step, #text)
            values[count + 1] = last + 1
            return unpack(values, 1, count + 1)
        end,
        size = function(...)
            local layout = format_of(select("#", ...), (...))
            local total = walk("size", layout, 0, function(option, size, padding, _, total)
                if option == "s" then
                    refuse(1, "option 's' has no fixed size", 3)
                elseif option == "c" and size == 0 then
                    refuse(1, "option 'c0' has no fixed size", 3)
                end
                return total + padding + size
            end)
            return total
        end,
    }
end
