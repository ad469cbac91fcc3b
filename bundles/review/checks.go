// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// check looks for one signal in a bundle.
type check struct {
	id, title string
	required  bool
	advice    string
	find      func(bundleSurvey) []string
}

// listChecks returns the checks of each level, the lowest level first.
func listChecks() [][]check {
	return [][]check{listInstallChecks(), listUpgradeChecks(), listLifecycleChecks(), listInsightChecks(),
		listPilotChecks()}
}

// listInstallChecks returns the checks of level Basic Install.
func listInstallChecks() []check {
	return []check{
		{id: "install-deployment", title: "Runs as a Deployment", required: true,
			advice: "List a Deployment in the install strategy.",
			find: func(s bundleSurvey) []string {
				var out []string
				for _, d := range s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
					out = append(out, "Deployment "+d.Name)
				}
				return limitEvidence(out)
			}},
		{id: "install-api", title: "Has an API of its own", required: true,
			advice: "Own a CRD, or an API service.",
			find: func(s bundleSurvey) []string {
				var out []string
				for _, owned := range s.CSV.Spec.CustomResourceDefinitions.Owned {
					out = append(out, "kind "+owned.Kind)
				}
				for _, owned := range s.CSV.Spec.APIServiceDefinitions.Owned {
					out = append(out, "kind "+owned.Kind)
				}
				return limitEvidence(out)
			}},
		{id: "install-spec", title: "Its API has a schema to fill in", required: true,
			advice: "Write down the fields of spec in the CRDs' schemas.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(s.findFields("spec", regexp.MustCompile(`.`)))
			}},
		{id: "install-examples", title: "Has an example of every kind",
			advice: "Put one object of each kind into the annotation alm-examples.",
			find:   findExamples},
		{id: "install-requests", title: "Requests the resources it needs",
			advice: "Set CPU and memory requests on every container.",
			find: func(s bundleSurvey) []string {
				return s.checkContainers("requests", func(c corev1.Container) bool {
					return !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero()
				})
			}},
		{id: "install-described", title: "Says what it is",
			advice: "Write a description, and add an icon.",
			find: func(s bundleSurvey) []string {
				spec := s.CSV.Spec
				if len(strings.TrimSpace(spec.Description)) == 0 || len(spec.Icon) == 0 || spec.Icon[0].Data == "" {
					return nil
				}
				return []string{"description and icon"}
			}},
	}
}

// findExamples returns evidence if every owned kind has an example; nil if a kind has none.
func findExamples(s bundleSurvey) []string {
	var list []struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal([]byte(s.CSV.Annotations["alm-examples"]), &list); err != nil {
		return nil
	}
	var out []string
	for _, owned := range s.CSV.Spec.CustomResourceDefinitions.Owned {
		found := false
		for _, e := range list {
			found = found || e.Kind == owned.Kind
		}
		if !found {
			return nil
		}
		out = append(out, "example of "+owned.Kind)
	}
	return limitEvidence(out)
}

// listUpgradeChecks returns the checks of level Seamless Upgrades.
func listUpgradeChecks() []check {
	return []check{
		{id: "upgrade-status", title: "Reports a status on every kind", required: true,
			advice: "Give every CRD the status subresource, and fill it.",
			find: func(s bundleSurvey) []string {
				return checkVersions(s, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
					return v.Subresources != nil && v.Subresources.Status != nil
				},
					"status subresource on")
			}},
		{id: "upgrade-probes", title: "Says when it is ready", required: true,
			advice: "Give every container a readiness probe: OLM treats an upgrade as done when the pods are ready.",
			find: func(s bundleSurvey) []string {
				return s.checkContainers("readiness probe",
					func(c corev1.Container) bool { return c.ReadinessProbe != nil })
			}},
		{id: "upgrade-conversion", title: "Keeps old versions of its API working", required: true,
			advice: "Serve older versions, and convert between them where their schemas differ.",
			find:   findConversions},
		{id: "upgrade-edges", title: "Says what it upgrades from",
			advice: "Set replaces, skips or olm.skipRange; a catalog compiled by Bellwether works it out.",
			find: func(s bundleSurvey) []string {
				var out []string
				if s.CSV.Spec.Replaces != "" {
					out = append(out, "replaces "+s.CSV.Spec.Replaces)
				}
				for _, skipped := range s.CSV.Spec.Skips {
					out = append(out, "skips "+skipped)
				}
				if r := s.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey]; r != "" {
					out = append(out, "skipRange "+r)
				}
				return limitEvidence(out)
			}},
		{id: "upgrade-leader", title: "Elects a leader while two versions run",
			advice: "Elect a leader through a Lease, so that old and new pods do not act at once.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(s.findWriteRights("coordination.k8s.io", "leases"))
			}},
		{id: "upgrade-operand", title: "Knows which version it runs for its users",
			advice: "Have a field version in spec or status, or name operands by RELATED_IMAGE variables.",
			find:   findOperandVersions},
		{id: "upgrade-pinned", title: "Names images by digest",
			advice: "Name images by digest, as bellwether bundle build --pin does.",
			find: func(s bundleSurvey) []string {
				return s.checkContainers("digest",
					func(c corev1.Container) bool { return strings.Contains(c.Image, "@sha256:") })
			}},
	}
}

// checkVersions returns the evidence with the number of CRDs if every served version of every CRD passes; nil if a
// version fails or there are no CRDs.
func checkVersions(s bundleSurvey, isPassing func(apiextensionsv1.CustomResourceDefinitionVersion) bool,
	evidence string) []string {
	for _, crd := range s.CRDs {
		for _, v := range crd.Spec.Versions {
			if v.Served && !isPassing(v) {
				return nil
			}
		}
	}
	if len(s.CRDs) == 0 {
		return nil
	}
	return []string{evidence + " " + formatCount(len(s.CRDs), "CRD")}
}

// findConversions returns evidence if every CRD either has only one version or has a conversion webhook; nil if a CRD
// with several versions has no webhook.
func findConversions(s bundleSurvey) []string {
	var out []string
	for _, crd := range s.CRDs {
		if len(crd.Spec.Versions) < 2 {
			continue
		}
		if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
			return nil
		}
		out = append(out, fmt.Sprintf("webhook converts %d versions of %s", len(crd.Spec.Versions),
			crd.Spec.Names.Kind))
	}
	if len(out) == 0 && len(s.CRDs) > 0 {
		return []string{"one version of " + formatCount(len(s.CRDs), "CRD") + ", nothing to convert"}
	}
	return limitEvidence(out)
}

// versionName matches names of fields with the version of a program. It does not match apiVersion and resourceVersion.
var versionName = regexp.MustCompile(`^(version|release|` +
	`(operator|operand|server|cluster|engine|image|current|desired|target|observed)Version)$`)

// findOperandVersions returns fields and variables that determine the version of the operand.
func findOperandVersions(s bundleSurvey) []string {
	out := slices.Concat(s.findFields("spec", versionName), s.findFields("status", versionName))
	for name, c := range s.containers {
		for _, e := range c.Env {
			if strings.HasPrefix(e.Name, bundles.RelatedImagePrefix) {
				out = append(out, e.Name+" of "+name)
			}
		}
	}
	return limitEvidence(out)
}

var (
	backupName   = regexp.MustCompile(`(?i)(backup|snapshot)`)
	restoreName  = regexp.MustCompile(`(?i)(restore|recoverFrom|recoverySource|bootstrapFrom)`)
	storageName  = regexp.MustCompile(`(?i)^(storage.*|volumeClaim.*|persistence|persistentVolume.*|pvc.*)$`)
	replicasName = regexp.MustCompile(`(?i)^(replicas|size|instances|members|.*Replicas)$`)
	failoverName = regexp.MustCompile(`(?i)(failover|switchover|standby|quorum|highAvailability)`)
)

// listLifecycleChecks returns the checks of level Full Lifecycle.
func listLifecycleChecks() []check {
	return []check{
		{id: "lifecycle-backup", title: "Backs up", required: true,
			advice: "Have a kind or a field for backups.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(slices.Concat(s.findKinds(backupName), s.findFields("spec", backupName),
					s.findWriteRights("snapshot.storage.k8s.io", "volumesnapshots")))
			}},
		{id: "lifecycle-restore", title: "Restores", required: true,
			advice: "Have a kind or a field to restore from.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(slices.Concat(s.findKinds(restoreName), s.findFields("spec", restoreName)))
			}},
		{id: "lifecycle-scale", title: "Scales what it runs",
			advice: "Add the scale subresource, or a field for the number of replicas.",
			find:   findScaling},
		{id: "lifecycle-failover", title: "Survives the loss of a node",
			advice: "Make PodDisruptionBudgets, and fail over.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(slices.Concat(s.findFields("spec", failoverName),
					s.findWriteRights("policy", "poddisruptionbudgets"), s.findObjects("PodDisruptionBudget")))
			}},
		{id: "lifecycle-storage", title: "Looks after storage",
			advice: "Have fields for storage, so that it can grow.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(append(s.findFields("spec", storageName),
					s.findWriteRights("", "persistentvolumeclaims")...))
			}},
		{id: "lifecycle-cleanup", title: "Cleans up behind itself",
			advice: "Use finalizers, or spec.cleanup.",
			find:   findCleanup},
	}
}

// findScaling returns scale subresources and fields for a number of replicas.
func findScaling(s bundleSurvey) []string {
	var out []string
	for _, crd := range s.CRDs {
		for _, v := range crd.Spec.Versions {
			if v.Subresources != nil && v.Subresources.Scale != nil {
				out = append(out, "scale subresource of "+crd.Spec.Names.Kind)
			}
		}
	}
	return limitEvidence(append(out, s.findFields("spec", replicasName)...))
}

// findCleanup returns evidence of spec.cleanup and of finalizers.
func findCleanup(s bundleSurvey) []string {
	var out []string
	if s.CSV.Spec.Cleanup.Enabled {
		out = append(out, "spec.cleanup")
	}
	for _, r := range s.rules {
		for _, resource := range r.Resources {
			if strings.HasSuffix(resource, "/finalizers") {
				out = append(out, "may write "+resource)
			}
		}
	}
	return limitEvidence(out)
}

const monitoringGroup = "monitoring.coreos.com"

var metricsName = regexp.MustCompile(`(?i)metrics|prometheus`)

// listInsightChecks returns the checks of level Deep Insights.
func listInsightChecks() []check {
	return []check{
		{id: "insight-metrics", title: "Shows metrics", required: true,
			advice: "Ship a ServiceMonitor, or make one for each object; name the port metrics.",
			find:   findMetrics},
		{id: "insight-alerts", title: "Comes with alerts", required: true,
			advice: "Ship PrometheusRules, or make them for each object.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(append(s.findObjects("PrometheusRule"),
					s.findWriteRights(monitoringGroup, "prometheusrules")...))
			}},
		{id: "insight-events", title: "Reports what it does in events",
			advice: "Record events, and request the right to do so.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(append(s.findWriteRights("", "events"),
					s.findWriteRights("events.k8s.io", "events")...))
			}},
		{id: "insight-conditions", title: "Has conditions in its status",
			advice: "Report conditions in status.conditions.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(s.findFields("status", regexp.MustCompile(`^conditions$`)))
			}},
		{id: "insight-dashboards", title: "Comes with dashboards",
			advice: "Ship a ConfigMap with the label grafana_dashboard.",
			find:   findDashboards},
	}
}

// findMetrics returns ports, Services and monitors for metrics, and rights to create monitors.
func findMetrics(s bundleSurvey) []string {
	out := append(s.findObjects("ServiceMonitor", "PodMonitor"),
		s.findWriteRights(monitoringGroup, "servicemonitors", "podmonitors")...)
	for name, c := range s.containers {
		for _, p := range c.Ports {
			if metricsName.MatchString(p.Name) {
				out = append(out, "port "+p.Name+" of "+name)
			}
		}
	}
	for _, o := range s.Objects {
		if o.GetKind() == "Service" && metricsName.MatchString(o.GetName()) {
			out = append(out, "Service "+o.GetName())
		}
	}
	return limitEvidence(out)
}

// findDashboards returns dashboards in manifests, and rights to create dashboards.
func findDashboards(s bundleSurvey) []string {
	var out []string
	for _, o := range s.Objects {
		labels := o.GetLabels()
		_, grafana := labels["grafana_dashboard"]
		_, console := labels["console.openshift.io/dashboard"]
		isLabelled := o.GetKind() == "ConfigMap" && (grafana || console)
		if isLabelled || o.GetKind() == "GrafanaDashboard" {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	return limitEvidence(append(out, s.findWriteRights("grafana.integreatly.org", "grafanadashboards")...))
}

var (
	autoscaleName = regexp.MustCompile(`(?i)(autoscal|minReplicas|maxReplicas|scaledObject)`)
	healName      = regexp.MustCompile(`(?i)(autoHeal|selfHeal|autoRepair|remediat|autoRecover|autoFailover)`)
	tuneName      = regexp.MustCompile(`(?i)(autoTun|rebalanc|autoOptimi|compaction|anomal)`)
)

// listPilotChecks returns the checks of level Auto Pilot.
func listPilotChecks() []check {
	return []check{
		{id: "pilot-scale", title: "Scales by itself", required: true,
			advice: "Make HorizontalPodAutoscalers, or have fields for autoscaling.",
			find: func(s bundleSurvey) []string {
				return limitEvidence(slices.Concat(s.findFields("spec", autoscaleName),
					s.findWriteRights("autoscaling", "horizontalpodautoscalers"),
					s.findWriteRights("keda.sh", "scaledobjects"),
					s.findWriteRights("autoscaling.k8s.io", "verticalpodautoscalers"),
					s.findObjects("HorizontalPodAutoscaler", "VerticalPodAutoscaler")))
			}},
		{id: "pilot-heal", title: "Heals by itself", required: true,
			advice: "Have fields for healing, or take pods away that do not work.",
			find: func(s bundleSurvey) []string {
				out := s.findFields("spec", healName)
				for _, r := range s.rules {
					canEvict := slices.Contains(r.Resources, "pods/eviction")
					canDelete := slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, "pods") &&
						slices.Contains(r.Verbs, "delete")
					if canEvict || canDelete {
						out = append(out, "may delete pods")
					}
				}
				return limitEvidence(out)
			}},
		{id: "pilot-tune", title: "Tunes by itself",
			advice: "Have fields for tuning or rebalancing.",
			find:   func(s bundleSurvey) []string { return limitEvidence(s.findFields("spec", tuneName)) }},
	}
}
