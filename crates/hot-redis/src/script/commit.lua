-- The one commit script: validates groups of transactions, applies those that are not stale, then answers fetches.
--
-- A group is one or more transactions that share keys; groups share none. Pass 1 replays each group's reads and compares
-- the replies with what the bodies saw; pass 2 writes a receipt and the effects of the groups that passed; pass 3
-- reads what transactions still miss. Redis does not undo a script, so everything that could fail is checked in pass 1.
--
-- Every argument costs the server more than what is done with most of them. So words are passed once each, and how they
-- belong together stands in the program: numbers, packed. A key, a word or a shape in it is the place where that stands
-- in KEYS, ARGV or the shapes.
--
-- KEYS  1..n the data keys, then turn keys beside the first of them (if ARGV[2] is not 0), last the receipt (if ARGV[3] is not empty)
-- ARGV  1 n   2 '1' turn keys declared, '2' also check our user's rights   3 sequence of this commit, or ''   4 '' | 't' tell the time | the client's estimate in ms
--         (a commit without an estimate is refused if its lane has no receipt: it may be a late copy)
--       5 process   6 turn ms   7 receipt ms   8 most elements of a reply   9 largest difference of clocks in ms
--       10 number of groups   11 the program: groups, then the fetches   12 the shapes of reads   13.. words
-- shape: command, count command or '', number of arguments, arguments
-- group: numbers to the next group, ask for the turn, then how many of each:
--   text     key, word: a string that is there
--   absent   all keys, then all shapes: reads whose replies say that there is no such key
--   read     key, shape, tag, expected…
--   turn     key that the group writes
--   lease    key that the group only reads and may have a lease on
--   type     key, expected type, least and greatest number or '' twice
--   log      list, counter, bound, 1 = refuse when full, entry
--   deletion key
--   write    key, command, number of arguments, arguments
--   message  channel, payload
--   (the number of leases stands behind that of messages)
-- fetches: number, then key and shape of each
--
-- Answer: { time or 0, status, group answers, fetched replies }
--   status  0 done   1 clocks differ   2 lane closed, or its receipt has ended   { 3, group, message } failed after the first write
--   group   0 committed   { 1, replies } stale   2 somebody else's turn   { 3, key, type found } wrong type   4 log full   5 not begun, because one before it failed
--           { 5, command } our user may not run it
--   reply   nil, integer, string, array of strings; { 1, type } wrong type; { 2, n } too many elements
local A, K = ARGV, KEYS
local call, try, num = redis.call, redis.pcall, tonumber
local n, has_turns, sequence, me = num(A[1]), A[2] ~= '0', A[3], A[5]
local most = num(A[8])
local N, S = cmsgpack.unpack(A[11]), cmsgpack.unpack(A[12])
-- Keys that one command is given: Lua cannot pass any number of arguments.
local together = 1000
-- What a read is expected to give.
local STRING, NIL, INTEGER, ELEMENTS, SCORE, WRONG, MANY, ARRAY = 1, 2, 3, 4, 5, 6, 7, 8

local time = 0
if A[4] ~= '' then
  local t = call('TIME')
  time = num(t[1]) * 1000 + math.floor(num(t[2]) / 1000)
  if A[4] ~= 't' and math.abs(time - num(A[4])) > num(A[9]) then return { time, 1, {}, {} } end
end

-- Elements that a range of the list or sorted set would give.
local function span(len, name, from, to)
  if name ~= 'LRANGE' and name ~= 'ZRANGE' then return len end
  local s, e = num(from), num(to)
  if not s or not e then return 0 end
  if s < 0 then s = math.max(s + len, 0) end
  if e < 0 then e = e + len end
  return math.min(e, len - 1) - s + 1
end

-- A reply as it is told: of another type by its name. Returns it, or nothing and a fatal error.
local function told(key, reply)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then return nil, reply end
  return { 1, call('TYPE', key).ok }
end

-- Makes a read of a key, in the shape at position p. Returns the reply, or nothing and a fatal error.
local function ask(key, p)
  local name, count, args = A[S[p]], A[S[p + 1]], S[p + 2]
  if args == 0 and count == '' then return told(key, try(name, key)) end
  local words = {}
  for i = 1, args do words[i] = A[S[p + 2 + i]] end
  if count ~= '' then
    local len = try(count, key)
    if type(len) == 'number' then
      local wide = span(len, name, words[1], words[2])
      if wide > most then return { 2, wide } end
    end
  end
  return told(key, try(name, key, unpack(words)))
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

-- Whether an unordered reply has exactly the elements at position p (their number first).
local function same_elements(reply, name, p)
  local size = N[p]
  if type(reply) ~= 'table' or #reply ~= size or type(reply[1]) == 'number' then return false, p + 1 + size end
  local seen = {}
  if name == 'HGETALL' then
    for i = 1, size, 2 do seen[reply[i]] = reply[i + 1] end
    for i = 1, size, 2 do
      if seen[A[N[p + i]]] ~= A[N[p + i + 1]] then return false, p + 1 + size end
    end
  else
    for i = 1, size do seen[reply[i]] = true end
    for i = 1, size do
      if not seen[A[N[p + i]]] then return false, p + 1 + size end
    end
  end
  return true, p + 1 + size
end

-- Compares a reply with the tag and the expectation at position p. Returns whether, and the position after.
local function same(reply, name, p)
  local tag = N[p]
  if tag == NIL then return reply == false, p + 1 end
  if tag == ELEMENTS then return same_elements(reply, name, p + 1) end
  local expected, after = A[N[p + 1]], p + 2
  if tag == STRING then return reply == expected, after end
  if tag == INTEGER then return reply == num(expected), after end
  local kind, special = type(reply), type(reply) == 'table' and type(reply[1]) == 'number'
  if tag == SCORE then return kind == 'string' and num(reply) == num(expected), after end
  if tag == WRONG then return special and reply[1] == 1 and reply[2] == expected, after end
  if tag == MANY then return special and reply[1] == 2 and reply[2] == num(expected), after end
  if tag == ARRAY then return kind == 'table' and not special and canonical(reply, name) == expected, after end
  -- The digest of a long string or array, behind our name: values that were made to have equal digests do not have them.
  local text = reply
  if kind == 'table' and not special then text = canonical(reply, name) end
  return type(text) == 'string' and redis.sha1hex(me .. text) == expected, after
end

-- Whether a reply says that there is no such key; the client chose only reads that can say so.
local function nothing(reply)
  return reply == false or reply == 0 or reply == -2 or (type(reply) == 'table' and reply[1] == nil)
end

-- The keys whose numbers stand from position p on, one in every `transaction` numbers.
local function keys_at(p, count, transaction)
  local keys = {}
  for i = 1, count do
    keys[i] = K[N[p]]
    p = p + transaction
  end
  return keys
end

-- Whether the strings and the absent keys of a group are what they were, each sort by one command. No proves nothing:
-- our user may not be allowed that command.
local function unchanged(p, texts, absent)
  for first = 0, texts - 1, together do
    local count = math.min(texts - first, together)
    local found = try('MGET', unpack(keys_at(p + 2 * first, count, 2)))
    for i = 1, count do
      if found[i] ~= A[N[p + 2 * (first + i) - 1]] then return false end
    end
  end
  p = p + 2 * texts
  for first = 0, absent - 1, together do
    local count = math.min(absent - first, together)
    if try('EXISTS', unpack(keys_at(p + first, count, 1))) ~= 0 then return false end
  end
  return true
end

-- All replies to the reads at position p, one by one. Returns them, whether all are the expected ones, the position after
-- them, and a fatal error if any. Asks for the turn on the keys that changed, if the transactions have waited long enough.
local function look(p, texts, absent, reads, asks)
  local replies, all = {}, true
  local function note(key, reply, equal)
    replies[#replies + 1], all = reply, all and equal
    if not equal and asks and has_turns then try('SET', K[n + key], me, 'NX', 'PX', A[6]) end
  end
  for _ = 1, texts do
    local reply, fatal = told(K[N[p]], try('GET', K[N[p]]))
    if fatal then return nil, false, p, fatal end
    note(N[p], reply, reply == A[N[p + 1]])
    p = p + 2
  end
  for i = p, p + absent - 1 do
    local reply, fatal = ask(K[N[i]], N[i + absent])
    if fatal then return nil, false, p, fatal end
    note(N[i], reply, nothing(reply))
  end
  p = p + 2 * absent
  for _ = 1, reads do
    local key, shape = N[p], N[p + 1]
    local reply, fatal = ask(K[key], shape)
    if fatal then return nil, false, p, fatal end
    local equal
    equal, p = same(reply, A[S[shape]], p + 2)
    note(key, reply, equal)
  end
  return replies, all, p
end

-- Whether one integer is less than another, by their texts: a double is not exact near the limits of 64 bits.
local function less(a, b)
  local minus = string.sub(a, 1, 1) == '-'
  if minus ~= (string.sub(b, 1, 1) == '-') then return minus end
  if #a ~= #b then return (#a < #b) ~= minus end
  if minus then return a > b end
  return a < b
end

-- The type check of one key, and of the range of its number. Returns the type that stands in the way, or nil.
local function obstacle(key, expected, min, max)
  local found = call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then return found end
  if min ~= '' then
    local v = '0'
    if found ~= 'none' then v = call('GET', key) end
    if v ~= '0' and not string.match(v, '^%-?[1-9]%d*$') then return 'integer' end
    if less(v, min) or less(max, v) then return 'integer' end
  end
  return nil
end

-- Whether our user may run a command, asked once per command, if the caller has not asked lately. The server itself has checked the keys before it
-- started the script; but a command that is refused after the first write would leave the transaction half-written.
local rights = {}
local function may(name, key)
  if rights[name] == nil then rights[name] = redis.acl_check_cmd(name, key) end
  return rights[name]
end

-- The first command of a group's effects that our user may not run, or nil. Position q is that of its log entries.
local function forbidden(q, logs, deletions, writes, messages)
  if logs > 0 then
    local list, counter = K[N[q]], K[N[q + 1]]
    if not (may('INCR', counter) and may('RPUSH', list) and may('LTRIM', list)) then return 'RPUSH' end
    q = q + 5 * logs
  end
  if deletions > 0 and not may('DEL', K[N[q]]) then return 'DEL' end
  q = q + deletions
  for _ = 1, writes do
    local name = A[N[q + 1]]
    if not may(name, K[N[q]]) then return name end
    q = q + 3 + N[q + 2]
  end
  for _ = 1, messages do
    if not redis.acl_check_cmd('PUBLISH', A[N[q]], '') then return 'PUBLISH' end
    q = q + 2
  end
end

-- Whether the reads at position q give what the bodies saw: returns nothing and where they end; the answer of a stale group;
-- or a fatal error.
local function compare(q, texts, absent, reads, asks)
  if unchanged(q, texts, absent) then
    local p, equal = q + 2 * (texts + absent), true
    for _ = 1, reads do
      local reply, fatal = ask(K[N[p]], N[p + 1])
      if fatal then return fatal end
      equal, p = same(reply, A[S[N[p + 1]]], p + 2)
      if not equal then break end
    end
    if equal then return nil, p end
  end
  local replies, all, after, fatal = look(q, texts, absent, reads, asks)
  if fatal then return fatal end
  if all then return nil, after end
  return { 1, replies }
end

-- Entries that groups before will add to the log: all groups are of one partition and share it.
local logged = 0

-- Pass 1 of one group at position p: its answer, and where its log entries begin.
local function validate(p)
  local stale, q = compare(p + 12, N[p + 2], N[p + 3], N[p + 4], N[p + 1] == 1)
  if stale then return stale end
  local turns, types, logs = N[p + 5], N[p + 6], N[p + 7]
  local mine = {}
  if has_turns and turns > 0 then
    local names = {}
    for i = 1, turns do names[i] = K[n + N[q + i - 1]] end
    local holders = turns > 1 and turns <= together and try('MGET', unpack(names)) or { err = true }
    -- One, too many, or our user may GET but not MGET.
    if holders.err then for i = 1, turns do holders[i] = call('GET', names[i]) end end
    for i = 1, turns do
      if holders[i] == me then mine[#mine + 1] = names[i] elseif holders[i] then return 2 end
    end
  end
  q = q + turns
  for i = q, has_turns and q + N[p + 11] - 1 or 0 do
    if call('GET', K[n + N[i]]) == me then mine[#mine + 1] = K[n + N[i]] end
  end
  q = q + N[p + 11]
  for _ = 1, types do
    local found = obstacle(K[N[q]], A[N[q + 1]], A[N[q + 2]], A[N[q + 3]])
    if found then return { 3, N[q], found } end
    q = q + 4
  end
  local entries = q
  for i = 1, logs do
    if N[q + 3] == 1 and call('LLEN', K[N[q]]) + logged + i > num(A[N[q + 2]]) then return 4 end
    q = q + 5
  end
  local command = A[2] == '2' and forbidden(entries, logs, N[p + 8], N[p + 9], N[p + 10])
  if command then return { 5, command } end
  logged = logged + logs
  return 0, entries, mine
end

-- Pass 2 of one group: its writes. Returns the position of its messages, or an error if a write failed. Nothing here
-- ends the script by an error: its caller would believe that nothing was written.
local function write(p, q)
  q = q + 5 * N[p + 7]
  local deletions = N[p + 8]
  for first = 0, deletions - 1, together do
    local done = try('DEL', unpack(keys_at(q + first, math.min(deletions - first, together), 1)))
    if type(done) == 'table' then return nil, done.err end
  end
  q = q + deletions
  for _ = 1, N[p + 9] do
    local key, name, args, done = K[N[q]], A[N[q + 1]], N[q + 2], nil
    if args == 1 then done = try(name, key, A[N[q + 3]])
    elseif args == 2 then done = try(name, key, A[N[q + 3]], A[N[q + 4]])
    else
      local words = {}
      for i = 1, args do words[i] = A[N[q + 2 + i]] end
      done = try(name, key, unpack(words))
    end
    if type(done) == 'table' and done.err then return nil, done.err end
    q = q + 3 + args
  end
  return q
end

-- Then its log entries and messages. After the writes of all groups: one of them may trim the log, by what it saw.
local function tell(p, q, messages)
  for _ = 1, N[p + 7] do
    local list, bound = K[N[q]], A[N[q + 2]]
    local s = try('INCR', K[N[q + 1]])
    if type(s) ~= 'number' then return s.err end
    local length = try('RPUSH', list, string.format('%.0f', s) .. ':' .. A[N[q + 4]])
    if type(length) ~= 'number' then return length.err end
    if length > num(bound) then try('LTRIM', list, '-' .. bound, '-1') end
    q = q + 5
  end
  for _ = 1, N[p + 10] do
    try('PUBLISH', A[N[messages]], A[N[messages + 1]])
    messages = messages + 2
  end
end

local groups, answers, passed, bits = num(A[10]), {}, {}, {}
local p, any = 1, false
for g = 1, groups do
  local answer, entries, mine = validate(p)
  if type(answer) == 'table' and answer.err then return answer end
  answers[g] = answer
  bits[g] = answer == 0 and '1' or '0'
  if answer == 0 then
    passed[g] = { p, entries, mine }
    any = any or N[p + 7] + N[p + 8] + N[p + 9] + N[p + 10] > 0
  end
  p = p + N[p]
end

if any and sequence ~= '' then
  local receipt = K[#K]
  local before = try('SET', receipt, sequence .. ':' .. table.concat(bits), 'PX', A[7], 'GET')
  if type(before) == 'table' and before.err then return before end
  if before == 'closed' then
    call('SET', receipt, before, 'PX', A[7])
    return { time, 2, {}, {} }
  end
  -- Without an estimate of the time only the receipt of the commit before tells a late copy.
  if not before and (A[4] == '' or A[4] == 't') then
    call('DEL', receipt)
    return { time, 2, {}, {} }
  end
end

local trouble
for g = 1, groups do
  local group = passed[g]
  if group and trouble then
    passed[g], answers[g] = nil, 5
  elseif group then
    local messages, failed = write(group[1], group[2])
    group[4] = messages
    if failed then trouble, passed[g] = { 3, g, failed }, nil end
  end
end
for g = 1, groups do
  local group = passed[g]
  if group then
    local failed = tell(group[1], group[2], group[4])
    if failed and not trouble then trouble = { 3, g, failed } end
    if #group[3] > 0 then try('DEL', unpack(group[3])) end
  end
end
if trouble then return { time, trouble, answers, {} } end

-- A replica would answer a call that writes nothing, with what was true some time ago. A write without effect (no
-- deadline is earlier than 0) tells: a replica refuses it. Whatever else stands in its way does not concern reads.
if not any and #K > 0 then
  local refused = try('PEXPIREAT', K[1], '0', 'GT')
  if type(refused) == 'table' and string.sub(refused.err, 1, 8) == 'READONLY' then return refused end
end

local fetched, fetches = {}, N[p]
for i = 1, fetches do
  local reply, fatal = ask(K[N[p + 2 * i - 1]], N[p + 2 * i])
  if fatal then fetched[i] = { 3, fatal.err } else fetched[i] = reply end
end
return { time, 0, answers, fetched }
