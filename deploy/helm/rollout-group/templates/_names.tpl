{{- /* Generated from scripts/chart/ by npm run generate. The templates rollout-group.marked.* have the fields that the mark of an admission policy covers. */}}
{{- define "rollout-group.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
{{- /* The end of the names of objects without a namespace, so that each installation in a cluster has its own. */}}
{{- define "rollout-group.suffix" -}}
{{ if ne .Release.Namespace "rollout-group" }}-{{ .Release.Namespace }}{{ end }}
{{- end }}
{{- define "rollout-group.members" -}}
{{ range $index, $member := .Values.partitionMembers | uniq | sortAlpha }}{{ if $index }}, {{ end }}{{ if not (regexMatch "^[a-z0-9-]+/[a-z0-9.-]+$" $member) }}{{ fail (printf "partitionMembers: %q is not NAMESPACE/NAME" $member) }}{{ end }}'{{ $member }}'{{ end }}
{{- end }}
{{- define "rollout-group.marked.ValidatingAdmissionPolicy.rollout-group-requested-by" }}
variables:
  - name: spec
    expression: dyn(object.spec)
  - name: oldSpec
    expression: "request.operation == 'CREATE' ? dyn({}) : dyn(oldObject.spec)"
  - name: stamp
    expression: "'requestedBy' in variables.spec ? variables.spec.requestedBy : null"
  - name: oldStamp
    expression: "'requestedBy' in variables.oldSpec ? variables.oldSpec.requestedBy : null"
  - name: groups
    expression: "has(request.userInfo.groups) ? dyn(request.userInfo.groups) : dyn([])"
  - name: isAsked
    expression: request.operation == 'CREATE' || !variables.spec.all(key, key == 'requestedBy' || (key in variables.oldSpec && variables.oldSpec[key] == variables.spec[key])) || !variables.oldSpec.all(key, key == 'requestedBy' || key in variables.spec)
validations:
  - expression: "!variables.isAsked || variables.stamp == null || (variables.stamp.user == request.userInfo.username && (!has(variables.stamp.groups) || variables.stamp.groups == variables.groups || variables.stamp.groups.all(group, group in variables.groups)))"
    messageExpression: "'spec.requestedBy must name the requester ' + request.userInfo.username + ' and only groups of this user; leave spec.requestedBy out or set it to null: the webhook /admission/stamp fills it in, and without the webhook the requester is unverified'"
    reason: Forbidden
  - expression: variables.isAsked || variables.stamp == null || variables.stamp == variables.oldStamp
    message: spec.requestedBy must stay unchanged or be removed if the rest of the spec is unchanged
    reason: Forbidden
matchConditions:
  - name: says-something-new
    expression: "request.operation == 'CREATE' || (has(object.spec) ? object.spec : {}) != (has(oldObject.spec) ? oldObject.spec : {})"
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups:
        - rollout-group.dev
      apiVersions:
        - v1alpha1
      resources:
        - rolloutexceptions
        - rolloutintents
      operations:
        - CREATE
        - UPDATE
      scope: Namespaced
{{- end }}
{{- define "rollout-group.marked.ValidatingAdmissionPolicyBinding.rollout-group-requested-by" }}
policyName: rollout-group-requested-by{{ include "rollout-group.suffix" $ }}
validationActions:
  - Deny
{{- end }}
{{- define "rollout-group.marked.ValidatingAdmissionPolicy.rollout-group-update-strategy" }}
variables:
  - name: before
    expression: "(has(oldObject.spec.updateStrategy) && has(oldObject.spec.updateStrategy.rollingUpdate) && has(oldObject.spec.updateStrategy.rollingUpdate.partition) ? oldObject.spec.updateStrategy.rollingUpdate.partition : 0)"
  - name: after
    expression: "(has(object.spec.updateStrategy) && has(object.spec.updateStrategy.rollingUpdate) && has(object.spec.updateStrategy.rollingUpdate.partition) ? object.spec.updateStrategy.rollingUpdate.partition : 0)"
  - name: strategyBefore
    expression: "(has(oldObject.spec.updateStrategy) && has(oldObject.spec.updateStrategy.type) ? oldObject.spec.updateStrategy.type : 'RollingUpdate')"
  - name: strategyAfter
    expression: "(has(object.spec.updateStrategy) && has(object.spec.updateStrategy.type) ? object.spec.updateStrategy.type : 'RollingUpdate')"
  - name: isMoving
    expression: "object.spec.template != oldObject.spec.template || (has(oldObject.status) && has(oldObject.status.observedGeneration) ? oldObject.status.observedGeneration : 0) != oldObject.metadata.generation || (has(oldObject.status) && has(oldObject.status.currentRevision) ? oldObject.status.currentRevision : '') != (has(oldObject.status) && has(oldObject.status.updateRevision) ? oldObject.status.updateRevision : '') || (has(oldObject.status) && has(oldObject.status.updatedReplicas) ? oldObject.status.updatedReplicas : 0) != (has(oldObject.status) && has(oldObject.status.replicas) ? oldObject.status.replicas : 0)"
validations:
  - expression: "!variables.isMoving || variables.strategyBefore == variables.strategyAfter || (variables.strategyBefore == 'OnDelete' && variables.after >= 1000000)"
    messageExpression: "'the update strategy ' + variables.strategyAfter + ' is denied in the middle of a rollout or with a template change: pods of ' + object.metadata.name + ' could change their version at a restart; finish or undo the rollout first; if no group contains the StatefulSet, define the group again; in an emergency, disable enforcement: kubectl label namespace ' + request.namespace + ' rollout-group.dev/enforce-'"
    reason: Forbidden
  - expression: "!variables.isMoving || variables.strategyAfter != 'RollingUpdate' || variables.after >= variables.before || variables.after >= 1000000"
    messageExpression: "'the partition ' + string(variables.after) + ' is denied in the middle of a rollout or with a template change: the StatefulSet controller would replace pods of ' + object.metadata.name + ' without waves, gates and budgets; remove the partition from the manifest, or finish or undo the rollout first; if no group contains the StatefulSet, define the group again; in an emergency, disable enforcement: kubectl label namespace ' + request.namespace + ' rollout-group.dev/enforce-'"
    reason: Forbidden
matchConditions:
  - name: is-not-the-agent
    expression: request.userInfo.username != 'system:serviceaccount:{{ $.Release.Namespace }}:rollout-group-agent'
  - name: is-held
    expression: "{{ if $.Values.partitionMembers }}(has(oldObject.spec.updateStrategy) && has(oldObject.spec.updateStrategy.rollingUpdate) && has(oldObject.spec.updateStrategy.rollingUpdate.partition) ? oldObject.spec.updateStrategy.rollingUpdate.partition : 0) >= 1000000 || request.namespace + '/' + request.name in [{{ include "rollout-group.members" $ }}]{{ else }}(has(oldObject.spec.updateStrategy) && has(oldObject.spec.updateStrategy.rollingUpdate) && has(oldObject.spec.updateStrategy.rollingUpdate.partition) ? oldObject.spec.updateStrategy.rollingUpdate.partition : 0) >= 1000000{{ end }}"
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups:
        - apps
      apiVersions:
        - v1
      resources:
        - statefulsets
      operations:
        - UPDATE
      scope: Namespaced
{{- end }}
{{- define "rollout-group.marked.ValidatingAdmissionPolicyBinding.rollout-group-update-strategy" }}
policyName: rollout-group-update-strategy{{ include "rollout-group.suffix" $ }}
validationActions:
  - Deny
matchResources:
  matchPolicy: Equivalent
  namespaceSelector:
    matchLabels:
      rollout-group.dev/enforce: "true"
    {{- if $.Values.namespaces }}
    matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: In
        values:
          {{- range $namespace := $.Values.namespaces | uniq | sortAlpha }}
          - {{ $namespace | quote }}
          {{- end }}
    {{- end }}
  objectSelector: {}
{{- end }}
