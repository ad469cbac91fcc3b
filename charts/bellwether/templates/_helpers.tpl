{{/* Copyright The Bellwether Authors. SPDX-License-Identifier: Apache-2.0 */}}

{{- define "bellwether.prefix" -}}
{{ default "bellwether" .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "bellwether.hub" -}}
{{ include "bellwether.prefix" . }}-hub
{{- end }}

{{- define "bellwether.agent" -}}
{{ include "bellwether.prefix" . }}-agent
{{- end }}

{{- define "bellwether.gate" -}}
{{ include "bellwether.prefix" . }}-remote-write-gate
{{- end }}

{{- define "bellwether.inventory" -}}
{{ include "bellwether.hub" . }}-inventory
{{- end }}

{{- /* The security context of the hub's pod: with the group of the inventory's volume, which is not root's. */}}
{{- define "bellwether.hubPodSecurity" -}}
{{- $context := deepCopy .Values.podSecurityContext }}
{{- $inventory := .Values.hub.inventory }}
{{- if and $inventory.enabled $inventory.fsGroup (not (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}
{{- $context = merge $context (dict "fsGroup" (int64 $inventory.fsGroup) "fsGroupChangePolicy" "OnRootMismatch") }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{- /* The labels of an object. Call with (dict "root" $ "component" "hub"). */}}
{{- define "bellwether.labels" -}}
{{ include "bellwether.selector" . }}
app.kubernetes.io/part-of: bellwether
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- if eq .root.Values.agent.part "bundle" }}
app.kubernetes.io/managed-by: olm
{{- else }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The labels that select pods: they can never change. */}}
{{- define "bellwether.selector" -}}
app.kubernetes.io/name: bellwether
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* The metadata of an object. Call with (dict "root" $ "component" "hub" "name" "x"). */}}
{{- define "bellwether.metadata" -}}
name: {{ .name }}
{{- if not .clusterScoped }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
labels:
  {{- include "bellwether.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "bellwether.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end }}

{{- /* The rules of one kind in a generated file: (dict "root" $ "file" "files/hub-rules.yaml" "kind" "ClusterRole"). */}}
{{- define "bellwether.rules" -}}
{{- $kind := .kind -}}
{{- range $document := regexSplit "(?m)^---$" (.root.Files.Get .file) -1 -}}
{{- $role := fromYaml $document -}}
{{- if eq (default "" $role.kind) $kind -}}
{{ toYaml $role.rules }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "bellwether.env" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- if .root.Values.registryConfigSecret }}
- name: DOCKER_CONFIG
  value: /etc/bellwether/registry
{{- end }}
{{- with .part.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "bellwether.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
readinessProbe:
  {{- /* A passive hub is ready to take over, and an agent works on without its hub; one hosted cluster must not make
  the agent of the others unready. */}}
  {{- $path := "/readyz" }}
  {{- if dig "lock" "kubeconfigSecret" "" . }}
  {{- $path = "/readyz?exclude=active" }}
  {{- else if dig "hosted" "enabled" false . }}
  {{- $path = "/readyz?exclude=hosted-clusters" }}
  {{- else if hasKey . "hosted" }}
  {{- $path = "/readyz?exclude=hub-connection" }}
  {{- end }}
  httpGet: {path: {{ $path | quote }}, port: health}
  periodSeconds: 5
{{- end }}

{{- define "bellwether.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "bellwether.registryVolume" -}}
{{- with .Values.registryConfigSecret }}
- name: registry
  secret:
    secretName: {{ . }}
    items: [{key: .dockerconfigjson, path: config.json}]
{{- end }}
{{- end }}

{{- define "bellwether.registryMount" -}}
{{- if .Values.registryConfigSecret }}
- {name: registry, mountPath: /etc/bellwether/registry, readOnly: true}
{{- end }}
{{- end }}

{{- /* What everybody may see. */}}
{{- define "bellwether.rules.view" -}}
- apiGroups: [bellwether.dev]
  resources: [alertsilences, changewindows, endpointprobes, fleetaccesses, fleetclusters, fleetfreezes, managedoperators, operatorbackups, operatorcatalogs, operatorinstalls, operatorrollouts, operatorscans, operatorslos, pagingpolicies, rolloutpolicies]
  verbs: [get, list, watch]
{{- /* When the hub was last seen, which the command line tells whoever reads what the hub wrote. */}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [bellwether-hub]
  verbs: [get, list]
{{- end }}

{{- /* The condition of an admission policy that a request is of an agent, in its own namespace on the hub. */}}
{{- define "bellwether.isAgent" -}}
- name: agents
  expression: "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':bellwether-agent'"
{{- end }}

{{- /*
The validation of an admission policy that bounds the names in managedFields, which the API server takes from a request
as they are. Each entry is a tree of names without any values; three levels are enough for what an agent writes. The
argument is how many characters they have in all.
*/}}
{{- define "bellwether.ownedFields" -}}
- expression: >-
    (has(object.metadata.managedFields) ? object.metadata.managedFields : []).all(m, !has(m.fieldsV1) || m.fieldsV1.all(a,
    m.fieldsV1[a].all(b, m.fieldsV1[a][b].all(c, size(m.fieldsV1[a][b][c]) == 0))))
    && (has(object.metadata.managedFields) ? object.metadata.managedFields : []).map(m, !has(m.fieldsV1) ? 0 : m.fieldsV1.map(a, 8 + size(a)
    + m.fieldsV1[a].map(b, 8 + size(b) + m.fieldsV1[a][b].map(c, 8 + size(c)).sum()).sum()).sum()).sum() <= {{ . }}
  message: "metadata.managedFields of what an agent writes has names in three levels, of at most {{ . }} characters"
  reason: Forbidden
{{- end }}

{{- /* The condition of an admission policy that a request is of the hub. */}}
{{- define "bellwether.isHub" -}}
- name: hub
  expression: "request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "bellwether.hub" . }}'"
{{- end }}

{{- /* The level of logs, which is read again when it changes: (dict "root" $ "part" .Values.hub "names" $names). */}}
{{- define "bellwether.logging" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "bellwether.metadata" (merge (dict "name" (printf "%s-logging" .names.name)) .names) | nindent 2 }}
data:
  level: {{ .part.logLevel | quote }}
{{- end }}

{{- /* How replicas are spread, unless constraints are given: evenly where that can be done, and not at all costs. */}}
{{- define "bellwether.spread" -}}
{{- if and (not .part.topologySpreadConstraints) (gt (int .part.replicas) 1) }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "bellwether.selector" $.names | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The hub's resources. The cache is measured with 14 KiB for each cluster and 4 KiB for each operator on it; 64 and 16
KiB are asked for, with garbage and what is worked on: see docs/guides/sizing.md. */}}
{{- define "bellwether.hubResources" -}}
{{- $resources := deepCopy .resources }}
{{- if gt (int .fleet.clusters) 0 }}
{{- $perCluster := add 64 (mul 16 (int .fleet.operatorsPerCluster)) }}
{{- $request := add 128 (div (add (mul (int .fleet.clusters) $perCluster) 1023) 1024) }}
{{- $limit := max 1024 (mul 2 $request) }}
{{- $resources = mergeOverwrite $resources (dict "requests" (dict "memory" (printf "%dMi" $request)) "limits" (dict "memory" (printf "%dMi" $limit))) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{- /* The PriorityClass of the hub's pods; empty for that of the cluster. */}}
{{- define "bellwether.hubPriority" -}}
{{- with .Values.hub }}
{{- if .priorityClassName }}{{ .priorityClassName }}{{ else if .priorityClass.create }}{{ include "bellwether.hub" $ }}{{ end }}
{{- end }}
{{- end }}

{{- /* Who may read metrics: whoever is named, else everybody. Call with the networkPolicy of a part. */}}
{{- define "bellwether.metricsIngress" -}}
- ports:
    - {port: metrics, protocol: TCP}
  {{- with .metricsFrom }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* What a part may connect to, where that is bounded. */}}
{{- define "bellwether.egress" -}}
{{- with .egress }}
egress:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
