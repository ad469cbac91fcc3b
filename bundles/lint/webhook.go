// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// listWebhookRules returns the rules about the webhooks of the operator.
func listWebhookRules() []Rule {
	return append([]Rule{{
		ID: "webhook-fail-closed", Title: "Writes fail while the operator's only Pod is not running", Severity: Error,
		Check: checkEachWebhook(checkFailClosed),
		Why: "With `failurePolicy: Fail` (which is the default) and one replica, the API server refuses every " +
			"matching write while the Pod restarts, moves to another node or is upgraded. For kinds of others " +
			"this is an error; for the operator's own kinds, and where `objectSelector` takes only objects that have " +
			"a label for it, a warning.",
		Fix: "Run two replicas with a PodDisruptionBudget. Or restrict the webhook by `objectSelector` to objects " +
			"with a label that users set for it. Or set `failurePolicy: Ignore`, and have the operator " +
			"repeat the check when it reconciles.",
	}, {
		ID: "webhook-timeout", Title: "A webhook has too long a time-out, or none", Severity: Warning,
		Check: checkEachWebhook(checkTimeout),
		Why: "A write waits this long when the operator does not answer. Clients give up after 30 seconds or less, " +
			"and each waiting request uses capacity of the API server. The default is 10 seconds, which may be too " +
			"long for the webhook.",
		Fix: fmt.Sprintf("Set `timeoutSeconds` to what the webhook needs, at most %d.", maxTimeout),
	}, {
		ID: "webhook-blocks-itself", Title: "A webhook can keep its own operator from starting", Severity: Error,
		Check: checkEachWebhook(checkBlocksItself),
		Why: "The webhook must approve the Pods (or Deployments, Secrets, ...) of its own operator. Once the last " +
			"Pod is gone, no Pod can approve the next one, and the cluster stays in this state until somebody " +
			"deletes the webhook.",
		Fix: "Restrict `rules` to the operator's own kinds, or exclude the operator's Pods by `objectSelector`, or " +
			"set `failurePolicy: Ignore`.",
	}, {
		ID: "webhook-side-effects", Title: "A webhook does not say that it has no side effects", Severity: Error,
		Check: checkEachWebhook(checkSideEffects),
		Why: "The API server refuses a webhook of `admissionregistration.k8s.io/v1` whose `sideEffects` is anything " +
			"but None or NoneOnDryRun, so the operator is never installed. Otherwise a dry run would change something.",
		Fix: "Set `sideEffects: None`; where the webhook does change something, have it look at `dryRun`, and set " +
			"NoneOnDryRun.",
	}, {
		ID: "webhook-match-policy", Title: "A webhook can be bypassed by another version of the API", Severity: Warning,
		Check: checkEachWebhook(checkMatchPolicy),
		Why: "With `matchPolicy: Exact` a request through a version that `rules` does not name is not checked. The " +
			"webhook must be changed for each version that is added later.",
		Fix: "Leave `matchPolicy` out: its default is Equivalent.",
	}, {
		ID: "webhook-conversion", Title: "A conversion webhook does not fit its CustomResourceDefinitions",
		Severity: Error, Check: checkEachWebhook(checkConversionWebhook),
		Why: "OLM writes the webhook into the CustomResourceDefinitions that it names. Where one is not in the " +
			"bundle, keeps unknown fields, or the webhook accepts no version of ConversionReview that the API server " +
			"knows (`v1` and `v1beta1`), the ClusterServiceVersion fails.",
		Fix: "Name CustomResourceDefinitions of the bundle in `conversionCRDs`, with `preserveUnknownFields: false`, " +
			"and `v1` or `v1beta1`, whichever the webhook accepts, in `admissionReviewVersions`.",
	}, {
		ID: "webhook-deployment", Title: "A webhook belongs to no deployment", Severity: Error,
		Check: checkEachWebhook(checkWebhookDeployment),
		Why: "OLM makes the Service of a webhook, and mounts its certificate, by the Deployment that it names. " +
			"Without it the installation fails.",
		Fix: "Set `deploymentName` to the name of one of `spec.install.spec.deployments`.",
	}}, newCertificateRule())
}

// newCertificateRule returns the rule about certificates of webhooks.
func newCertificateRule() Rule {
	return Rule{
		ID: "webhook-certificate", Title: "A webhook is served with a certificate that is not OLM's", Severity: Error,
		Check: checkCertificates,
		Why: "OLM makes the certificate of webhooks, mounts it as `tls.crt` and `tls.key` at `" +
			bundles.WebhookCertificates + "`, and writes its CA into the webhook configurations. The API server " +
			"trusts no other: where the operator serves a certificate that it made itself, or that cert-manager, a " +
			"chart, a Job or a user put into a Secret, each call fails, and with `failurePolicy: Fail` each write. " +
			"Where the Secret may be for something else, and for flags, this is a warning.",
		Fix: "Have the operator read its certificate from `" + bundles.WebhookCertificates + "`, by a flag such as " +
			"`--webhook-cert-path` or a variable, remove the volume, and turn off what makes certificates. Waive " +
			"this finding if the certificate is not that of the webhooks.",
	}
}

// checkCertificates reports the certificates that bundles.OwnCertificates finds. A flag is only a warning, because the
// operator may use it only on clusters without OLM.
func checkCertificates(in *Input) []Finding {
	var out []Finding
	for _, own := range bundles.OwnCertificates(in.Bundle.CSV) {
		message := fmt.Sprintf("container %s of deployment %s %s", own.Container, own.Deployment, own.Description)
		if own.Makes {
			message += ", by which it seems to make certificates"
		} else {
			message += "; OLM mounts the certificate of its webhooks at " + bundles.WebhookCertificates
		}
		f := newObjectFinding(in.Bundle.CSVObject(), message, own.Path...)
		f.Severity = Warning
		if own.Certain && own.Secret != "" { // the Secret is certainly a certificate of the operator's server
			f.Severity = Error
		}
		out = append(out, f)
	}
	return out
}

// maxTimeout is the maximum number of seconds that a write should wait for a webhook.
const maxTimeout = 10

// webhook is a webhook of the operator, and its bundle.
type webhook struct {
	operatorsv1alpha1.WebhookDescription
	bundle *bundles.Bundle
}

// problem is the result of a check of a webhook; an empty message means no problem. path is below the webhook.
type problem struct {
	severity Severity
	message  string
	path     []any
}

// checkEachWebhook returns a check of the bundle that calls check for each webhook.
func checkEachWebhook(check func(webhook) problem) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for i, w := range in.Bundle.CSV.Spec.WebhookDefinitions {
			p := check(webhook{w, in.Bundle})
			if p.message == "" {
				continue
			}
			f := newObjectFinding(in.Bundle.CSVObject(), fmt.Sprintf("webhook %s %s", w.GenerateName, p.message),
				slices.Concat([]any{"spec", "webhookdefinitions", i}, p.path)...)
			f.Severity = p.severity
			out = append(out, f)
		}
		return out
	}
}

// isConversion reports whether the webhook converts objects, and so is not an admission webhook.
func (w webhook) isConversion() bool { return w.Type == operatorsv1alpha1.ConversionWebhook }

// isFailClosed reports whether the API server refuses a write if the webhook does not answer.
func (w webhook) isFailClosed() bool {
	return !w.isConversion() && (w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail)
}

// countReplicas returns the replicas of the webhook's Deployment; 0 if there is no such Deployment.
func (w webhook) countReplicas() int {
	for _, d := range listDeployments(w.bundle) {
		if d.Name == w.DeploymentName {
			return d.countReplicas()
		}
	}
	return 0
}

// isForOwnKinds reports whether the webhook matches only API groups that the bundle itself defines.
func (w webhook) isForOwnKinds() bool {
	var groups []string
	for _, d := range crd.Definitions(w.bundle) {
		groups = append(groups, d.Spec.Group)
	}
	return !slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(g string) bool { return !slices.Contains(groups, g) })
	})
}

// checkFailClosed reports a webhook that fails closed and has only one replica. This is a warning if the webhook is
// only for the operator's own kinds or for objects with a label for it, and an error otherwise.
func checkFailClosed(w webhook) problem {
	if !w.isFailClosed() || w.countReplicas() != 1 {
		return problem{}
	}
	p := problem{Warning, fmt.Sprintf("fails closed, and deployment %s has one replica", w.DeploymentName),
		[]any{"failurePolicy"}}
	switch {
	case w.isForOwnKinds(): // a warning is sufficient
	case w.isOptIn():
		p.message += ": it stops writes to objects with its labels, also of kinds that are not the operator's own"
	default:
		p.severity, p.message = Error, p.message+": it stops writes to kinds that are not the operator's own"
	}
	return p
}

// isOptIn reports whether the webhook is called only for objects that have a label for it. A selector that only
// excludes objects is not sufficient. Namespaces do not count: OLM has no namespace selector for webhooks, it uses the
// namespaces of the OperatorGroup.
func (w webhook) isOptIn() bool {
	selector, err := metav1.LabelSelectorAsSelector(w.ObjectSelector)
	return w.ObjectSelector != nil && err == nil && !selector.Matches(labels.Set{})
}

// checkTimeout warns about a webhook whose time-out is longer than maxTimeout. A webhook without a time-out is Info.
func checkTimeout(w webhook) problem {
	path := []any{"timeoutSeconds"}
	switch {
	case w.isConversion():
		return problem{} // OLM has no setting for the time-out
	case w.TimeoutSeconds == nil:
		return problem{Info, "has no time-out of its own", path}
	case *w.TimeoutSeconds > maxTimeout:
		return problem{Warning, fmt.Sprintf("has a time-out of %d s", *w.TimeoutSeconds), path}
	}
	return problem{}
}

// essentialResources are the resources that every operator needs to run, by API group.
var essentialResources = map[string][]string{
	"": {"pods", "pods/binding", "secrets", "serviceaccounts", "services", "endpoints",
		"namespaces", "configmaps"},
	"apps":                      {"deployments", "replicasets"},
	"coordination.k8s.io":       {"leases"},
	"rbac.authorization.k8s.io": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
}

// checkBlocksItself reports a webhook that must approve objects that its own operator needs to start. A webhook with an
// object selector is not reported, because the selector can exclude these objects.
func checkBlocksItself(w webhook) problem {
	hasSelector := w.ObjectSelector != nil &&
		(len(w.ObjectSelector.MatchLabels) > 0 || len(w.ObjectSelector.MatchExpressions) > 0)
	if !w.isFailClosed() || hasSelector {
		return problem{}
	}
	for i, rule := range w.Rules {
		isClusterScoped := rule.Scope != nil && *rule.Scope == admissionregistrationv1.ClusterScope
		if isClusterScoped || !isForWrites(rule) {
			continue
		}
		if kinds := listEssentialMatches(rule); len(kinds) > 0 {
			return problem{Error, fmt.Sprintf("has to approve %s, those of its own operator included",
				strings.Join(kinds, ", ")), []any{"rules", i}}
		}
	}
	return problem{}
}

// listEssentialMatches returns the essential resources that a rule matches, sorted.
func listEssentialMatches(rule admissionregistrationv1.RuleWithOperations) []string {
	var out []string
	for group, resources := range essentialResources {
		for _, resource := range resources {
			if hasValue(rule.APIGroups, group) && hasResource(rule.Resources, resource) {
				out = append(out, resource)
			}
		}
	}
	slices.Sort(out)
	return out
}

// isForWrites reports whether a rule matches the creation or the update of objects.
func isForWrites(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.Create || o == admissionregistrationv1.Update ||
			o == admissionregistrationv1.OperationAll
	})
}

// hasResource reports whether the resources of a rule include a resource: "*" does not include subresources,
// "*/*" does.
func hasResource(resources []string, resource string) bool {
	parent, subresource, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(resources, func(r string) bool {
		ruleParent, ruleSubresource, _ := strings.Cut(r, "/")
		matchesParent := ruleParent == "*" || ruleParent == parent
		return matchesParent && (ruleSubresource == subresource || ruleSubresource == "*")
	})
}

// checkSideEffects reports a webhook that has side effects, or does not declare that it has none.
func checkSideEffects(w webhook) problem {
	path := []any{"sideEffects"}
	switch {
	case w.isConversion(): // conversion webhooks have no field sideEffects
	case w.SideEffects == nil:
		return problem{Error, "does not say whether it has side effects", path}
	case *w.SideEffects != admissionregistrationv1.SideEffectClassNone &&
		*w.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun:
		return problem{Error, fmt.Sprintf("has side effects: %s", *w.SideEffects), path}
	}
	return problem{}
}

// checkMatchPolicy reports a webhook that requests through another version of an API can bypass.
func checkMatchPolicy(w webhook) problem {
	if w.MatchPolicy == nil || *w.MatchPolicy != admissionregistrationv1.Exact {
		return problem{}
	}
	return problem{Warning, "matches the versions of its rules only", []any{"matchPolicy"}}
}

// isConversionReview reports whether the API server can send a ConversionReview of the given version. The API server
// sends the first supported version of the list and refuses a definition without one (validation and
// webhook_converter.go of apiextensions-apiserver).
func isConversionReview(version string) bool {
	return version == apiextensionsv1.SchemeGroupVersion.Version ||
		version == apiextensionsv1beta1.SchemeGroupVersion.Version
}

// checkConversionWebhook reports the first reason why a conversion webhook does not fit the CustomResourceDefinitions
// of the bundle. A definition with only one version is Info, because OLM installs it.
func checkConversionWebhook(w webhook) problem {
	if !w.isConversion() {
		return problem{}
	}
	if len(w.ConversionCRDs) == 0 {
		return problem{Error, "converts nothing: it names no CustomResourceDefinition", []any{"conversionCRDs"}}
	}
	if !slices.ContainsFunc(w.AdmissionReviewVersions, isConversionReview) {
		return problem{Error, "accepts neither v1 nor v1beta1 of ConversionReview", []any{"admissionReviewVersions"}}
	}
	for i, name := range w.ConversionCRDs {
		d := crd.Definition(w.bundle, name)
		switch {
		case d == nil:
			return problem{Error, fmt.Sprintf("converts %s, which the bundle does not have", name),
				[]any{"conversionCRDs", i}}
		case d.Spec.PreserveUnknownFields:
			return problem{Error, fmt.Sprintf("converts %s, which keeps unknown fields", name),
				[]any{"conversionCRDs", i}}
		case len(crd.Versions(d)) == 1:
			return problem{Info, fmt.Sprintf("converts %s, which has one version", name), []any{"conversionCRDs", i}}
		}
	}
	return problem{}
}

// checkWebhookDeployment reports a webhook whose Deployment is not in the bundle.
func checkWebhookDeployment(w webhook) problem {
	if w.countReplicas() > 0 || slices.ContainsFunc(listDeployments(w.bundle),
		func(d deployment) bool { return d.Name == w.DeploymentName }) {
		return problem{}
	}
	return problem{Error, fmt.Sprintf("belongs to deployment %q, which the bundle does not have", w.DeploymentName),
		[]any{"deploymentName"}}
}
