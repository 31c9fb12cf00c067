{{/*
The worker's own settings. Each TENON_ variable sets a flag of `tenon worker`. Like Karpenter's chart, this one evaluates
templates in the settings that differ from cluster to cluster.
*/}}
{{- define "tenon.settingsEnv" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: TENON_CLUSTER
  value: {{ required "settings.clusterName is required: the name of the EKS cluster" (tpl .Values.settings.clusterName .) | quote }}
{{- with .Values.settings.clusterEndpoint }}
- name: TENON_CLUSTER_ENDPOINT
  value: {{ tpl . $ | quote }}
{{- end }}
{{- with .Values.settings.clusterServiceCIDR }}
- name: TENON_CLUSTER_SERVICE_CIDR
  value: {{ tpl . $ | quote }}
{{- end }}
{{- with .Values.settings.clusterCABundle }}
- name: TENON_CLUSTER_CA_BUNDLE
  value: {{ tpl . $ | quote }}
{{- end }}
- name: TENON_BATCH_IDLE_DURATION
  value: {{ tpl (toString .Values.settings.batchIdleDuration) . | quote }}
- name: TENON_BATCH_MAX_DURATION
  value: {{ tpl (toString .Values.settings.batchMaxDuration) . | quote }}
- name: TENON_MIN_VALUES_POLICY
  value: {{ .Values.settings.minValuesPolicy | quote }}
- name: TENON_PREFERENCE_POLICY
  value: {{ .Values.settings.preferencePolicy | quote }}
- name: TENON_NODE_PRICE
  value: {{ .Values.settings.nodePrice | quote }}
- name: TENON_PACKING
  value: {{ .Values.settings.packing | quote }}
- name: TENON_VM_MEMORY_OVERHEAD_PERCENT
  value: {{ tpl (toString .Values.settings.vmMemoryOverheadPercent) . | quote }}
- name: TENON_RESERVED_ENIS
  value: {{ tpl (toString .Values.settings.reservedENIs) . | quote }}
- name: TENON_REBALANCE
  value: {{ .Values.settings.rebalance | quote }}
{{- with .Values.settings.otlpEndpoint }}
- name: TENON_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
- name: TENON_TRACE_SAMPLING
  value: {{ .Values.settings.traceSampling | quote }}
- name: TENON_ENABLE_PROFILING
  value: {{ .Values.settings.enableProfiling | quote }}
- name: TENON_OBSERVE
  value: {{ .Values.settings.observe | quote }}
- name: TENON_NOMINATION
  value: {{ .Values.settings.nomination | quote }}
{{- with .Values.settings.disruptionRate }}
- name: TENON_DISRUPTION_RATE
  value: {{ . | quote }}
{{- end }}
{{- with .Values.settings.hooks.urls }}
- name: TENON_HOOK_URL
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.settings.hooks.jobNamespaces }}
- name: TENON_HOOK_JOB_NAMESPACE
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.settings.prometheusURL }}
- name: TENON_PROMETHEUS_URL
  value: {{ tpl . $ | quote }}
{{- end }}
{{- with .Values.settings.disruptionBudgets }}
- name: TENON_DISRUPTION_BUDGETS
  value: {{ toJson . | quote }}
{{- end }}
{{- with .Values.settings.maintenanceWindows }}
- name: TENON_MAINTENANCE_WINDOWS
  value: {{ toJson . | quote }}
{{- end }}
{{- with .Values.settings.interruptionQueue }}
- name: TENON_INTERRUPTION_QUEUE
  value: {{ tpl . $ | quote }}
{{- end }}
- name: TENON_FEATURE_GATES
  value: {{ printf "NodeRepair=%t,SpotToSpotConsolidation=%t,NodeOverlay=%t,DynamicResources=%t" .Values.settings.featureGates.nodeRepair .Values.settings.featureGates.spotToSpotConsolidation .Values.settings.featureGates.nodeOverlay .Values.settings.featureGates.dynamicResources | quote }}
- name: TENON_DISABLE_DRY_RUN
  value: {{ tpl (toString .Values.settings.disableDryRun) . | quote }}
- name: TENON_ISOLATED_VPC
  value: {{ tpl (toString .Values.settings.isolatedVPC) . | quote }}
- name: TENON_ENABLE_ZONAL_SHIFT
  value: {{ tpl (toString .Values.settings.enableZonalShift) . | quote }}
- name: TENON_LEADER_ELECTION_NAME
  value: {{ .Values.leaderElection.name | quote }}
- name: TENON_LEADER_ELECTION_NAMESPACE
  value: {{ .Values.leaderElection.namespace | quote }}
- name: TENON_METRICS_ADDRESS
  value: {{ printf ":%v" .Values.controller.metrics.port | quote }}
- name: TENON_HEALTH_PROBE_ADDRESS
  value: {{ printf ":%v" .Values.controller.healthProbe.port | quote }}
{{- if .Values.ui.enabled }}
- name: TENON_UI_ADDRESS
  value: {{ printf ":%v" .Values.ui.port | quote }}
{{- if .Values.ui.token.existingSecret }}
- name: TENON_UI_TOKEN_FILE
  value: {{ printf "/var/run/tenon/ui-token/%s" .Values.ui.token.key | quote }}
{{- end }}
{{- with .Values.ui.temporalURL }}
- name: TENON_UI_TEMPORAL_URL
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- if dig "limits" "memory" "" (.Values.controller.resources | default dict) }}
- name: TENON_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      resource: limits.memory
{{- end }}
- name: TENON_LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
- name: TENON_LOG_FORMAT
  value: {{ .Values.logFormat | quote }}
{{- end }}

{{/* The standard environment variables of Temporal's SDKs. */}}
{{- define "tenon.temporalEnv" -}}
{{- $temporal := .Values.temporal -}}
{{- if and $temporal.evaluation.enabled (or $temporal.tls.enabled $temporal.apiKey.existingSecret) -}}
{{- fail "temporal.evaluation.enabled brings a server of its own, without TLS and without keys: leave out temporal.tls and temporal.apiKey, or the evaluation" -}}
{{- end -}}
{{- if not (or $temporal.tls.enabled $temporal.apiKey.existingSecret $temporal.insecure $temporal.evaluation.enabled) -}}
{{- fail "Whoever can speak to Temporal, or listen in, owns your nodes. Set temporal.tls.enabled=true (or temporal.apiKey), or temporal.insecure=true if the network between the workers and Temporal is yours alone" -}}
{{- end -}}
- name: TEMPORAL_ADDRESS
  value: {{ include "tenon.temporalAddress" . | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ $temporal.namespace | quote }}
{{- with $temporal.apiKey.existingSecret }}
- name: TENON_TEMPORAL_API_KEY_FILE
  value: /var/run/tenon/temporal-api-key/{{ $temporal.apiKey.key }}
{{- end }}
{{- if or $temporal.tls.enabled $temporal.apiKey.existingSecret }}
- name: TEMPORAL_TLS
  value: "true"
{{- with $temporal.tls.serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ . | quote }}
{{- end }}
{{- if $temporal.tls.existingSecret }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /var/run/tenon/temporal-tls/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /var/run/tenon/temporal-tls/tls.key
{{- if $temporal.tls.serverCA }}
- name: TEMPORAL_TLS_SERVER_CA_CERT_PATH
  value: /var/run/tenon/temporal-tls/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The keys with which Temporal's payloads are encrypted, for the worker and the codec server. */}}
{{- define "tenon.codecEnv" -}}
{{- with .Values.temporal.codec.existingSecret -}}
- name: TENON_CODEC_KEYS
  value: /var/run/tenon/codec-keys
- name: TENON_CODEC_KEY_ID
  value: {{ required "temporal.codec.key is required with temporal.codec.existingSecret: the entry of the Secret that encrypts" $.Values.temporal.codec.key | quote }}
{{- end }}
{{- end }}
