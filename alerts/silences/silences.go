// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silences decides which silences Alertmanager must have, what happens to the incidents that
// they hide, and for which operators they exclude time from error budgets. It creates the hub's own
// AlertSilences for upgrades, vetoes, hibernating clusters and clusters that are being removed
// (BuildAutomatic). For all AlertSilences it plans the actions in Alertmanager and in PagerDuty (Next).
//
// It is pure: it has no client and no clock. It never changes a silence that the hub did not create.
package silences

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// DefaultMax is how long a silence may last.
const DefaultMax = 24 * time.Hour

// creatorPrefix precedes the owner's name in the creator of the hub's silences in
// Alertmanager. objectPattern matches the end of their comment, which names the AlertSilence.
const creatorPrefix = "bellwether: "

var objectPattern = regexp.MustCompile(`\(AlertSilence ([^/() ]+)/([^/() ]+)\)$`)

// FindObject returns the AlertSilence that a silence in Alertmanager was
// made from. It returns false for a silence that the hub did not create.
func FindObject(s alertmanager.Silence) (types.NamespacedName, bool) {
	found := objectPattern.FindStringSubmatch(s.Comment)
	if found == nil || !strings.HasPrefix(s.By, creatorPrefix) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: found[1], Name: found[2]}, true
}

// readStart returns when an AlertSilence begins.
func readStart(s *v1alpha1.AlertSilence) time.Time {
	if s.Spec.Start != nil {
		return s.Spec.Start.Time
	}
	return s.CreationTimestamp.Time
}

// Problem is the reason why an AlertSilence is not in force although its time has not ended:
// a reason of a condition, and a message for a person. It is zero if there is no problem.
type Problem struct{ Reason, Message string }

// checkSilence returns a problem of the AlertSilence itself, or zero.
func checkSilence(in Input, s *v1alpha1.AlertSilence) Problem {
	if s.Spec.Scope == v1alpha1.SilenceFleet && s.Namespace != in.Namespace {
		return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("a silence with the scope Fleet must be in namespace "+
			"%s", in.Namespace)}
	}
	if latest := readStart(s).Add(in.Max); s.Spec.End.After(latest) {
		return Problem{v1alpha1.ReasonEndTooLate, fmt.Sprintf("a silence may last %s, so that spec.end may be %s at "+
			"the latest; it is %s. The hub's flag --max-silence permits longer ones", in.Max,
			phrase.Time(latest), phrase.Time(s.Spec.End.Time))}
	}
	if s.Spec.Clusters == nil { // all clusters
		return Problem{}
	}
	if _, err := metav1.LabelSelectorAsSelector(s.Spec.Clusters.Selector); err != nil {
		return Problem{v1alpha1.ReasonInvalidSpec, "spec.clusters.selector: " + err.Error()}
	}
	if len(listClusters(s, in.Clusters)) == 0 {
		return Problem{
			v1alpha1.ReasonNoClusters,
			"spec.clusters.selector matches no FleetCluster, so nothing is silenced",
		}
	}
	return Problem{}
}

// listClusters returns the names of the clusters that a silence
// is about, sorted. The silence must have spec.clusters.
func listClusters(s *v1alpha1.AlertSilence, clusters []v1alpha1.FleetCluster) []string {
	names := slices.Clone(s.Spec.Clusters.Names)
	if s.Spec.Clusters.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(s.Spec.Clusters.Selector)
		for i := range clusters {
			if err == nil && selector.Matches(labels.Set(clusters[i].Labels)) {
				names = append(names, clusters[i].Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// toAlertmanagerSilence returns the silence that Alertmanager must have for an AlertSilence, without an ID.
func toAlertmanagerSilence(in Input, s *v1alpha1.AlertSilence) alertmanager.Silence {
	comment := phrase.OneLine(s.Spec.Reason)
	if s.Spec.ExcludeFromBudgets {
		comment += "; excluded from error budgets"
	}
	out := alertmanager.Silence{By: creatorPrefix + phrase.OneLine(s.Spec.Owner),
		Comment: fmt.Sprintf("%s (AlertSilence %s/%s)", comment, s.Namespace, s.Name),
		Starts:  readStart(s).UTC(), Ends: s.Spec.End.UTC()}
	add := func(m alertmanager.Matcher) { out.Matchers = append(out.Matchers, m) }
	// The alert about silences that hide pages is never silenced.
	add(alertmanager.Matcher{Name: "alertname", Value: slo.AlertSilenceHides, Negated: true})
	add(alertmanager.Matcher{Name: "alertname", Value: "Bellwether.+", Regex: true})
	if s.Spec.Clusters != nil {
		add(matchOneOf(series.Cluster, listClusters(s, in.Clusters)))
	}
	if len(s.Spec.Operators) > 0 {
		add(matchOneOf(series.Operator, slices.Sorted(slices.Values(s.Spec.Operators))))
	}
	if s.Spec.Scope != v1alpha1.SilenceFleet {
		add(alertmanager.Matcher{Name: series.OperatorNamespace, Value: s.Namespace})
	}
	if s.Labels[v1alpha1.LabelAutomaticSilence] == CauseUpgrade {
		// A page about a release is not silenced, even if this is the only cluster of the release.
		add(alertmanager.Matcher{Name: series.Scope, Value: series.ScopeOperator})
	}
	if s.Spec.Alerts == v1alpha1.SilenceTickets {
		add(alertmanager.Matcher{Name: series.Severity, Value: series.Ticket})
	}
	return out
}

// matchOneOf returns a matcher of literal values.
func matchOneOf(label string, values []string) alertmanager.Matcher {
	if len(values) == 1 {
		return alertmanager.Matcher{Name: label, Value: values[0]}
	}
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		quoted = append(quoted, regexp.QuoteMeta(value))
	}
	return alertmanager.Matcher{Name: label, Value: strings.Join(quoted, "|"), Regex: true}
}

// isSame reports whether two silences are equal. The order of matchers and fractions
// of a second are ignored, because Alertmanager sorts matchers and truncates times.
func isSame(present, wanted alertmanager.Silence) bool {
	if len(present.Matchers) != len(wanted.Matchers) || present.By != wanted.By || present.Comment != wanted.Comment {
		return false
	}
	for _, m := range wanted.Matchers {
		if !slices.Contains(present.Matchers, m) {
			return false
		}
	}
	return present.Ends.Sub(wanted.Ends).Abs() < time.Second
}

// canHide reports whether a silence selects an alert, regardless of its times. Regular
// expressions are anchored, as in Alertmanager. An invalid expression matches nothing.
func canHide(s alertmanager.Silence, alert map[string]string) bool {
	for _, m := range s.Matchers {
		value := alert[m.Name]
		matches := m.Value == value
		if m.Regex {
			expression, err := regexp.Compile("^(?:" + m.Value + ")$")
			matches = err == nil && expression.MatchString(value)
		}
		if matches == m.Negated {
			return false
		}
	}
	return true
}
