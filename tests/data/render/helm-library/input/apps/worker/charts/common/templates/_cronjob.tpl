{{- define "common.cronjob" }}
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ .top.Release.Name }}-{{ .name }}
  labels: {chart: {{ .top.Chart.Name }}, part-of: {{ .top.Release.Name }}}
spec:
  schedule: {{ .worker.schedule | quote }}
  suspend: {{ .worker.suspend | default false }}
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: {{ .name }}, image: {{ .worker.image | quote }}}
{{- end }}
