-- Health of a StatefulSet. The check of Argo CD can be Healthy with outdated pods. This check is Healthy only if all pods are ready and updated.
local status, replicas = obj.status or {}, obj.spec.replicas or 1
local updated, ready = status.updatedReplicas or 0, status.readyReplicas or 0
if (status.observedGeneration or 0) < obj.metadata.generation then
  return { status = "Progressing", message = "the StatefulSet controller has not read this generation" }
end
if ready < replicas then
  return { status = "Progressing", message = ready .. " of " .. replicas .. " pods are ready" }
end
if updated < replicas then
  return { status = "Progressing", message = updated .. " of " .. replicas .. " pods are updated" }
end
return { status = "Healthy", message = "all " .. replicas .. " pods are ready and updated" }
