-- Health of a RolloutGroup, from the conditions that the agent publishes.
local status = obj.status or {}
local observed = status.observedGeneration
if status.conditions == nil or (observed ~= nil and observed ~= obj.metadata.generation) then
  return { status = "Progressing", message = "the agent has not decided about this generation" }
end
local conditions = {}
for _, condition in ipairs(status.conditions) do
  conditions[condition.type] = condition
end
local ready, progressing, degraded = conditions.Ready, conditions.Progressing, conditions.Degraded
if degraded.status == "True" then
  return { status = "Degraded", message = degraded.message }
end
if ready.status == "True" then
  return { status = "Healthy", message = (conditions.Stopped or ready).message }
end
-- Pods can become available without the help of a person, so the group is not Suspended.
if progressing.status == "True" or ready.reason == "PodsUnavailable" then
  return { status = "Progressing", message = ready.message }
end
return { status = "Suspended", message = (conditions.Stopped or progressing).message }
