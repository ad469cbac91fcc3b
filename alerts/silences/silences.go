// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silences decides which silences Alertmanager has to have, what happens to
// the incidents that they hide, and of which operators they exclude time from error
// budgets. It makes the hub's own AlertSilences, for upgrades, vetoes
// and clusters that are being removed (Automatic), and of all AlertSilences it plans what
// to do in Alertmanager and in PagerDuty (Next).
//
// It is pure: no client, no clock. It never touches a silence that the hub did not make.
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
	"github.com/bellwether-dev/bellwether/phrase"
)

// DefaultMax is how long a silence may last.
const DefaultMax = 24 * time.Hour

// By whom Alertmanager says that the hub's silences are, before the owner's name, and how
// a comment ends that names the AlertSilence.
const by = "bellwether: "

var named = regexp.MustCompile(`\(AlertSilence ([^/() ]+)/([^/() ]+)\)$`)

// ObjectOf names the AlertSilence that a silence in Alertmanager was made of. It returns
// false for a silence that the hub did not make.
func ObjectOf(s alertmanager.Silence) (types.NamespacedName, bool) {
	found := named.FindStringSubmatch(s.Comment)
	if found == nil || !strings.HasPrefix(s.By, by) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: found[1], Name: found[2]}, true
}

// start is when an AlertSilence begins.
func start(s *v1alpha1.AlertSilence) time.Time {
	if s.Spec.Start != nil {
		return s.Spec.Start.Time
	}
	return s.CreationTimestamp.Time
}

// Problem says why an AlertSilence is not in force although its time has not ended: a
// reason of a condition, and a message for a person. It is zero where nothing is wrong.
type Problem struct{ Reason, Message string }

// check says what is wrong with an AlertSilence itself.
func check(in Input, s *v1alpha1.AlertSilence) Problem {
	if s.Spec.Scope == v1alpha1.SilenceFleet && s.Namespace != in.Namespace {
		return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("a silence with the scope Fleet has to be in namespace "+
			"%s", in.Namespace)}
	}
	if latest := start(s).Add(in.Max); s.Spec.End.After(latest) {
		return Problem{v1alpha1.ReasonEndTooLate, fmt.Sprintf("a silence may last %s, so that spec.end may be %s at "+
			"the latest; it is %s. The hub's flag --max-silence permits longer ones", in.Max,
			phrase.Time(latest), phrase.Time(s.Spec.End.Time))}
	}
	if s.Spec.Clusters == nil {
		return Problem{}
	}
	if _, err := metav1.LabelSelectorAsSelector(s.Spec.Clusters.Selector); err != nil {
		return Problem{v1alpha1.ReasonInvalidSpec, "spec.clusters.selector: " + err.Error()}
	}
	if len(clustersOf(s, in.Clusters)) == 0 {
		return Problem{
			v1alpha1.ReasonNoClusters,
			"spec.clusters.selector matches no FleetCluster, so nothing is silenced",
		}
	}
	return Problem{}
}

// clustersOf are the names of the clusters that a silence is about, sorted.
func clustersOf(s *v1alpha1.AlertSilence, clusters []v1alpha1.FleetCluster) []string {
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

// wanted is the silence that Alertmanager has to have of an AlertSilence, without an ID.
// Its matchers are sorted by label.
func wanted(in Input, s *v1alpha1.AlertSilence) alertmanager.Silence {
	comment := phrase.OneLine(s.Spec.Reason)
	if s.Spec.ExcludeFromBudgets {
		comment += "; excluded from error budgets"
	}
	out := alertmanager.Silence{By: by + phrase.OneLine(s.Spec.Owner),
		Comment: fmt.Sprintf("%s (AlertSilence %s/%s)", comment, s.Namespace, s.Name),
		Starts:  start(s).UTC(), Ends: s.Spec.End.UTC()}
	add := func(m alertmanager.Matcher) { out.Matchers = append(out.Matchers, m) }
	// The alert that tells of silences which hide pages is never silenced.
	add(alertmanager.Matcher{Name: "alertname", Value: slo.AlertSilenceHides, Negated: true})
	add(alertmanager.Matcher{Name: "alertname", Value: "Bellwether.+", Regex: true})
	if s.Spec.Clusters != nil {
		add(oneOf(series.Cluster, clustersOf(s, in.Clusters)))
	}
	if len(s.Spec.Operators) > 0 {
		add(oneOf(series.Operator, slices.Sorted(slices.Values(s.Spec.Operators))))
	}
	if s.Spec.Scope != v1alpha1.SilenceFleet {
		add(alertmanager.Matcher{Name: series.OperatorNamespace, Value: s.Namespace})
	}
	if s.Labels[v1alpha1.LabelAutomaticSilence] == CauseUpgrade {
		// A release that is to blame pages, also if this is its only cluster.
		add(alertmanager.Matcher{Name: series.Scope, Value: series.ScopeOperator})
	}
	if s.Spec.Alerts == v1alpha1.SilenceTickets {
		add(alertmanager.Matcher{Name: series.Severity, Value: series.Ticket})
	}
	return out
}

// oneOf matches values as they are.
func oneOf(label string, values []string) alertmanager.Matcher {
	if len(values) == 1 {
		return alertmanager.Matcher{Name: label, Value: values[0]}
	}
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		quoted = append(quoted, regexp.QuoteMeta(value))
	}
	return alertmanager.Matcher{Name: label, Value: strings.Join(quoted, "|"), Regex: true}
}

// isSame tells whether two silences hide the same: Alertmanager sorts matchers in its own
// way, and cuts times to milliseconds.
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

// hides tells whether a silence selects an alert, whatever its times are. Alertmanager's
// own expressions are anchored; what cannot be compiled selects nothing.
func hides(s alertmanager.Silence, alert map[string]string) bool {
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
