// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// APIServer is the agent's last report about the API server of its cluster.
type APIServer struct {
	// Checked is false until the agent has reported a check.
	Checked bool
	// UnreachableSince is the agent's text for the time of the first failed check; empty if the last check succeeded.
	UnreachableSince string
	// Error is the error of the first failed check.
	Error string
}

// IsReachable reports whether the agent's last check succeeded.
func (a APIServer) IsReachable() bool { return a.Checked && a.UnreachableSince == "" }

// IsOnline reports whether the last renewal that the hub saw is still valid. If the hub could not see whether the agent
// renews, the renewal is valid for longer: see ValidFrom.
func (l Lease) IsOnline(now time.Time) bool {
	return l.Found && !l.computeValidFrom().IsZero() && now.Before(l.computeExpiry())
}

// computeExpiry returns when the agent counts as offline without another renewal.
func (l Lease) computeExpiry() time.Time { return l.computeValidFrom().Add(l.Duration) }

// computeValidFrom returns the start of the time in which the Lease is valid.
func (l Lease) computeValidFrom() time.Time {
	if l.ValidFrom.After(l.SeenAt) {
		return l.ValidFrom
	}
	return l.SeenAt
}

// isReachable reports whether the agent is online and reaches the API server of its cluster, so its reports
// are current.
func isReachable(in Input) bool { return in.Lease.IsOnline(in.Now) && in.Lease.APIServer.IsReachable() }

// setLiveness sets the conditions Online, APIServerReachable and OLMAvailable. It returns the time until they can
// change without any event; zero if never.
func setLiveness(in Input, status *v1alpha1.FleetClusterStatus) time.Duration {
	set := func(conditionType string, isTrue bool, reason, message string) {
		conditions.Set(&status.Conditions, in.Cluster.Generation, conditionType, isTrue, reason, message)
	}
	setUnknown := func(conditionType, reason, message string) {
		conditions.SetUnknown(&status.Conditions, in.Cluster.Generation, conditionType, reason, message)
	}
	switch {
	case !in.Lease.Found:
		set(v1alpha1.ConditionOnline, false, v1alpha1.ReasonNeverJoined, explainNeverJoined(in.Cluster.Name))
		setUnknown(v1alpha1.ConditionAPIServerReachable, v1alpha1.ReasonNeverJoined,
			"the agent checks the API server once it has joined")
		set(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonNeverJoined,
			"the agent looks for OLM once it has joined")
		return 0
	case !in.Lease.IsOnline(in.Now):
		onlineReason, unknownReason := v1alpha1.ReasonLeaseExpired, v1alpha1.ReasonAgentOffline
		message := explainExpiry(in)
		switch {
		case isRevoked(in):
			onlineReason, message = v1alpha1.ReasonAccessRevoked, explainRevoked(in.Cluster.Name)
		case isHibernating(in):
			onlineReason, unknownReason = v1alpha1.ReasonHibernating, v1alpha1.ReasonHibernating
			message = explainHibernation(in.Cluster.Status.Source)
		}
		set(v1alpha1.ConditionOnline, false, onlineReason, message)
		setUnknown(v1alpha1.ConditionAPIServerReachable, unknownReason, message)
		setUnknown(v1alpha1.ConditionOLMAvailable, unknownReason, message)
		return 0
	}
	set(v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "the agent renews its Lease")
	switch {
	case !in.Lease.APIServer.Checked:
		setUnknown(v1alpha1.ConditionAPIServerReachable, v1alpha1.ReasonWaiting, notChecked)
		setUnknown(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonWaiting, notChecked)
	case !in.Lease.APIServer.IsReachable():
		message := explainUnreachable(in.Lease.APIServer)
		set(v1alpha1.ConditionAPIServerReachable, false, v1alpha1.ReasonAPIServerUnreachable, message)
		setUnknown(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonAPIServerUnreachable, message)
	default:
		set(v1alpha1.ConditionAPIServerReachable, true, v1alpha1.ReasonAPIServerReachable,
			"the API server answers the agent")
		switch {
		case !in.Lease.OLMChecked:
			setUnknown(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonWaiting, olmNotChecked)
		case in.Lease.Versions.OLM == "":
			set(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonOLMMissing, olmMissing)
		default:
			set(v1alpha1.ConditionOLMAvailable, true, v1alpha1.ReasonSucceeded, "the cluster serves OLM's API")
		}
	}
	return in.Lease.computeExpiry().Sub(in.Now)
}

// findStaleSince returns since when the hub receives no current reports from the cluster. It returns nil while
// the reports are current, and before the first report. The time is from the hub's clock: clocks of clusters are
// never compared.
func findStaleSince(in Input) *metav1.Time {
	switch {
	case !in.Lease.Found, isReachable(in), in.Lease.IsOnline(in.Now) && !in.Lease.APIServer.Checked:
		return nil
	case in.Cluster.Status.StaleSince != nil:
		return in.Cluster.Status.StaleSince
	case in.Lease.IsOnline(in.Now), in.Lease.SeenAt.IsZero():
		return &metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}
	default:
		return &metav1.Time{Time: in.Lease.SeenAt.UTC().Truncate(time.Second)}
	}
}

const (
	olmMissing = "the cluster does not serve OLM's API (operators.coreos.com): install OLM on the cluster; the agent " +
		"checks for it continuously"
	olmNotChecked = "the agent has not looked for OLM on its cluster yet"
	notChecked    = "the agent has not checked the API server of its cluster yet"
)

// explainNeverJoined says that no agent has reported yet.
func explainNeverJoined(cluster string) string {
	return fmt.Sprintf("no agent has reported yet: install it with `bellwether fleet join %s`", cluster)
}

// isRevoked reports whether the ServiceAccount whose token the agent used for its last renewal was deleted.
func isRevoked(in Input) bool {
	return in.Namespace == NamespaceOurs && in.Lease.Account != "" && in.Account != in.Lease.Account
}

// explainRevoked says that the agent lost its access.
func explainRevoked(cluster string) string {
	return fmt.Sprintf("the agent's access was revoked: the ServiceAccount that its tokens belong to was deleted. "+
		"Join the cluster again with `bellwether fleet join %s --cluster-kubeconfig FILE`", cluster)
}

// explainExpiry says since when the agent has not renewed its Lease.
func explainExpiry(in Input) string {
	since := "the hub started"
	if !in.Lease.SeenAt.IsZero() {
		since = phrase.Time(in.Lease.SeenAt)
	}
	text := fmt.Sprintf("the agent has not renewed its Lease since %s: check the agent on the cluster, and its "+
		"connection to the hub", since)
	if source := in.Cluster.Status.Source; source.SaysStopped() {
		text += "; " + explainPowerUnknown(source)
	}
	return text
}

// explainUnreachable says that the agent does not reach the API server of its cluster.
func explainUnreachable(a APIServer) string {
	return fmt.Sprintf("the agent cannot reach the API server of its own cluster since %s (%s): check the cluster's "+
		"control plane; the agent tries again at every renewal of its Lease",
		a.UnreachableSince, cmp.Or(a.Error, "no error reported"))
}
