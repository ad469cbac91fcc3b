// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scorecard

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// check finds one signal.
type check struct {
	id, title string
	required  bool
	advice    string
	find      func(surveyed) []string
}

const required = true

// checks are those of each level, from Basic Install up.
func checks() [][]check {
	return [][]check{installChecks(), upgradeChecks(), lifecycleChecks(), insightChecks(), pilotChecks()}
}

func installChecks() []check {
	return []check{
		{"install-deployment", "Runs as a Deployment", required, "List a Deployment in the install strategy.",
			func(s surveyed) []string {
				var out []string
				for _, d := range s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
					out = append(out, "Deployment "+d.Name)
				}
				return some(out)
			}},
		{"install-api", "Has an API of its own", required, "Own a CRD, or an API service.", func(s surveyed) []string {
			var out []string
			for _, owned := range s.CSV.Spec.CustomResourceDefinitions.Owned {
				out = append(out, "kind "+owned.Kind)
			}
			for _, owned := range s.CSV.Spec.APIServiceDefinitions.Owned {
				out = append(out, "kind "+owned.Kind)
			}
			return some(out)
		}},
		{"install-spec", "Its API has a schema to fill in", required,
			"Write down the fields of spec in the CRDs' schemas.", func(s surveyed) []string {
				return some(s.named("spec", regexp.MustCompile(`.`)))
			}},
		{"install-examples", "Has an example of every kind", false,
			"Put one object of each kind into the annotation alm-examples.", examples},
		{"install-requests", "Requests the resources it needs", false,
			"Set CPU and memory requests on every container.", func(s surveyed) []string {
				return s.each("requests", func(c corev1.Container) bool {
					return !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero()
				})
			}},
		{"install-described", "Says what it is", false, "Write a description, and add an icon.",
			func(s surveyed) []string {
				spec := s.CSV.Spec
				if len(strings.TrimSpace(spec.Description)) == 0 || len(spec.Icon) == 0 || spec.Icon[0].Data == "" {
					return nil
				}
				return []string{"description and icon"}
			}},
	}
}

// examples has evidence if every owned kind has one.
func examples(s surveyed) []string {
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
	return some(out)
}

func upgradeChecks() []check {
	return []check{
		{"upgrade-status", "Reports a status on every kind", required,
			"Give every CRD the status subresource, and fill it.", func(s surveyed) []string {
				return everyVersion(s, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
					return v.Subresources != nil && v.Subresources.Status != nil
				},
					"status subresource on")
			}},
		{"upgrade-probes", "Says when it is ready", required,
			"Give every container a readiness probe: OLM takes an upgrade for done when the pods are ready.",
			func(s surveyed) []string {
				return s.each("readiness probe", func(c corev1.Container) bool { return c.ReadinessProbe != nil })
			}},
		{"upgrade-conversion", "Keeps old versions of its API working", required,
			"Serve older versions, and convert between them where their schemas differ.", conversions},
		{"upgrade-edges", "Says what it upgrades from", false,
			"Set replaces, skips or olm.skipRange; a catalog compiled by Bellwether works it out.",
			func(s surveyed) []string {
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
				return some(out)
			}},
		{"upgrade-leader", "Elects a leader while two versions run", false,
			"Elect a leader through a Lease, so that old and new pods do not act at once.", func(s surveyed) []string {
				return some(s.writes("coordination.k8s.io", "leases"))
			}},
		{"upgrade-operand", "Knows which version it runs for its users", false,
			"Have a field version in spec or status, or name operands by RELATED_IMAGE variables.", operands},
		{"upgrade-pinned", "Names images by digest", false,
			"Name images by digest, as bellwether bundle build --pin does.", func(s surveyed) []string {
				return s.each("digest", func(c corev1.Container) bool { return strings.Contains(c.Image, "@sha256:") })
			}},
	}
}

func everyVersion(s surveyed, ok func(apiextensionsv1.CustomResourceDefinitionVersion) bool, what string) []string {
	for _, crd := range s.CRDs {
		for _, v := range crd.Spec.Versions {
			if v.Served && !ok(v) {
				return nil
			}
		}
	}
	if len(s.CRDs) == 0 {
		return nil
	}
	return []string{what + " " + counted(len(s.CRDs), "CRD")}
}

// conversions has evidence if every CRD has one version, or converts between them.
func conversions(s surveyed) []string {
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
		return []string{"one version of " + counted(len(s.CRDs), "CRD") + ", nothing to convert"}
	}
	return some(out)
}

// version is of names that mean the version of what runs, unlike apiVersion or resourceVersion.
var version = regexp.MustCompile(`^(version|release|` +
	`(operator|operand|server|cluster|engine|image|current|desired|target|observed)Version)$`)

func operands(s surveyed) []string {
	out := slices.Concat(s.named("spec", version), s.named("status", version))
	for name, c := range s.containers {
		for _, e := range c.Env {
			if strings.HasPrefix(e.Name, registryv1.RelatedImagePrefix) {
				out = append(out, e.Name+" of "+name)
			}
		}
	}
	return some(out)
}

var (
	backup   = regexp.MustCompile(`(?i)(backup|snapshot)`)
	restore  = regexp.MustCompile(`(?i)(restore|recoverFrom|recoverySource|bootstrapFrom)`)
	storage  = regexp.MustCompile(`(?i)^(storage.*|volumeClaim.*|persistence|persistentVolume.*|pvc.*)$`)
	replicas = regexp.MustCompile(`(?i)^(replicas|size|instances|members|.*Replicas)$`)
	failover = regexp.MustCompile(`(?i)(failover|switchover|standby|quorum|highAvailability)`)
)

func lifecycleChecks() []check {
	return []check{
		{"lifecycle-backup", "Backs up", required, "Have a kind or a field for backups.", func(s surveyed) []string {
			return some(slices.Concat(s.kinds(backup), s.named("spec", backup),
				s.writes("snapshot.storage.k8s.io", "volumesnapshots")))
		}},
		{"lifecycle-restore", "Restores", required, "Have a kind or a field to restore from.",
			func(s surveyed) []string {
				return some(slices.Concat(s.kinds(restore), s.named("spec", restore)))
			}},
		{"lifecycle-scale", "Scales what it runs", false,
			"Add the scale subresource, or a field for the number of replicas.", scales},
		{"lifecycle-failover", "Survives the loss of a node", false, "Make PodDisruptionBudgets, and fail over.",
			func(s surveyed) []string {
				return some(slices.Concat(s.named("spec", failover), s.writes("policy", "poddisruptionbudgets"),
					s.objects("PodDisruptionBudget")))
			}},
		{"lifecycle-storage", "Looks after storage", false, "Have fields for storage, so that it can grow.",
			func(s surveyed) []string {
				return some(append(s.named("spec", storage), s.writes("", "persistentvolumeclaims")...))
			}},
		{"lifecycle-cleanup", "Cleans up behind itself", false, "Use finalizers, or spec.cleanup.", cleanups},
	}
}

func scales(s surveyed) []string {
	var out []string
	for _, crd := range s.CRDs {
		for _, v := range crd.Spec.Versions {
			if v.Subresources != nil && v.Subresources.Scale != nil {
				out = append(out, "scale subresource of "+crd.Spec.Names.Kind)
			}
		}
	}
	return some(append(out, s.named("spec", replicas)...))
}

func cleanups(s surveyed) []string {
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
	return some(out)
}

const monitoring = "monitoring.coreos.com"

var metricsPort = regexp.MustCompile(`(?i)metrics|prometheus`)

func insightChecks() []check {
	return []check{
		{"insight-metrics", "Shows metrics", required,
			"Ship a ServiceMonitor, or make one for each object; name the port metrics.", metrics},
		{"insight-alerts", "Comes with alerts", required, "Ship PrometheusRules, or make them for each object.",
			func(s surveyed) []string {
				return some(append(s.objects("PrometheusRule"), s.writes(monitoring, "prometheusrules")...))
			}},
		{"insight-events", "Reports what it does in events", false, "Record events, and request the right to do so.",
			func(s surveyed) []string {
				return some(append(s.writes("", "events"), s.writes("events.k8s.io", "events")...))
			}},
		{"insight-conditions", "Has conditions in its status", false, "Report conditions in status.conditions.",
			func(s surveyed) []string {
				return some(s.named("status", regexp.MustCompile(`^conditions$`)))
			}},
		{"insight-dashboards", "Comes with dashboards", false, "Ship a ConfigMap with the label grafana_dashboard.",
			dashboards},
	}
}

// metrics has evidence in ports, Services, monitors, or the right to make monitors.
func metrics(s surveyed) []string {
	out := append(s.objects("ServiceMonitor", "PodMonitor"), s.writes(monitoring, "servicemonitors", "podmonitors")...)
	for name, c := range s.containers {
		for _, p := range c.Ports {
			if metricsPort.MatchString(p.Name) {
				out = append(out, "port "+p.Name+" of "+name)
			}
		}
	}
	for _, o := range s.Objects {
		if o.GetKind() == "Service" && metricsPort.MatchString(o.GetName()) {
			out = append(out, "Service "+o.GetName())
		}
	}
	return some(out)
}

func dashboards(s surveyed) []string {
	var out []string
	for _, o := range s.Objects {
		labels := o.GetLabels()
		_, grafana := labels["grafana_dashboard"]
		_, console := labels["console.openshift.io/dashboard"]
		if o.GetKind() == "ConfigMap" && (grafana || console) || o.GetKind() == "GrafanaDashboard" {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	return some(append(out, s.writes("grafana.integreatly.org", "grafanadashboards")...))
}

var (
	autoscale = regexp.MustCompile(`(?i)(autoscal|minReplicas|maxReplicas|scaledObject)`)
	heal      = regexp.MustCompile(`(?i)(autoHeal|selfHeal|autoRepair|remediat|autoRecover|autoFailover)`)
	tune      = regexp.MustCompile(`(?i)(autoTun|rebalanc|autoOptimi|compaction|anomal)`)
)

func pilotChecks() []check {
	return []check{
		{"pilot-scale", "Scales by itself", required, "Make HorizontalPodAutoscalers, or have fields for autoscaling.",
			func(s surveyed) []string {
				return some(slices.Concat(s.named("spec", autoscale),
					s.writes("autoscaling", "horizontalpodautoscalers"),
					s.writes("keda.sh", "scaledobjects"),
					s.writes("autoscaling.k8s.io", "verticalpodautoscalers"),
					s.objects("HorizontalPodAutoscaler", "VerticalPodAutoscaler")))
			}},
		{"pilot-heal", "Heals by itself", required, "Have fields for healing, or take pods away that do not work.",
			func(s surveyed) []string {
				out := s.named("spec", heal)
				for _, r := range s.rules {
					evicts := slices.Contains(r.Resources, "pods/eviction")
					if evicts || slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, "pods") &&
						slices.Contains(r.Verbs, "delete") {
						out = append(out, "may delete pods")
					}
				}
				return some(out)
			}},
		{"pilot-tune", "Tunes by itself", false, "Have fields for tuning or rebalancing.",
			func(s surveyed) []string { return some(s.named("spec", tune)) }},
	}
}
