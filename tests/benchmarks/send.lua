-- Sends the lines of a file as JSON bodies, one a request, from the first to the last.
local bodies, sent = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    bodies[#bodies + 1] = line
  end
end

function request()
  sent = sent % #bodies + 1
  return wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, bodies[sent])
end
