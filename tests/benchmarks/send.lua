-- Sends the lines of a file, one a request, from the first to the last: method, path, JSON body.
local requests, sent = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, body = line:match("(%S+) (%S+) (.+)")
    local headers = { ["Content-Type"] = "application/json" }
    requests[#requests + 1] = wrk.format(method, path, headers, body)
  end
end

function request()
  sent = sent % #requests + 1
  return requests[sent]
end
