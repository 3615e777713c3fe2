{{/* The files in files/ are links to those of the repository. The templates set the values in them. */}}

{{/* The features with those that they require, as JSON with the name of each. */}}
{{- define "argocd-ocm-cmp.features" -}}
{{- $table := .Files.Get "features.yaml" | fromYamlArray -}}
{{- $on := dict -}}
{{- range .Values.features -}}{{- $_ := set $on . true -}}{{- end -}}
{{- /* Once for each step of a chain: argocd-addon requires pull, which requires report, which requires controller. */ -}}
{{- range until 3 -}}
  {{- range $table -}}
    {{- if hasKey $on .name -}}{{- range .requires -}}{{- $_ := set $on . true -}}{{- end -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- $policy := .Values.policy -}}
{{- if and $policy.text $policy.existingConfigMap -}}
  {{- fail "policy.text and policy.existingConfigMap exclude each other: set one of them" -}}
{{- end -}}
{{- if or $policy.text $policy.existingConfigMap -}}
  {{- $_ := set $on "policy" true -}}{{- $_ := set $on "plugin" true -}}
{{- end -}}
{{- if not $policy.enabled -}}
  {{- if or $policy.text $policy.existingConfigMap (has "policy" .Values.features) -}}
    {{- fail "policy.enabled=false and a policy contradict each other: leave one of the two out" -}}
  {{- end -}}
  {{- $_ := unset $on "policy" -}}
{{- end -}}
{{- toJson $on -}}
{{- end -}}

{{/* The image of this program. */}}
{{- define "argocd-ocm-cmp.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- with .Values.image.digest -}}{{- printf "@%s" . -}}{{- end -}}
{{- end -}}

{{/* The labels of Pods. They are the same for every version, so that an upgrade without a change of the Pods restarts none. */}}
{{- define "argocd-ocm-cmp.podLabels" -}}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- end -}}

{{/*
Sets in the template of a Pod what a hub may require of every Pod. Arguments: root, the context of the chart; component, the value of that
label; template, that of the Pod.
*/}}
{{- define "argocd-ocm-cmp.pod" -}}
{{- $values := .root.Values.controller -}}
{{- $labels := include "argocd-ocm-cmp.podLabels" . | fromYaml -}}
{{- $_ := set .template.metadata "labels" (merge .template.metadata.labels $labels ($values.podLabels | default dict)) -}}
{{- $pod := .template.spec -}}
{{- $_ := set $pod "nodeSelector" (merge (dict) ($values.nodeSelector | default dict) $pod.nodeSelector) -}}
{{- with $values.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end -}}
{{- with .root.Values.image.pullPolicy }}{{ $_ := set (first $pod.containers) "imagePullPolicy" . }}{{ end -}}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- end -}}

{{/* The recommended labels. An object's own name and part-of take precedence: selectors have these, and `install` finds objects by them. */}}
{{- define "argocd-ocm-cmp.labels" -}}
app.kubernetes.io/name: argocd-ocm-cmp
{{ include "argocd-ocm-cmp.podLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: argocd
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* Not empty if the hub supports admission policies. */}}
{{- define "argocd-ocm-cmp.admission" -}}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}

{{/* Not empty if the release has the principal of argocd-agent. */}}
{{- define "argocd-ocm-cmp.principal" -}}
{{- $on := include "argocd-ocm-cmp.features" . | fromJson -}}
{{- if and (hasKey $on "argocd-agent") .Values.principal.enabled }}true{{ end -}}
{{- end -}}

{{/* The controllers to run, in the order of the help. */}}
{{- define "argocd-ocm-cmp.controllers" -}}
{{- $on := include "argocd-ocm-cmp.features" . | fromJson -}}
{{- $names := list -}}
{{- range .Files.Get "features.yaml" | fromYamlArray -}}
  {{- if and .controller (hasKey $on .name) -}}{{- $names = append $names .controller -}}{{- end -}}
{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{/*
The objects of files, as JSON with a list `items`, with the namespace and images of the release. Without the admission policies on a hub
that does not support them.
Arguments: root, the context of the chart; files, a list of their paths in the repository.
*/}}
{{- define "argocd-ocm-cmp.read" -}}
{{- $root := .root -}}
{{- $namespace := $root.Release.Namespace -}}
{{- $items := list -}}
{{- $isServed := include "argocd-ocm-cmp.admission" $root -}}
{{- range .files -}}
  {{- $text := $root.Files.Get (printf "files/%s" .) -}}
  {{- if not $text -}}{{- fail (printf "files/%s is not in the chart" .) -}}{{- end -}}
  {{- $text = regexReplaceAll "(?m)^((?:- | )*(?:namespace|agentInstallNamespace): )argocd$" $text (printf "${1}%s" $namespace) -}}
  {{- $text = regexReplaceAll "(?m)^( *namespace: '!)argocd'$" $text (printf "${1}%s'" $namespace) -}}
  {{- $text = regexReplaceAll "(?m)^( *(?:name|policyName): argocd-ocm-cmp-[a-z-]+\\.)argocd$" $text (printf "${1}%s" $namespace) -}}
  {{- $text = regexReplaceAllLiteral "'system:serviceaccount:argocd:" $text (printf "'system:serviceaccount:%s:" $namespace) -}}
  {{- $finalizer := "'gitopscluster.argocd-ocm-cmp.github.io/%s'" -}}
  {{- $text = replace (printf $finalizer "argocd") (printf $finalizer $namespace) $text -}}
  {{- $text = regexReplaceAll "(?m)^( *(?:namespaces|resourceNames): )\\[argocd\\]$" $text (printf "${1}[%s]" $namespace) -}}
  {{- $text = regexReplaceAllLiteral "(?m)ghcr\\.io/argocd-ocm-cmp/argocd-ocm-cmp:\\S+$" $text (include "argocd-ocm-cmp.image" $root) -}}
  {{- with $root.Values.argocdImage -}}
    {{- $text = regexReplaceAllLiteral "(?m)quay\\.io/argoproj/argocd:\\S+$" $text . -}}
  {{- end -}}
  {{- $text = regexReplaceAllLiteral "(?m)quay\\.io/argoprojlabs/argocd-agent:\\S+$" $text $root.Values.agentImage -}}
  {{- range (regexSplit "(?m)^---$" $text -1) -}}
    {{- $item := fromYaml . -}}
    {{- if or $isServed (not (hasPrefix "ValidatingAdmissionPolicy" $item.kind)) -}}{{- $items = append $items $item -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- dict "items" $items | toJson -}}
{{- end -}}

{{/*
Writes objects, one document each, with the recommended labels.
Arguments: root, the context of the chart; component, the value of that label; objects, a list.
*/}}
{{- define "argocd-ocm-cmp.write" -}}
{{- $labels := include "argocd-ocm-cmp.labels" . | fromYaml }}
{{- range .objects }}
{{- $_ := set .metadata "labels" (merge (.metadata.labels | default dict) $labels) }}
---
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Adds annotations to an object that must stay when the release, an Application of Argo CD or a Kustomization of Flux no longer has it: Argo
CD's Pods mount it, or others use it. Arguments: metadata, that of the object; helm, false if the object is Argo CD's own, which would lose
its own fields if it were applied in another way than server-side, or if Flux took over those of kubectl.
*/}}
{{- define "argocd-ocm-cmp.keep" -}}
{{- $keep := dict "kustomize.toolkit.fluxcd.io/prune" "disabled" -}}
{{- if .helm -}}
  {{- $_ := merge $keep (dict "argocd.argoproj.io/sync-options" "Prune=false,Delete=false" "helm.sh/resource-policy" "keep") -}}
{{- else -}}
  {{- $_ := merge $keep (dict "argocd.argoproj.io/sync-options" "Prune=false,Delete=false,ServerSideApply=true"
        "kustomize.toolkit.fluxcd.io/ssa" "Merge") -}}
{{- end -}}
{{- $_ := set .metadata "annotations" (merge $keep (.metadata.annotations | default dict)) -}}
{{- end -}}

{{/* Not empty if an object on the hub is of this release. Arguments: root, the context of the chart; live, the object, empty if there is none. */}}
{{- define "argocd-ocm-cmp.isOfRelease" -}}
{{- $annotations := dig "metadata" "annotations" dict (.live | default dict) -}}
{{- $isNamed := eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name -}}
{{- if and $isNamed (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace) }}true{{ end -}}
{{- end -}}

{{/* Not empty if the features add fields to Argo CD's own objects. */}}
{{- define "argocd-ocm-cmp.adds" -}}
{{- $on := include "argocd-ocm-cmp.features" . | fromJson -}}
{{- if or (hasKey $on "plugin") (hasKey $on "ui") (include "argocd-ocm-cmp.principal" .) }}true{{ end -}}
{{- end -}}
