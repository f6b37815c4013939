-- The general commit script: validates groups of transactions, applies those that are not stale, then answers
-- reads.
--
-- A group is one or more transactions that share keys; two groups share none. Pass 1 replays each group's
-- reads and compares the replies with what the bodies read. Pass 2 writes a receipt and the effects of the
-- groups that passed. Pass 3 makes the reads that transactions still miss. Redis does not undo a script, so
-- pass 1 checks whatever could fail.
--
-- Each argument costs the server more than most of what is done with it. So every word is passed once, and a
-- program of packed numbers says how the words belong together. A key, a word or a shape in it is its place
-- in KEYS, ARGV or SHAPES.
--
-- KEYS  1..n the data keys without the HIDDEN last ones; then the lease keys of the first of them (unless MODE is 0); last the receipt
--       (unless SEQUENCE is '')
-- ARGV  KEYS n   MODE '0' writes nothing, '1' has lease keys, '2' also checks our user's ACL for each command, '3' for each command and key   SEQUENCE of this commit, or ''
--       TIME '' | 't' return the time | the client's estimate in ms (a commit without one is refused if its sequence has no
--       receipt: it may be a late copy)   PROCESS   LEASE_MS   RECEIPT_MS   ELEMENTS_MAX of a reply
--       ALLOWANCE_MS largest difference of the clocks   GROUPS   HIDDEN number of data keys that are only read and are no KEYS:
--       our user may have no right to write them   PROBE '' or a key of the engine that never exists
--       PROGRAM the groups, then the fetches   SHAPES of reads   WORDS…   the hidden keys
-- shape: command, count command or '', number of arguments, arguments
-- group: a header (GROUP_…: its length, whether to ask for leases, how many of each), then in this order:
--   text     key, word: a string that is present
--   absent   all keys, then all shapes: reads whose replies say that there is no such key
--   read     key, shape, tag, expected…
--   written  key that the group writes
--   lease    key that the group only reads and may have a lease on
--   type     key, expected type, least and greatest number or '' twice, field of the number or 0 = the string
--   log      list (with a lease key), bound, LOG_… flags, deadline or '', entry
--   deletion key
--   write    key, command, number of arguments, arguments; PEXPIREAT with more than two settles a postponed deadline,
--            SET with four has a condition: value, number after its last comma, option or '', deadline or ''
--   message  channel, payload
--   woken    log that the writes append to: its followers get a message, as those of appended logs do
-- fetches: number, then key and shape of each
--
-- Answer: { time in µs or 0, status, group answers, fetched replies }, and 1 if MODE is '3' and our user may declare keys that it may
--       not write
--   status  a STATUS_… number, or { PARTIAL, group, message }: failed after the first write
--   group   COMMITTED, { COMMITTED, conditional SETs that were not made }, LEASED to another process, NOT_BEGUN because a group before it failed; { STALE, replies };
--           { WRONG_TYPE, number of the type, type found }; { LOG_FULL, number of the log entry };
--           { NOT_BEGUN, command } our user may not run the command
--   reply   nil, integer, string, array of strings; { WRONG_TYPE, type }; { TOO_MANY, n }; { ERROR, message }

-- The numbers of the protocol. A test compares them with layout.rs.
local ARG_KEYS, ARG_MODE, ARG_SEQUENCE, ARG_TIME, ARG_PROCESS, ARG_LEASE_MS, ARG_RECEIPT_MS = 1, 2, 3, 4, 5, 6, 7
local ARG_ELEMENTS_MAX, ARG_ALLOWANCE_MS, ARG_GROUPS, ARG_HIDDEN, ARG_PROBE = 8, 9, 10, 11, 12
local ARG_PROGRAM, ARG_SHAPES, ARG_WORDS = 13, 14, 15
local GROUP_LENGTH, GROUP_ASK_LEASE, GROUP_TEXTS, GROUP_ABSENT, GROUP_READS, GROUP_WRITTEN_KEYS = 0, 1, 2, 3, 4, 5
local GROUP_TYPES, GROUP_LOG_ENTRIES, GROUP_DELETIONS, GROUP_WRITES, GROUP_MESSAGES, GROUP_LEASES = 6, 7, 8, 9, 10, 11
local GROUP_WOKEN, GROUP_BODY = 12, 13
local TAG_STRING, TAG_NIL, TAG_INTEGER, TAG_ELEMENTS, TAG_SCORE = 1, 2, 3, 4, 5
local TAG_WRONG_TYPE, TAG_TOO_MANY, TAG_ARRAY, TAG_DIGEST, TAG_JOINED = 6, 7, 8, 9, 10
local STATUS_DONE, STATUS_CLOCKS_DIFFER, STATUS_SEQUENCE_CLOSED, STATUS_PARTIAL = 0, 1, 2, 3
local ANSWER_COMMITTED, ANSWER_STALE, ANSWER_LEASED, ANSWER_WRONG_TYPE, ANSWER_LOG_FULL, ANSWER_NOT_BEGUN = 0, 1, 2, 3, 4, 5
local LOG_REFUSE, LOG_DEADLINE_IF_NONE = 1, 2
local REPLY_WRONG_TYPE, REPLY_TOO_MANY, REPLY_ERROR = 1, 2, 3
-- How many numbers one entry of a group's lists has; those of a write are followed by its arguments.
local LENGTH_TEXT, LENGTH_TYPE, LENGTH_LOG, LENGTH_WRITE, LENGTH_MESSAGE = 2, 5, 5, 3, 2
-- Keys that one command is given: Lua cannot pass any number of arguments.
local CHUNK = 1000

local A, K = ARGV, KEYS
local call, try, num = redis.call, redis.pcall, tonumber
local n, has_leases, sequence, me = num(A[ARG_KEYS]), A[ARG_MODE] ~= '0', A[ARG_SEQUENCE], A[ARG_PROCESS]
local most = num(A[ARG_ELEMENTS_MAX])
local N, S = cmsgpack.unpack(A[ARG_PROGRAM]), cmsgpack.unpack(A[ARG_SHAPES])
local estimate, hidden = A[ARG_TIME], num(A[ARG_HIDDEN])

if hidden > 0 then
  -- From here on it makes no difference which keys were declared.
  local declared, first = n - hidden, #A - hidden
  K = {}
  for i = 1, declared do K[i] = KEYS[i] end
  for i = 1, hidden do K[declared + i] = A[first + i] end
  for i = declared + 1, #KEYS do K[hidden + i] = KEYS[i] end
end

local time = 0
if estimate ~= '' then
  local t = call('TIME')
  time = num(t[1]) * 1000000 + num(t[2])
  if estimate ~= 't' and math.abs(math.floor(time / 1000) - num(estimate)) > num(A[ARG_ALLOWANCE_MS]) then
    return { time, STATUS_CLOCKS_DIFFER, {}, {} }
  end
end

-- Number of elements that a range of the list or sorted set would give.
local function span(len, name, from, to)
  if name ~= 'LRANGE' and name ~= 'ZRANGE' then return len end
  local s, e = num(from), num(to)
  if not s or not e then return 0 end
  if s < 0 then s = math.max(s + len, 0) end
  if e < 0 then e = e + len end
  return math.min(e, len - 1) - s + 1
end

-- A reply in the form in which it is returned: a wrong type by its name. Returns it, or nil and a fatal
-- error.
local function returned(key, reply)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then return nil, reply end
  return { REPLY_WRONG_TYPE, call('TYPE', key).ok }
end

-- Makes a read of a key, in the shape at position p. Returns the reply, or nil and a fatal error.
local function read(key, p)
  local name, count, args = A[S[p]], A[S[p + 1]], S[p + 2]
  if args == 0 and count == '' then return returned(key, try(name, key)) end
  local words = {}
  for i = 1, args do words[i] = A[S[p + 2 + i]] end
  if count ~= '' then
    local len = try(count, key)
    if type(len) == 'number' then
      local wide = span(len, name, words[1], words[2])
      if wide > most then return { REPLY_TOO_MANY, wide } end
    end
  end
  return returned(key, try(name, key, unpack(words)))
end

-- One text for an ordered array: lengths and elements, scores by their value.
local function canonical(reply, name)
  local parts, scored = {}, name == 'ZRANGE'
  -- Adding 0 makes a zero of -0, which is the same score.
  for i = 1, #reply do
    local x = reply[i]
    if scored and i % 2 == 0 then x = string.format('%.17g', num(x) + 0) end
    parts[i] = #x .. ':' .. x
  end
  return table.concat(parts)
end

-- One text for an ordered array whose expected elements have no zero byte: with their number it is unambiguous.
local function joined(reply, name)
  local parts, scored = {}, name == 'ZRANGE'
  for i = 1, #reply do
    parts[i] = scored and i % 2 == 0 and string.format('%.17g', num(reply[i]) + 0) or reply[i]
  end
  return table.concat(parts, '\0')
end

-- Whether an unordered reply has exactly the elements at position p (their number first).
local function same_elements(reply, name, p)
  local size = N[p]
  if type(reply) ~= 'table' or #reply ~= size or type(reply[1]) == 'number' then return false, p + 1 + size end
  local found = {}
  if name == 'HGETALL' then
    for i = 1, size, 2 do found[reply[i]] = reply[i + 1] end
    for i = 1, size, 2 do
      if found[A[N[p + i]]] ~= A[N[p + i + 1]] then return false, p + 1 + size end
    end
  else
    for i = 1, size do found[reply[i]] = true end
    for i = 1, size do
      if not found[A[N[p + i]]] then return false, p + 1 + size end
    end
  end
  return true, p + 1 + size
end

-- Compares a reply with the tag and the expectation at position p. Returns whether, and the position after.
local function same(reply, name, p)
  local tag = N[p]
  if tag == TAG_NIL then return reply == false, p + 1 end
  if tag == TAG_ELEMENTS then return same_elements(reply, name, p + 1) end
  local expected, after = A[N[p + 1]], p + 2
  if tag == TAG_STRING then return reply == expected, after end
  if tag == TAG_INTEGER then return reply == num(expected), after end
  local kind, special = type(reply), type(reply) == 'table' and type(reply[1]) == 'number'
  if tag == TAG_SCORE then return kind == 'string' and num(reply) == num(expected), after end
  if tag == TAG_WRONG_TYPE then return special and reply[1] == REPLY_WRONG_TYPE and reply[2] == expected, after end
  if tag == TAG_TOO_MANY then return special and reply[1] == REPLY_TOO_MANY and reply[2] == num(expected), after end
  if tag == TAG_JOINED then
    -- Scores of whole numbers are usually spelled as the client spells them: one call of C instead of a loop.
    if kind ~= 'table' or special or #reply ~= N[after] then return false, after + 1 end
    return table.concat(reply, '\0') == expected or joined(reply, name) == expected, after + 1
  end
  if tag == TAG_ARRAY then return kind == 'table' and not special and canonical(reply, name) == expected, after end
  -- TAG_DIGEST: of a long string or array, salted with our random name against values that were made to
  -- collide.
  local text = reply
  if kind == 'table' and not special then text = canonical(reply, name) end
  return type(text) == 'string' and redis.sha1hex(me .. text) == expected, after
end

-- Whether a reply says that there is no such key; the client chose only reads that can say so.
local function nothing(reply)
  return reply == false or reply == 0 or reply == -2 or (type(reply) == 'table' and reply[1] == nil)
end

-- The keys whose numbers stand from position p on, one in every `stride` numbers.
local function keys_at(p, count, stride)
  local keys = {}
  for i = 1, count do
    keys[i] = K[N[p]]
    p = p + stride
  end
  return keys
end

-- Whether a group's strings are unchanged and its absent keys still absent, each by one command. `false`
-- proves nothing: our user may not be allowed that command.
local function unchanged(p, texts, absent)
  for first = 0, texts - 1, CHUNK do
    local count = math.min(texts - first, CHUNK)
    local found = try('MGET', unpack(keys_at(p + LENGTH_TEXT * first, count, LENGTH_TEXT)))
    for i = 1, count do
      if found[i] ~= A[N[p + LENGTH_TEXT * (first + i) - 1]] then return false end
    end
  end
  p = p + LENGTH_TEXT * texts
  for first = 0, absent - 1, CHUNK do
    local count = math.min(absent - first, CHUNK)
    if try('EXISTS', unpack(keys_at(p + first, count, 1))) ~= 0 then return false end
  end
  return true
end

-- Makes the reads at position p one by one. Returns the replies, whether all are as expected, the position
-- after the reads, and a fatal error if any. Takes leases on the keys that changed, if the group asks for
-- them.
local function read_each(p, texts, absent, reads, asks)
  local replies, all = {}, true
  local function note(key, reply, equal)
    replies[#replies + 1], all = reply, all and equal
    if not equal and asks and has_leases then try('SET', K[n + key], me, 'NX', 'PX', A[ARG_LEASE_MS]) end
  end
  for _ = 1, texts do
    local reply, fatal = returned(K[N[p]], try('GET', K[N[p]]))
    if fatal then return nil, false, p, fatal end
    note(N[p], reply, reply == A[N[p + 1]])
    p = p + LENGTH_TEXT
  end
  for i = p, p + absent - 1 do
    local reply, fatal = read(K[N[i]], N[i + absent])
    if fatal then return nil, false, p, fatal end
    note(N[i], reply, nothing(reply))
  end
  p = p + 2 * absent
  for _ = 1, reads do
    local key, shape = N[p], N[p + 1]
    local reply, fatal = read(K[key], shape)
    if fatal then return nil, false, p, fatal end
    local equal
    equal, p = same(reply, A[S[shape]], p + 2)
    note(key, reply, equal)
  end
  return replies, all, p
end

-- The range of 64 bits.
local LEAST, GREATEST = '-9223372036854775808', '9223372036854775807'

-- Whether one integer is less than another, by their texts: a double is not exact near the limits of 64 bits.
local function less(a, b)
  local minus = string.sub(a, 1, 1) == '-'
  if minus ~= (string.sub(b, 1, 1) == '-') then return minus end
  if #a ~= #b then return (#a < #b) ~= minus end
  if minus then return a > b end
  return a < b
end

-- The type check of one key, and of the range of its number or that of a field. Returns the type that stands in
-- the way, or what a number is that would leave its range; otherwise nil.
local function obstacle(key, expected, min, max, field)
  local found = call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then return found end
  if min ~= '' then
    local v = '0'
    if found ~= 'none' then
      if field then v = call('HGET', key, field) or v else v = call('GET', key) end
    end
    if v ~= '0' and not string.match(v, '^%-?[1-9]%d*$') then return 'integer' end
    if less(v, LEAST) or less(GREATEST, v) then return 'integer' end
    if less(v, min) or less(max, v) then return 'overflow:' .. v end
  end
  return nil
end

-- Whether our user may run a command, checked once per command and only if the caller has not checked lately.
-- The server checks the declared keys before it starts a script; but a command that is refused after the first
-- write would leave the transaction half-written. In MODE 3 our user may declare keys that it may not write, so
-- each key is checked.
local allowed, of_each_key = {}, A[ARG_MODE] == '3'
local function may(name, key)
  local asked = of_each_key and name .. key or name
  if allowed[asked] == nil then allowed[asked] = redis.acl_check_cmd(name, key) end
  return allowed[asked]
end

-- The first command of a group's effects that our user may not run, or nil. Position q is that of its log
-- entries.
local function forbidden(q, logs, deletions, writes, messages)
  for _ = 1, logs do
    for _, name in ipairs({ 'RPUSH', 'LTRIM', 'PEXPIREAT' }) do
      if not may(name, K[N[q]]) then return name end
    end
    q = q + LENGTH_LOG
  end
  for i = q, q + deletions - 1 do
    if not may('DEL', K[N[i]]) then return 'DEL' end
  end
  q = q + deletions
  for _ = 1, writes do
    local name = A[N[q + 1]]
    if not may(name, K[N[q]]) then return name end
    if name == 'SET' and N[q + 2] == 4 and not may('GET', K[N[q]]) then return 'GET' end
    if name == 'PEXPIREAT' and N[q + 2] > 2 and not may('PEXPIRETIME', K[N[q]]) then return 'PEXPIRETIME' end
    q = q + LENGTH_WRITE + N[q + 2]
  end
  for _ = 1, messages do
    if not redis.acl_check_cmd('PUBLISH', A[N[q]], '') then return 'PUBLISH' end
    q = q + LENGTH_MESSAGE
  end
end

-- Compares the reads at position q with what the bodies read. Returns nil and the position after them if they
-- are equal; otherwise the answer of a stale group or a fatal error.
local function compare(q, texts, absent, reads, asks)
  if unchanged(q, texts, absent) then
    local p, equal = q + LENGTH_TEXT * texts + 2 * absent, true
    for _ = 1, reads do
      local reply, fatal = read(K[N[p]], N[p + 1])
      if fatal then return fatal end
      equal, p = same(reply, A[S[N[p + 1]]], p + 2)
      if not equal then break end
    end
    if equal then return nil, p end
  end
  local replies, all, after, fatal = read_each(q, texts, absent, reads, asks)
  if fatal then return fatal end
  if all then return nil, after end
  return { ANSWER_STALE, replies }
end

-- The number of an element that is an entry of a log. A Lua number holds 15 digits exactly.
local function entry_number(element)
  local digits = string.match(element, '^([1-9]%d*):%x%x%x%x%x%x%x%x:')
  if digits and #digits <= 15 then return num(digits) end
end

-- The number of a log's last element, 0 if there is no log, nil if it is not a list. What another program wrote there has
-- the number of its place behind the nearest entry. If no element is an entry, numbers go on from the time in 10 µs, which
-- is above all that were there.
local function last_number(key)
  local others, count = 0, 1
  while true do
    local found = try('LRANGE', key, string.format('%.0f', -others - count), string.format('%.0f', -others - 1))
    if found.err then return nil end
    if #found == 0 then break end
    for i = #found, 1, -1 do
      local number = entry_number(found[i])
      if number then return number + others + #found - i end
    end
    others, count = others + #found, 100
  end
  if others == 0 then return 0 end
  local t = call('TIME')
  return num(t[1]) * 100000 + math.floor(num(t[2]) / 10)
end

-- The logs that groups append to, by the number of their key: entries that are there, and that groups which
-- passed will add, and whether another process has the lease.
local logs_seen = {}

-- Whether a group may append its entries, which begin at position q. Returns its refusal, or nil.
local function log_refusal(q, entries)
  local own = {}
  for i = 1, entries do
    local key = N[q]
    local log = logs_seen[key]
    if not log then
      log = { length = call('LLEN', K[key]), added = 0 }
      -- An entry does not end a lease of our own: it is not the commit that the lease was granted for.
      local owner = has_leases and call('GET', K[n + key])
      log.leased = owner and owner ~= me
      logs_seen[key] = log
    end
    if log.leased then return ANSWER_LEASED end
    own[key] = (own[key] or 0) + 1
    if N[q + 2] % 2 == LOG_REFUSE and log.length + log.added + own[key] > num(A[N[q + 1]]) then
      return { ANSWER_LOG_FULL, i }
    end
    q = q + LENGTH_LOG
  end
  return nil, own
end

-- Who has the leases on the keys that have lease keys, asked for at once. Nothing writes them before pass 2 but a group
-- that asks for its own. `nil` = there are too many, or our user may GET but not MGET.
local owners
local leasable = #K - n - (sequence ~= '' and 1 or 0)
if has_leases and leasable > 1 and leasable <= CHUNK then
  owners = try('MGET', unpack(K, n + 1, n + leasable))
  if owners.err then owners = nil end
end

-- Pass 1 of one group at position p. Returns its answer, where its log entries begin, and its own leases.
local function validate(p)
  local texts, absent, reads = N[p + GROUP_TEXTS], N[p + GROUP_ABSENT], N[p + GROUP_READS]
  local stale, q = compare(p + GROUP_BODY, texts, absent, reads, N[p + GROUP_ASK_LEASE] == 1)
  if stale then return stale end
  local written, types, logs = N[p + GROUP_WRITTEN_KEYS], N[p + GROUP_TYPES], N[p + GROUP_LOG_ENTRIES]
  local mine = {}
  if has_leases and written > 0 then
    for i = q, q + written - 1 do
      local name, owner = K[n + N[i]], nil
      if owners then owner = owners[N[i]] else owner = call('GET', name) end
      if owner == me then mine[#mine + 1] = name elseif owner then return ANSWER_LEASED end
    end
  end
  q = q + written
  local leases = N[p + GROUP_LEASES]
  for i = q, has_leases and q + leases - 1 or 0 do
    if call('GET', K[n + N[i]]) == me then mine[#mine + 1] = K[n + N[i]] end
  end
  q = q + leases
  for i = 1, types do
    local found = obstacle(K[N[q]], A[N[q + 1]], A[N[q + 2]], A[N[q + 3]], A[N[q + 4]])
    if found then return { ANSWER_WRONG_TYPE, i, found } end
    q = q + LENGTH_TYPE
  end
  local entries = q
  local refusal, own = log_refusal(entries, logs)
  if refusal then return refusal end
  if A[ARG_MODE] >= '2' then
    local command = forbidden(entries, logs, N[p + GROUP_DELETIONS], N[p + GROUP_WRITES], N[p + GROUP_MESSAGES])
    if command then return { ANSWER_NOT_BEGUN, command } end
  end
  for key, count in pairs(own) do logs_seen[key].added = logs_seen[key].added + count end
  return ANSWER_COMMITTED, entries, mine
end

-- Replaces the mark of a key, set in place of a deadline that other writes followed, by that deadline. The
-- words after the first are marks and deadlines in turn; a key with none of the marks keeps what it has.
local function settle(key, words)
  local mark = try('PEXPIRETIME', key)
  if type(mark) == 'table' then return mark end
  for i = 2, #words, 2 do
    if num(words[i]) == mark then return try('PEXPIREAT', key, words[i + 1]) end
  end
end

-- The integer after the last comma of a string, or nil.
local function number_after_comma(text)
  local number = string.match(text, ',(%-?[1-9]%d*)$') or string.match(text, '^%-?[1-9]%d*$')
    or string.match(text, ',(0)$') or string.match(text, '^0$')
  if number and #number > 18 and (less(number, LEAST) or less(GREATEST, number)) then return nil end
  return number
end

-- What is stored at the keys of a group's conditional SETs that begin at position q, where they are the first write of
-- their key: by position, nil where that is not known.
local function stored_before(q, writes)
  local keys, places, last = {}, {}, nil
  for _ = 1, writes do
    if N[q + 2] == 4 and N[q] ~= last and A[N[q + 1]] == 'SET' then keys[#keys + 1], places[#places + 1] = K[N[q]], q end
    last, q = N[q], q + LENGTH_WRITE + N[q + 2]
  end
  local stored = {}
  -- One is as fast by GET.
  for first = 1, #keys > 1 and #keys or 0, CHUNK do
    local found = try('MGET', unpack(keys, first, math.min(first + CHUNK - 1, #keys)))
    -- Our user may GET but not MGET.
    if found.err then return {} end
    for i = 1, #found do stored[places[first + i - 1]] = found[i] end
  end
  return stored
end

-- Sets a string whose number is greater than that of the stored one, which is read if it is nil; a value without a
-- number is replaced, of any type. Returns false if it is not greater, otherwise what the server answered.
local function set_if_greater(key, stored, value, number, option, deadline)
  if stored == nil then stored = try('GET', key) end
  if type(stored) == 'string' then
    local found = number_after_comma(stored)
    if found then
      -- Doubles that differ have the order of their texts; equal ones may be rounded.
      local old, new = num(found), num(number)
      if old > new or (old == new and not less(found, number)) then return false end
    end
  elseif stored and string.sub(stored.err, 1, 9) ~= 'WRONGTYPE' then
    return stored
  end
  if option == '' then return try('SET', key, value) end
  if deadline == '' then return try('SET', key, value, option) end
  return try('SET', key, value, option, deadline)
end

-- Pass 2 of one group: its writes. Returns the position of its messages and how many conditional writes were not made,
-- or nil and an error if a write failed. Nothing here ends the script by an error: the caller would conclude that
-- nothing was written.
local function write(p, q)
  local not_greater = 0
  q = q + LENGTH_LOG * N[p + GROUP_LOG_ENTRIES]
  local deletions = N[p + GROUP_DELETIONS]
  for first = 0, deletions - 1, CHUNK do
    local done = try('DEL', unpack(keys_at(q + first, math.min(deletions - first, CHUNK), 1)))
    if type(done) == 'table' then return nil, done.err end
  end
  q = q + deletions
  local stored
  for left = N[p + GROUP_WRITES], 1, -1 do
    local key, name, args, done = K[N[q]], A[N[q + 1]], N[q + 2], nil
    if args == 1 then done = try(name, key, A[N[q + 3]])
    elseif args == 2 then done = try(name, key, A[N[q + 3]], A[N[q + 4]])
    elseif args == 4 and name == 'SET' then
      stored = stored or stored_before(q, left)
      done = set_if_greater(key, stored[q], A[N[q + 3]], A[N[q + 4]], A[N[q + 5]], A[N[q + 6]])
      if not done then not_greater = not_greater + 1 end
    else
      local words = {}
      for i = 1, args do words[i] = A[N[q + 2 + i]] end
      if name == 'PEXPIREAT' then done = settle(key, words) else done = try(name, key, unpack(words)) end
    end
    if type(done) == 'table' and done.err then return nil, done.err end
    q = q + LENGTH_WRITE + args
  end
  return q, not_greater
end

-- Entries of all groups, by log, and the numbers of the logs' keys in the order of their first entry.
local appends, appended = {}, {}
-- The numbers of the logs whose followers are woken, each once.
local woken, is_woken = {}, {}

local function wake(key)
  if not is_woken[key] then woken[#woken + 1], is_woken[key] = key, true end
end

-- Collects a group's log entries and sends its messages. Messages only wake, so none of them fails a commit.
local function publish(p, q, messages, group)
  for _ = 1, N[p + GROUP_LOG_ENTRIES] do
    local key = N[q]
    local log = appends[key]
    if not log then
      log = { group = group }
      appends[key], appended[#appended + 1] = log, key
    end
    log[#log + 1] = A[N[q + 4]]
    log.bound, log.deadline, log.if_none = A[N[q + 1]], A[N[q + 3]], N[q + 2] >= LOG_DEADLINE_IF_NONE
    log.refuses = N[q + 2] % 2 == LOG_REFUSE
    q = q + LENGTH_LOG
  end
  for _ = 1, N[p + GROUP_MESSAGES] do
    try('PUBLISH', A[N[messages]], A[N[messages + 1]])
    messages = messages + LENGTH_MESSAGE
  end
  for i = messages, messages + N[p + GROUP_WOKEN] - 1 do wake(N[i]) end
end

-- Appends the entries of one log. After the writes of all groups: one of them may trim the log, by what it
-- read of it. Returns an error if a write failed.
local function append(list, log)
  local number = last_number(list)
  if not number then return list .. ' is not a list' end
  for i = 1, #log do log[i] = string.format('%.0f', number + i) .. ':' .. log[i] end
  local length
  for first = 1, #log, CHUNK do
    length = try('RPUSH', list, unpack(log, first, math.min(first + CHUNK - 1, #log)))
    if type(length) ~= 'number' then return length.err end
  end
  -- A log that refuses drops nothing, whatever the writes of this call added to it.
  if length > num(log.bound) and not log.refuses then try('LTRIM', list, '-' .. log.bound, '-1') end
  if log.if_none then
    try('PEXPIREAT', list, log.deadline, 'NX')
  elseif log.deadline ~= '' then
    try('PEXPIREAT', list, log.deadline)
  end
end

local groups, answers, passed, bits = num(A[ARG_GROUPS]), {}, {}, {}
local p, any = 1, false
for g = 1, groups do
  local answer, entries, mine = validate(p)
  if type(answer) == 'table' and answer.err then return answer end
  answers[g] = answer
  bits[g] = answer == ANSWER_COMMITTED and '1' or '0'
  if answer == ANSWER_COMMITTED then
    passed[g] = { p, entries, mine }
    local effects = N[p + GROUP_LOG_ENTRIES] + N[p + GROUP_DELETIONS] + N[p + GROUP_WRITES] + N[p + GROUP_MESSAGES]
    any = any or effects > 0
  end
  p = p + N[p + GROUP_LENGTH]
end

if any and sequence ~= '' then
  local receipt = K[#K]
  local before = try('SET', receipt, sequence .. ':' .. table.concat(bits), 'PX', A[ARG_RECEIPT_MS], 'GET')
  if type(before) == 'table' and before.err then return before end
  if before == 'closed' then
    call('SET', receipt, before, 'PX', A[ARG_RECEIPT_MS])
    return { time, STATUS_SEQUENCE_CLOSED, {}, {} }
  end
  -- Without an estimate of the time, only the receipt of the commit before exposes a late copy.
  if not before and (estimate == '' or estimate == 't') then
    call('DEL', receipt)
    return { time, STATUS_SEQUENCE_CLOSED, {}, {} }
  end
end

local trouble
-- Conditional writes that were not made, by group, once there is one.
local kept
for g = 1, groups do
  local group = passed[g]
  if group and trouble then
    passed[g], answers[g] = nil, ANSWER_NOT_BEGUN
  elseif group then
    local messages, more = write(group[1], group[2])
    group[4] = messages
    if not messages then
      trouble, passed[g] = { STATUS_PARTIAL, g, more }, nil
    elseif more > 0 then
      kept = kept or {}
      answers[g], kept[g] = { ANSWER_COMMITTED, more }, more
    end
  end
end
if kept then
  for g = 1, groups do kept[g] = kept[g] or 0 end
  try('SET', K[#K], sequence .. ':' .. table.concat(bits) .. ':' .. table.concat(kept, ','), 'PX', A[ARG_RECEIPT_MS])
end
for g = 1, groups do
  local group = passed[g]
  if group then
    publish(group[1], group[2], group[4], g)
    if #group[3] > 0 then try('DEL', unpack(group[3])) end
  end
end
for _, key in ipairs(appended) do
  local failed = append(K[key], appends[key])
  if failed and not trouble then trouble = { STATUS_PARTIAL, appends[key].group, failed } end
  wake(key)
end
-- A user may lack the right to the channel: followers read the log at intervals too.
for _, key in ipairs(woken) do try('PUBLISH', K[key], '') end
if trouble then return { time, trouble, answers, {} } end

-- A replica would answer a call that writes nothing, with old data. So such a call makes a write without
-- effect (no deadline is earlier than 0), which a replica refuses. It is made to a key of the engine, because our user
-- may have no right to write the others. Any other error of that write does not concern reads. On a Cluster a replica
-- redirects every call by itself.
local probe = sequence ~= '' and K[#K] or A[ARG_PROBE]
if not any and probe ~= '' then
  local refused = try('PEXPIREAT', probe, '0', 'GT')
  if type(refused) == 'table' and string.sub(refused.err, 1, 8) == 'READONLY' then return refused end
end

local fetched, fetches = {}, N[p]
for i = 1, fetches do
  local reply, fatal = read(K[N[p + 2 * i - 1]], N[p + 2 * i])
  if fatal then fetched[i] = { REPLY_ERROR, fatal.err } else fetched[i] = reply end
end
-- A user who may write every key that it may declare may also write the probe.
local restricted = of_each_key and not redis.acl_check_cmd('SET', A[ARG_PROBE], '')
return { time, STATUS_DONE, answers, fetched, restricted and 1 or nil }
