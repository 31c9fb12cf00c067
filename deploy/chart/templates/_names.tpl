{{/* The chart's name, or nameOverride. */}}
{{- define "tenon.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the release's objects: the release name, with the chart name appended unless it is part of it. */}}
{{- define "tenon.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "tenon.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "tenon.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The labels by which the Deployment, the Service and the PodDisruptionBudget select the pods. They never change. */}}
{{- define "tenon.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tenon.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The name of the codec server's objects, and the labels by which they select its pods, which are not those of the workers. */}}
{{- define "tenon.codecServer" -}}
{{- printf "%s-codec-server" (include "tenon.fullname" . | trunc 50 | trimSuffix "-") }}
{{- end }}

{{- define "tenon.codecServerSelectorLabels" -}}
app.kubernetes.io/name: {{ include "tenon.name" . | trunc 50 | trimSuffix "-" }}-codec-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of every object. */}}
{{- define "tenon.labels" -}}
{{ include "tenon.selectorLabels" . }}
{{ include "tenon.commonLabels" . }}
{{- end }}

{{- define "tenon.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tenon.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "tenon.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* A security context without the empty parts that Karpenter's values have, which the API server refuses. */}}
{{- define "tenon.withoutEmpty" -}}
{{- $filled := dict -}}
{{- range $name, $value := . -}}
{{- if not (and (kindIs "map" $value) (empty $value)) -}}
{{- $_ := set $filled $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $filled -}}
{{- end }}

{{/* Whether the values name Karpenter's own image, in whatever registry: it has no `worker` command. */}}
{{- define "tenon.imageIsKarpenters" -}}
{{- if regexMatch "(^|/)karpenter/controller$" .Values.controller.image.repository -}}true{{- end -}}
{{- end }}

{{- define "tenon.image" -}}
{{- $image := .Values.controller.image -}}
{{- if include "tenon.imageIsKarpenters" . -}}
{{- $image = dict "repository" "tenon-sh/tenon" -}}
{{- end -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The name and the labels of the Temporal server that is there for an evaluation only. */}}
{{- define "tenon.evaluationName" -}}
{{- printf "%s-temporal" (include "tenon.fullname" . | trunc 54 | trimSuffix "-") }}
{{- end }}

{{- define "tenon.evaluationSelectorLabels" -}}
app.kubernetes.io/name: {{ printf "%s-temporal" (include "tenon.name" . | trunc 54 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tenon.evaluationLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tenon.evaluationSelectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* host:port of the Temporal server. */}}
{{- define "tenon.temporalAddress" -}}
{{- if .Values.temporal.evaluation.enabled -}}
{{ include "tenon.evaluationName" . }}.{{ .Release.Namespace }}.svc:7233
{{- else -}}
{{ required "temporal.address is required: host:port of Temporal's frontend" .Values.temporal.address }}
{{- end }}
{{- end }}
