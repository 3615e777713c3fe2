{{/* The parts of Jobs and tests, which run this program once. */}}

{{/* The arguments of this program that add the fields, as JSON with a list `args`. */}}
{{- define "argocd-ocm-cmp.install" -}}
{{- $on := include "argocd-ocm-cmp.features" . | fromJson -}}
{{- $features := keys $on -}}
{{- /* An existing sidecar without a policy gets none, unless the values request one. */ -}}
{{- if not (or (has "policy" .Values.features) .Values.policy.text) -}}
  {{- $features = without $features "policy" -}}
{{- end -}}
{{- /* Without our principal, argocd-agent adds no fields. */ -}}
{{- if not (include "argocd-ocm-cmp.principal" .) -}}{{- $features = without $features "argocd-agent" -}}{{- end -}}
{{- $args := list "install" "--additions-only" "--namespace" .Release.Namespace "--features" ($features | sortAlpha | join ",") -}}
{{- with .Values.policy.existingConfigMap -}}{{- $args = concat $args (list "--policy-configmap" .) -}}{{- end -}}
{{- if and (hasKey $on "plugin") (not (hasKey $on "policy")) -}}{{- $args = append $args "--no-policy" -}}{{- end -}}
{{- $args = concat $args (list "--image" (include "argocd-ocm-cmp.image" .)) -}}
{{- with .Values.argocdImage -}}{{- $args = concat $args (list "--argocd-image" .) -}}{{- end -}}
{{- $secrets := list -}}
{{- range .Values.imagePullSecrets -}}{{- $secrets = append $secrets .name -}}{{- end -}}
{{- with $secrets -}}{{- $args = concat $args (list "--image-pull-secrets" (join "," .)) -}}{{- end -}}
{{- dict "args" $args | toJson -}}
{{- end -}}

{{/* The labels of such a Pod. Arguments: root; component. */}}
{{- define "argocd-ocm-cmp.runLabels" -}}
{{- merge (include "argocd-ocm-cmp.labels" . | fromYaml) (.root.Values.controller.podLabels | default dict) | toYaml -}}
{{- end -}}

{{/* The spec of a Pod that runs this program once. Arguments: root; account, a ServiceAccount; args, those of the program. */}}
{{- define "argocd-ocm-cmp.run" -}}
restartPolicy: Never
serviceAccountName: {{ .account }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
nodeSelector:
{{ merge (dict) (.root.Values.controller.nodeSelector | default dict) (dict "kubernetes.io/os" "linux") | toYaml | indent 2 }}
{{- with .root.Values.controller.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
containers:
- name: argocd-ocm-cmp
  image: {{ include "argocd-ocm-cmp.image" .root }}
  {{- with .root.Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  command: {{ concat (list "argocd-ocm-cmp") .args | toJson }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  resources:
{{- with .root.Values.additionsJob.resources }}
{{ toYaml . | indent 4 }}
{{- else }}
    requests:
      cpu: 10m
      memory: 64Mi
    limits:
      memory: 512Mi
{{- end }}
{{- end -}}

{{/*
A ServiceAccount with permissions in the namespace, for hooks.
Arguments: root; component; name; hooks, their names; rules, those of the Role.
*/}}
{{- define "argocd-ocm-cmp.account" -}}
{{- $metadata := dict "name" .name "namespace" .root.Release.Namespace "annotations" (dict
      "helm.sh/hook" .hooks
      "helm.sh/hook-weight" "-1"
      "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded") -}}
{{- $rbac := "rbac.authorization.k8s.io" -}}
{{- $objects := list
      (dict "apiVersion" "v1" "kind" "ServiceAccount" "metadata" $metadata)
      (dict "apiVersion" (printf "%s/v1" $rbac) "kind" "Role" "metadata" $metadata "rules" .rules)
      (dict "apiVersion" (printf "%s/v1" $rbac) "kind" "RoleBinding" "metadata" $metadata
        "roleRef" (dict "apiGroup" $rbac "kind" "Role" "name" .name)
        "subjects" (list (dict "kind" "ServiceAccount" "name" .name "namespace" .root.Release.Namespace))) -}}
{{- include "argocd-ocm-cmp.write" (dict "root" .root "component" .component "objects" $objects) -}}
{{- end -}}
