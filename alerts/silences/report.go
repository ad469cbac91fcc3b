// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxListed is how many incidents, and how many subjects of pages, a status lists.
const maxListed = 20

// Report returns the status of an AlertSilence from the silences in Alertmanager after
// the Decision was carried out. failed is the problem of creating the silence, or zero.
func Report(in Input, s *v1alpha1.AlertSilence, failed Problem) v1alpha1.AlertSilenceStatus {
	out := *s.Status.DeepCopy()
	out.ObservedGeneration = s.Generation
	out.IDs, out.HiddenAlerts, out.HiddenPages, out.Hidden = nil, 0, 0, nil
	key := s.Namespace + "/" + s.Name
	for _, present := range in.Present {
		object, isOwn := FindObject(present)
		if isOwn && object.String() == key && present.Ends.After(in.Now) && !present.Starts.After(in.Now) {
			out.IDs = append(out.IDs, present.ID)
		}
	}
	slices.Sort(out.IDs)
	out.IDs = out.IDs[:min(len(out.IDs), 10)] // the limit of the API
	countHidden(in, &out)
	if len(out.IDs) == 0 {
		out.ActiveSince = nil
	} else if out.ActiveSince == nil {
		out.ActiveSince = &metav1.Time{Time: in.Now.Truncate(time.Second)}
	}
	out.ResolvedIncidents = listResolved(in.Records, key)
	summary := summarize(in, s, out, failed)
	conditions.Summarize(&out.Conditions, s.Generation, summary)
	conditions.Set(&out.Conditions, s.Generation, v1alpha1.ConditionActive, len(out.IDs) > 0, summary.Reason,
		summary.Message)
	reportExclusion(in, s, &out)
	return out
}

// Unreachable returns the status of an AlertSilence if Alertmanager could not be read. It keeps the previous values.
func Unreachable(in Input, s *v1alpha1.AlertSilence, failed Problem) v1alpha1.AlertSilenceStatus {
	out := *s.Status.DeepCopy()
	out.ObservedGeneration = s.Generation
	summary := conditions.Summary{State: conditions.InProgress, Reason: failed.Reason, Message: failed.Message}
	switch {
	case failed.Reason == v1alpha1.ReasonNoAlertmanager:
		summary.State = conditions.Stalled
	case !s.Spec.End.After(in.Now): // the state of an ended silence does not depend on Alertmanager
		summary = newEndedSummary(s)
	}
	conditions.Summarize(&out.Conditions, s.Generation, summary)
	reportExclusion(in, s, &out)
	return out
}

// countHidden sets in a status how many alerts its silences hide, how many of these alerts page, and the
// operators and clusters with the most hidden pages. A page without an operator is about its cluster.
func countHidden(in Input, status *v1alpha1.AlertSilenceStatus) {
	pages := map[v1alpha1.HiddenPages]int32{}
	for _, a := range in.Alerts {
		if !slices.ContainsFunc(a.SilencedBy, func(id string) bool { return slices.Contains(status.IDs, id) }) {
			continue
		}
		status.HiddenAlerts++
		if a.Labels[series.Severity] != series.Page {
			continue
		}
		status.HiddenPages++
		subject := v1alpha1.HiddenPages{OperatorNamespace: a.Labels[series.OperatorNamespace],
			Operator: a.Labels[series.Operator]}
		if subject.Operator == "" {
			subject.Cluster = a.Labels[series.Cluster]
		}
		pages[subject]++
	}
	for subject, n := range pages {
		subject.Pages = n
		status.Hidden = append(status.Hidden, subject)
	}
	slices.SortFunc(status.Hidden, func(a, b v1alpha1.HiddenPages) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.OperatorNamespace, b.OperatorNamespace),
			cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Cluster, b.Cluster))
	})
	status.Hidden = status.Hidden[:min(len(status.Hidden), maxListed)]
}

// listResolved returns up to maxListed incidents that were resolved for a silence and not opened again.
func listResolved(records []Record, silence string) []v1alpha1.ResolvedIncident {
	var out []v1alpha1.ResolvedIncident
	for _, r := range records {
		if r.Silence == silence && r.Reopened == nil && len(out) < maxListed {
			out = append(out, v1alpha1.ResolvedIncident{
				DedupKey: r.DedupKey,
				Alert:    r.Labels["alertname"],
				About: phrase.Truncate(
					describeIncident(r.Labels),
					512,
				),
				ResolvedAt: metav1.NewTime(r.Resolved.Truncate(time.Second)),
			})
		}
	}
	return out
}

// describeIncident describes the subject of an incident by its labels.
func describeIncident(labels map[string]string) string {
	var parts []string
	if op := labels[series.Operator]; op != "" {
		parts = append(parts, labels[series.OperatorNamespace]+"/"+op)
	}
	if v := labels[series.Version]; v != "" {
		parts = append(parts, "version "+v)
	}
	if c := labels[series.Cluster]; c != "" {
		parts = append(parts, "cluster "+c)
	}
	return strings.Join(parts, ", ")
}

func newEndedSummary(s *v1alpha1.AlertSilence) conditions.Summary {
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonEnded,
		Message: "the silence ended at " + phrase.Time(s.Spec.End.Time)}
}

// summarize returns the state of an AlertSilence for a person. failed is
// the problem of creating the silence in Alertmanager, or zero.
func summarize(in Input, s *v1alpha1.AlertSilence, status v1alpha1.AlertSilenceStatus,
	failed Problem) conditions.Summary {
	problem := checkSilence(in, s)
	switch {
	case !s.Spec.End.After(in.Now):
		return newEndedSummary(s)
	case problem.Reason != "":
		return conditions.Summary{State: conditions.Stalled, Reason: problem.Reason, Message: problem.Message}
	case readStart(s).After(in.Now):
		return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonScheduled,
			Message: "the silence begins at " + phrase.Time(readStart(s))}
	case failed.Reason != "":
		return conditions.Summary{State: conditions.InProgress, Reason: failed.Reason, Message: failed.Message}
	case len(status.IDs) == 0:
		return conditions.Summary{State: conditions.InProgress, Reason: v1alpha1.ReasonWaiting,
			Message: "Alertmanager does not have the silence yet"}
	}
	message := "no user is notified until " + phrase.Time(s.Spec.End.Time)
	if status.HiddenAlerts > 0 {
		message += fmt.Sprintf("; it hides %s, of which %d page", phrase.Count(status.HiddenAlerts, "firing alert"),
			status.HiddenPages)
	}
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonInForce, Message: message}
}
