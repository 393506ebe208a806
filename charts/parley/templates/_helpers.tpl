{{/* What is fixed of each service: its port, its gRPC name, what it needs and whom it calls. */}}
{{- define "parley.facts" -}}
orchestrator: {port: 7401, grpc: parley.v1.OrchestratorService, store: true, calls: [orchestrator, gateway, convergence, ratings, memory]}
gateway: {port: 7402, grpc: parley.v1.GatewayService, store: true, calls: []}
convergence: {port: 7403, grpc: parley.v1.ConvergenceService, store: false, calls: []}
ratings: {port: 7404, grpc: parley.v1.RatingsService, store: true, calls: []}
memory: {port: 7405, grpc: parley.v1.MemoryService, store: true, calls: [convergence]}
{{- if .Values.edge.enabled }}
edge: {port: 7400, store: false, calls: [orchestrator]}
{{- end }}
{{- end }}

{{- define "parley.healthPort" -}}7499{{- end }}

{{/* What a probe asks, liveness or readiness. The edge speaks HTTP, all others gRPC. Call with (list $ facts what). */}}
{{- define "parley.probe" -}}
{{- $facts := index . 1 }}{{ $readiness := eq (index . 2) "readiness" }}
{{- if $facts.grpc }}
grpc: {port: {{ include "parley.healthPort" (index . 0) }}, service: {{ ternary $facts.grpc "liveness" $readiness }}}
{{- else }}
httpGet: {port: health, path: {{ ternary "/readyz" "/healthz" $readiness }}}
{{- end }}
{{- end }}

{{/* Names of the edge within the cluster, as a list. */}}
{{- define "parley.edgeNames" -}}
{{- range list "edge" "http" }}
{{- $name := printf "%s-%s" (include "parley.fullname" $) . }}
- {{ $name }}
- {{ $name }}.{{ $.Release.Namespace }}
- {{ $name }}.{{ $.Release.Namespace }}.svc
- {{ $name }}.{{ $.Release.Namespace }}.svc.cluster.local
{{- end }}
{{- end }}
{{- define "parley.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* A service as its values have it: the defaults, and its own before them. Call with (list $ name). */}}
{{- define "parley.service" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}
{{- mergeOverwrite (deepCopy $root.Values.defaults) (deepCopy (index $root.Values.services $name | default dict)) | toYaml }}
{{- end }}

{{/* Labels that select a service's pods, and never change. Call with (list $ name). */}}
{{- define "parley.selector" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The name of the ServiceAccount of a service's pods. Call with (list $ name). */}}
{{- define "parley.serviceAccount" -}}
{{- $account := (include "parley.service" . | fromYaml).serviceAccount }}
{{- $account.name | default (printf "%s-%s" (include "parley.fullname" (index . 0)) (index . 1)) }}
{{- end }}

{{- define "parley.labels" -}}
{{ include "parley.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/part-of: parley
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{/* Call with (list $ name). */}}
{{- define "parley.image" -}}
{{- $image := (index . 0).Values.image }}
{{- $service := include "parley.service" . | fromYaml }}
{{- $name := printf "%s%s" $image.prefix (index . 1) }}
{{- if $image.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" $image.registry) $name }}{{ end }}
{{- if $service.digest }}{{ $name }}@{{ $service.digest }}{{ else }}{{ $name }}:{{ default (index . 0).Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{/* host:port of a service, as others call it: a headless Service, so that clients go round its pods. */}}
{{- define "parley.address" -}}
{{- $facts := include "parley.facts" (index . 0) | fromYaml }}
{{- include "parley.fullname" (index . 0) }}-{{ index . 1 }}:{{ (index $facts (index . 1)).port }}
{{- end }}

{{/* Hosts that are asked without the proxy: this machine, the cluster, the collector, and what the values name. */}}
{{- define "parley.withoutProxy" -}}
{{- $hosts := list "localhost" "127.0.0.1" "::1" ".svc" ".cluster.local" }}
{{- $collector := regexReplaceAll ":[0-9]+$" (urlParse .Values.telemetry.endpoint).host "" }}
{{- join "," (list $collector .Values.proxy.except | concat $hosts | compact) }}
{{- end }}

{{/* The port of a URL, which its scheme has if it names none. */}}
{{- define "parley.portOf" -}}
{{- $url := urlParse . }}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) }}
{{- end }}

{{/* Seconds of a time such as 1h30m. */}}
{{- define "parley.secondsOf" -}}
{{- $hours := regexFind "[0-9]+h" . | trimSuffix "h" | int }}{{ $minutes := regexFind "[0-9]+m" . | trimSuffix "m" | int }}
{{- add (mul 3600 $hours) (mul 60 $minutes) (regexFind "[0-9]+s" . | trimSuffix "s" | int) }}
{{- end }}

{{/* Call with the user, or nothing where the platform chooses one. */}}
{{- define "parley.podSecurity" -}}
runAsNonRoot: true
{{- with . }}
runAsUser: {{ int . }}
runAsGroup: {{ int . }}
fsGroup: {{ int . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "parley.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The variable of a setting: the standard ones have names of their own. */}}
{{- define "parley.variable" -}}
{{- if or (hasPrefix "openai_" .) (hasPrefix "openrouter_" .) }}{{ upper . }}{{ else }}PARLEY_{{ upper . }}{{ end }}
{{- end }}

{{- define "parley.telemetryVariables" -}}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ .Values.telemetry.endpoint | quote }}
OTEL_EXPORTER_OTLP_PROTOCOL: {{ .Values.telemetry.protocol | quote }}
OTEL_TRACES_SAMPLER: parentbased_traceidratio
OTEL_TRACES_SAMPLER_ARG: {{ .Values.telemetry.sampleRatio | toString | quote }}
OTEL_METRIC_EXPORT_INTERVAL: {{ mul .Values.telemetry.metricSeconds 1000 | toString | quote }}
{{- end }}
