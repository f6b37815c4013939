-- The one commit script: validates groups of steps, applies those that are not stale, then answers fetches.
--
-- A group is one or more steps that share keys; groups share none. Pass 1 replays each group's reads and compares
-- the replies with what the bodies saw; pass 2 writes a receipt and the effects of the groups that passed; pass 3
-- reads what steps still miss. Redis does not undo a script, so everything that could fail is checked in pass 1.
--
-- KEYS  1..n the data keys, n+1..2n the turn keys beside them (if ARGV[2] is not 0), last the receipt (if ARGV[3] is not empty)
-- ARGV  1 n   2 '1' turn keys declared, '2' also check our user's rights   3 sequence of this commit, or ''   4 '' | 't' tell the time | the client's estimate in ms
--       5 process   6 turn ms   7 receipt ms   8 most elements of a reply   9 largest difference of clocks in ms
--       10 number of groups   11.. groups, then the fetches
-- group: words to the next group, ask for the turn, then the numbers of reads, turns, types, log entries, writes, messages
--   read     key, command, count command or '', number of arguments, arguments, tag, expected…
--   turn     key that the group writes
--   type     key, expected type, least and greatest number or '' twice
--   log      list, counter, bound, refuse when full, entry
--   write    key, command, number of arguments, arguments
--   message  channel, payload
-- fetches: number, reads without a tag
--
-- Answer: { time or 0, status, group answers, fetched replies }
--   status  0 done   1 clocks differ   2 lane closed   { 3, group, message } failed after the first write
--   group   0 committed   { 1, replies } stale   2 somebody else's turn   { 3, key, type found } wrong type   4 log full   5 not begun, because one before it failed
--           { 5, command } our user may not run it
--   reply   nil, integer, string, array of strings; { 1, type } wrong type; { 2, n } too many elements
local A, K = ARGV, KEYS
local call, try, num = redis.call, redis.pcall, tonumber
local n, has_turns, sequence, me = num(A[1]), A[2] ~= '0', A[3], A[5]
local most = num(A[8])

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

-- Makes the read at position p. Returns the reply, the position after the arguments, and a fatal error if any.
local function ask(p)
  local key, name, count, args = K[num(A[p])], A[p + 1], A[p + 2], num(A[p + 3])
  local after = p + 4 + args
  if count ~= '' then
    local len = try(count, key)
    if type(len) == 'number' then
      local wide = span(len, name, A[p + 4], A[p + 5])
      if wide > most then return { 2, wide }, after end
    end
  end
  local reply
  if args == 0 then reply = try(name, key) else reply = try(name, key, unpack(A, p + 4, after - 1)) end
  if type(reply) == 'table' and reply.err then
    if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then return nil, after, reply end
    return { 1, call('TYPE', key).ok }, after
  end
  return reply, after
end

-- One text for an ordered array: lengths and elements, scores by their value.
local function canonical(reply, name)
  local parts, scored = {}, name == 'ZRANGE'
  for i = 1, #reply do
    local x = reply[i]
    if scored and i % 2 == 0 then x = string.format('%.17g', num(x)) end
    parts[i] = #x .. ':' .. x
  end
  return table.concat(parts)
end

-- Whether an unordered reply has exactly the elements at position p (their number first).
local function same_elements(reply, name, p)
  local size = num(A[p])
  if type(reply) ~= 'table' or #reply ~= size or type(reply[1]) == 'number' then return false, p + 1 + size end
  local seen = {}
  if name == 'HGETALL' then
    for i = 1, size, 2 do seen[reply[i]] = reply[i + 1] end
    for i = 1, size, 2 do
      if seen[A[p + i]] ~= A[p + i + 1] then return false, p + 1 + size end
    end
  else
    for i = 1, size do seen[reply[i]] = true end
    for i = 1, size do
      if not seen[A[p + i]] then return false, p + 1 + size end
    end
  end
  return true, p + 1 + size
end

-- Compares a reply with the tag and the expectation at position p. Returns whether, and the position after.
local function same(reply, name, p)
  local tag = A[p]
  if tag == 's' then return reply == A[p + 1], p + 2 end
  if tag == 'n' then return reply == false, p + 1 end
  if tag == 'i' then return reply == num(A[p + 1]), p + 2 end
  if tag == 'u' then return same_elements(reply, name, p + 1) end
  local kind, special = type(reply), type(reply) == 'table' and type(reply[1]) == 'number'
  if tag == 'z' then return kind == 'string' and num(reply) == num(A[p + 1]), p + 2 end
  if tag == 'w' then return special and reply[1] == 1 and reply[2] == A[p + 1], p + 2 end
  if tag == 't' then return special and reply[1] == 2 and reply[2] == num(A[p + 1]), p + 2 end
  if tag == 'a' then return kind == 'table' and not special and canonical(reply, name) == A[p + 1], p + 2 end
  -- 'd': the digest of a long string or array
  local text = reply
  if kind == 'table' and not special then text = canonical(reply, name) end
  return type(text) == 'string' and redis.sha1hex(text) == A[p + 1], p + 2
end

-- All replies of a stale group; asks for the turn on the keys that changed, if the steps have waited long enough.
local function fresh(p, reads, asks)
  local replies = {}
  for i = 1, reads do
    local key, name = num(A[p]), A[p + 1]
    local reply, q, fatal = ask(p)
    if fatal then return nil, fatal end
    local equal
    equal, p = same(reply, name, q)
    if not equal and asks and has_turns then try('SET', K[n + key], me, 'NX', 'PX', A[6]) end
    replies[i] = reply
  end
  return replies
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
-- started the script; but a command that is refused after the first write would leave the step half-written.
local rights = {}
local function may(name, key)
  if rights[name] == nil then rights[name] = redis.acl_check_cmd(name, key) end
  return rights[name]
end

-- The first command of a group's effects that our user may not run, or nil. Position q is that of its log entries.
local function forbidden(q, logs, writes, messages)
  if logs > 0 then
    local list, counter = K[num(A[q])], K[num(A[q + 1])]
    if not (may('INCR', counter) and may('RPUSH', list) and may('LTRIM', list)) then return 'RPUSH' end
    q = q + 5 * logs
  end
  for _ = 1, writes do
    if not may(A[q + 1], K[num(A[q])]) then return A[q + 1] end
    q = q + 3 + num(A[q + 2])
  end
  for _ = 1, messages do
    if not redis.acl_check_cmd('PUBLISH', A[q], '') then return 'PUBLISH' end
    q = q + 2
  end
end

-- Entries that groups before will add to the log: all groups are of one partition and share it.
local logged = 0

-- Pass 1 of one group at position p: its answer, and where its log entries begin.
local function validate(p)
  local asks = A[p + 1] == '1'
  local reads, turns, types, logs = num(A[p + 2]), num(A[p + 3]), num(A[p + 4]), num(A[p + 5])
  local first = p + 8
  local q = first
  for _ = 1, reads do
    local name = A[q + 1]
    local reply, after, fatal = ask(q)
    if fatal then return fatal end
    local equal
    equal, q = same(reply, name, after)
    if not equal then
      local replies, err = fresh(first, reads, asks)
      if err then return err end
      return { 1, replies }
    end
  end
  local mine = {}
  if has_turns and turns > 0 then
    local names = {}
    for i = 1, turns do names[i] = K[n + num(A[q + i - 1])] end
    local holders = turns > 1 and redis.pcall('MGET', unpack(names)) or { call('GET', names[1]) }
    -- Our user may GET, but perhaps not MGET.
    if holders.err then for i = 1, turns do holders[i] = call('GET', names[i]) end end
    for i = 1, turns do
      if holders[i] == me then mine[#mine + 1] = names[i] elseif holders[i] then return 2 end
    end
  end
  q = q + turns
  for _ = 1, types do
    local found = obstacle(K[num(A[q])], A[q + 1], A[q + 2], A[q + 3])
    if found then return { 3, num(A[q]), found } end
    q = q + 4
  end
  local entries = q
  for i = 1, logs do
    if A[q + 3] == '1' and call('LLEN', K[num(A[q])]) + logged + i > num(A[q + 2]) then return 4 end
    q = q + 5
  end
  local command = A[2] == '2' and forbidden(entries, logs, num(A[p + 6]), num(A[p + 7]))
  if command then return { 5, command } end
  logged = logged + logs
  return 0, entries, mine
end

-- Pass 2 of one group: its writes. Returns the position of its messages, or an error if a write failed. Nothing here
-- ends the script by an error: its caller would believe that nothing was written.
local function write(p, q)
  q = q + 5 * num(A[p + 5])
  for _ = 1, num(A[p + 6]) do
    local args = num(A[q + 2])
    local after = q + 3 + args
    local done
    if args == 0 then done = try(A[q + 1], K[num(A[q])])
    elseif args == 1 then done = try(A[q + 1], K[num(A[q])], A[q + 3])
    else done = try(A[q + 1], K[num(A[q])], unpack(A, q + 3, after - 1)) end
    if type(done) == 'table' and done.err then return nil, done.err end
    q = after
  end
  return q
end

-- Then its log entries and messages. After the writes of all groups: one of them may trim the log, by what it saw.
local function tell(p, q, messages)
  for _ = 1, num(A[p + 5]) do
    local s = try('INCR', K[num(A[q + 1])])
    if type(s) ~= 'number' then return s.err end
    local length = try('RPUSH', K[num(A[q])], string.format('%.0f', s) .. ':' .. A[q + 4])
    if type(length) ~= 'number' then return length.err end
    if length > num(A[q + 2]) then try('LTRIM', K[num(A[q])], '-' .. A[q + 2], '-1') end
    q = q + 5
  end
  for _ = 1, num(A[p + 7]) do
    try('PUBLISH', A[messages], A[messages + 1])
    messages = messages + 2
  end
end

local groups, answers, passed, bits = num(A[10]), {}, {}, {}
local p, any = 11, false
for g = 1, groups do
  local answer, entries, mine = validate(p)
  if type(answer) == 'table' and answer.err then return answer end
  answers[g] = answer
  bits[g] = answer == 0 and '1' or '0'
  if answer == 0 then
    passed[g] = { p, entries, mine }
    any = any or num(A[p + 5]) + num(A[p + 6]) + num(A[p + 7]) > 0
  end
  p = p + num(A[p])
end

if any and sequence ~= '' then
  local receipt = K[#K]
  local before = try('SET', receipt, sequence .. ':' .. table.concat(bits), 'PX', A[7], 'GET')
  if type(before) == 'table' and before.err then return before end
  if before == 'closed' then
    call('SET', receipt, before, 'PX', A[7])
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

local fetched, fetches = {}, num(A[p])
p = p + 1
for i = 1, fetches do
  local reply, after, fatal = ask(p)
  if fatal then fetched[i] = { 3, fatal.err } else fetched[i] = reply end
  p = after
end
return { time, 0, answers, fetched }
