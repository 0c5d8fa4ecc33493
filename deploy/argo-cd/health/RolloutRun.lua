-- Health of a RolloutRun: its outcome.
local run = obj.spec
if run.outcome == "running" then
  return { status = "Progressing", message = run.waiting and run.waiting.fact or "the run is running" }
end
if run.outcome == "failed" then
  return { status = "Degraded", message = run.failure or "the run failed" }
end
return { status = "Healthy", message = "the run is " .. run.outcome }
