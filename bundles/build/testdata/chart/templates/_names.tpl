{{- define "kettle.name" -}}{{ .Release.Name }}-manager{{- end -}}
