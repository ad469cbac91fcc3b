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

// webhookRules are about what the operator puts in front of the API server.
func webhookRules() []Rule {
	return append([]Rule{{
		ID: "webhook-fail-closed", Title: "Writes fail while the operator's only Pod is not running", Severity: Error,
		Check: eachWebhook(checkFailClosed),
		Why: "With `failurePolicy: Fail` (which is the default) and one replica, the API server refuses every " +
			"matching write while the Pod restarts, moves to another node or is upgraded. For kinds of others " +
			"this is an error; for the operator's own kinds, and where `objectSelector` takes only objects that have " +
			"a label for it, a warning.",
		Fix: "Run two replicas with a PodDisruptionBudget. Or restrict the webhook by `objectSelector` to objects " +
			"with a label that users set for it. Or set `failurePolicy: Ignore`, and have the operator " +
			"repeat the check when it reconciles.",
	}, {
		ID: "webhook-timeout", Title: "A webhook has too long a time-out, or none", Severity: Warning,
		Check: eachWebhook(checkTimeout),
		Why: "A write waits this long when the operator does not answer. Clients give up after 30 seconds or less, " +
			"and each waiting request uses capacity of the API server. The default is 10 seconds, which may be too " +
			"long for the webhook.",
		Fix: fmt.Sprintf("Set `timeoutSeconds` to what the webhook needs, at most %d.", maxTimeout),
	}, {
		ID: "webhook-blocks-itself", Title: "A webhook can keep its own operator from starting", Severity: Error,
		Check: eachWebhook(checkBlocksItself),
		Why: "It has to approve the Pods (or Deployments, Secrets, ...) that the operator itself consists of, in the " +
			"operator's own namespace. Once the last Pod is gone nothing can approve the next one, and the cluster " +
			"stays in this state until somebody deletes the webhook.",
		Fix: "Restrict `rules` to the operator's own kinds, or exclude the operator's Pods by `objectSelector`, or " +
			"set `failurePolicy: Ignore`.",
	}, {
		ID: "webhook-side-effects", Title: "A webhook does not say that it has no side effects", Severity: Error,
		Check: eachWebhook(checkSideEffects),
		Why: "The API server refuses a webhook of `admissionregistration.k8s.io/v1` whose `sideEffects` is anything " +
			"but None or NoneOnDryRun, so the operator is never installed. Otherwise a dry run would change something.",
		Fix: "Set `sideEffects: None`; where the webhook does change something, have it look at `dryRun`, and set " +
			"NoneOnDryRun.",
	}, {
		ID: "webhook-match-policy", Title: "A webhook can be bypassed by another version of the API", Severity: Warning,
		Check: eachWebhook(checkMatchPolicy),
		Why: "With `matchPolicy: Exact` a request through a version that `rules` does not name is not checked. The " +
			"webhook has to be changed for each version that is added later.",
		Fix: "Leave `matchPolicy` out: its default is Equivalent.",
	}, {
		ID: "webhook-conversion", Title: "A conversion webhook does not fit its CustomResourceDefinitions",
		Severity: Error, Check: eachWebhook(checkConversionWebhook),
		Why: "OLM writes the webhook into the CustomResourceDefinitions that it names. Where one is not in the " +
			"bundle, keeps unknown fields, or the webhook accepts no version of ConversionReview that the API server " +
			"knows (`v1` and `v1beta1`), the ClusterServiceVersion fails.",
		Fix: "Name CustomResourceDefinitions of the bundle in `conversionCRDs`, with `preserveUnknownFields: false`, " +
			"and `v1` or `v1beta1`, whichever the webhook accepts, in `admissionReviewVersions`.",
	}, {
		ID: "webhook-deployment", Title: "A webhook belongs to no deployment", Severity: Error,
		Check: eachWebhook(checkWebhookDeployment),
		Why: "OLM makes the Service of a webhook, and mounts its certificate, by the Deployment that it names. " +
			"Without it the installation fails.",
		Fix: "Set `deploymentName` to the name of one of `spec.install.spec.deployments`.",
	}}, certificateRule())
}

func certificateRule() Rule {
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

// checkCertificates reports what bundles.OwnCertificates finds. A flag is a warning: the operator may use it only where
// there is no OLM.
func checkCertificates(in *Input) []Finding {
	var out []Finding
	for _, own := range bundles.OwnCertificates(in.Bundle.CSV) {
		message := fmt.Sprintf("container %s of deployment %s %s", own.Container, own.Deployment, own.What)
		if own.Makes {
			message += ", by which it seems to make certificates"
		} else {
			message += "; OLM mounts the certificate of its webhooks at " + bundles.WebhookCertificates
		}
		f := at(in.Bundle.CSVObject(), message, own.Path...)
		f.Severity = Warning
		if own.Certain && own.Secret != "" {
			f.Severity = Error
		}
		out = append(out, f)
	}
	return out
}

// maxTimeout is how many seconds a write should wait at most.
const maxTimeout = 10

// webhook is one of the operator's.
type webhook struct {
	operatorsv1alpha1.WebhookDescription
	bundle *bundles.Bundle
}

// problem is what is wrong with a webhook; none without a message. The path is the one below the webhook.
type problem struct {
	severity Severity
	message  string
	path     []any
}

func eachWebhook(check func(webhook) problem) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for i, w := range in.Bundle.CSV.Spec.WebhookDefinitions {
			p := check(webhook{w, in.Bundle})
			if p.message == "" {
				continue
			}
			f := at(in.Bundle.CSVObject(), fmt.Sprintf("webhook %s %s", w.GenerateName, p.message),
				slices.Concat([]any{"spec", "webhookdefinitions", i}, p.path)...)
			f.Severity = p.severity
			out = append(out, f)
		}
		return out
	}
}

func (w webhook) converts() bool { return w.Type == operatorsv1alpha1.ConversionWebhook }

func (w webhook) failsClosed() bool {
	return !w.converts() && (w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail)
}

// replicas are those of the webhook's Deployment; 0 if there is none.
func (w webhook) replicas() int {
	for _, d := range deployments(w.bundle) {
		if d.Name == w.DeploymentName {
			return d.replicas()
		}
	}
	return 0
}

// own says whether all that the webhook matches are kinds that the bundle itself defines.
func (w webhook) own() bool {
	var groups []string
	for _, d := range crd.Definitions(w.bundle) {
		groups = append(groups, d.Spec.Group)
	}
	return !slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(g string) bool { return !slices.Contains(groups, g) })
	})
}

func checkFailClosed(w webhook) problem {
	if !w.failsClosed() || w.replicas() != 1 {
		return problem{}
	}
	p := problem{Warning, fmt.Sprintf("fails closed, and deployment %s has one replica", w.DeploymentName),
		[]any{"failurePolicy"}}
	switch {
	case w.own():
	case w.optsIn():
		p.message += ": it stops writes to objects with its labels, also of kinds that are not the operator's own"
	default:
		p.severity, p.message = Error, p.message+": it stops writes to kinds that are not the operator's own"
	}
	return p
}

// optsIn says whether the webhook is called for no object but those that have a label for it. A selector that only
// excludes objects leaves all others. OLM has no selector of namespaces for webhooks: it takes those of the
// OperatorGroup.
func (w webhook) optsIn() bool {
	selector, err := metav1.LabelSelectorAsSelector(w.ObjectSelector)
	return w.ObjectSelector != nil && err == nil && !selector.Matches(labels.Set{})
}

func checkTimeout(w webhook) problem {
	at := []any{"timeoutSeconds"}
	switch {
	case w.converts():
		return problem{} // OLM has no setting for it
	case w.TimeoutSeconds == nil:
		return problem{Info, "has no time-out of its own", at}
	case *w.TimeoutSeconds > maxTimeout:
		return problem{Warning, fmt.Sprintf("has a time-out of %d s", *w.TimeoutSeconds), at}
	}
	return problem{}
}

// essential are the kinds that an operator consists of, by group and resource. Nothing runs without them.
var essential = map[string][]string{
	"": {"pods", "pods/binding", "secrets", "serviceaccounts", "services", "endpoints",
		"namespaces", "configmaps"},
	"apps":                      {"deployments", "replicasets"},
	"coordination.k8s.io":       {"leases"},
	"rbac.authorization.k8s.io": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
}

func checkBlocksItself(w webhook) problem {
	if !w.failsClosed() || w.ObjectSelector != nil &&
		(len(w.ObjectSelector.MatchLabels) > 0 || len(w.ObjectSelector.MatchExpressions) > 0) {
		return problem{}
	}
	for i, rule := range w.Rules {
		if rule.Scope != nil && *rule.Scope == admissionregistrationv1.ClusterScope || !creates(rule) {
			continue
		}
		if kinds := matched(rule); len(kinds) > 0 {
			return problem{Error, fmt.Sprintf("has to approve %s, those of its own operator included",
				strings.Join(kinds, ", ")), []any{"rules", i}}
		}
	}
	return problem{}
}

// matched are the essential kinds that a rule matches, sorted.
func matched(rule admissionregistrationv1.RuleWithOperations) []string {
	var out []string
	for group, resources := range essential {
		for _, resource := range resources {
			if has(rule.APIGroups, group) && matches(rule.Resources, resource) {
				out = append(out, resource)
			}
		}
	}
	slices.Sort(out)
	return out
}

func creates(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.Create || o == admissionregistrationv1.Update ||
			o == admissionregistrationv1.OperationAll
	})
}

// matches says whether a rule's resources include one: "*" does not include subresources, "*/*" does.
func matches(resources []string, resource string) bool {
	main, sub, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(resources, func(r string) bool {
		m, s, _ := strings.Cut(r, "/")
		return (m == "*" || m == main) && (s == sub || s == "*")
	})
}

func checkSideEffects(w webhook) problem {
	at := []any{"sideEffects"}
	switch {
	case w.converts():
	case w.SideEffects == nil:
		return problem{Error, "does not say whether it has side effects", at}
	case *w.SideEffects != admissionregistrationv1.SideEffectClassNone &&
		*w.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun:
		return problem{Error, fmt.Sprintf("has side effects: %s", *w.SideEffects), at}
	}
	return problem{}
}

func checkMatchPolicy(w webhook) problem {
	if w.MatchPolicy == nil || *w.MatchPolicy != admissionregistrationv1.Exact {
		return problem{}
	}
	return problem{Warning, "matches the versions of its rules only", []any{"matchPolicy"}}
}

// isConversionReview says whether the API server can send a ConversionReview of that version. It sends the first of
// the list that it knows, and refuses a definition without one: validation and webhook_converter.go of
// apiextensions-apiserver.
func isConversionReview(version string) bool {
	return version == apiextensionsv1.SchemeGroupVersion.Version ||
		version == apiextensionsv1beta1.SchemeGroupVersion.Version
}

func checkConversionWebhook(w webhook) problem {
	if !w.converts() {
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

func checkWebhookDeployment(w webhook) problem {
	if w.replicas() > 0 || slices.ContainsFunc(deployments(w.bundle),
		func(d deployment) bool { return d.Name == w.DeploymentName }) {
		return problem{}
	}
	return problem{Error, fmt.Sprintf("belongs to deployment %q, which the bundle does not have", w.DeploymentName),
		[]any{"deploymentName"}}
}
