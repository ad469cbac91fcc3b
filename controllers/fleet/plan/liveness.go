// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// APIServer is what the agent last reported about the API server of its own
// cluster.
type APIServer struct {
	// Checked is false until the agent has reported a check.
	Checked bool
	// UnreachableSince is the agent's text for the time of the first failed check;
	// empty where the last check succeeded.
	UnreachableSince string
	// Error of the first failed check.
	Error string
}

// IsReachable tells whether the agent's last check succeeded.
func (a APIServer) IsReachable() bool { return a.Checked && a.UnreachableSince == "" }

// IsOnline tells whether the last renewal that the hub saw is still valid, or the hub could not see it become invalid.
func (l Lease) IsOnline(now time.Time) bool {
	return l.Found && !l.validFrom().IsZero() && now.Before(l.expiresAt())
}

// expiresAt is when the agent counts as offline without another renewal.
func (l Lease) expiresAt() time.Time { return l.validFrom().Add(l.Duration) }

func (l Lease) validFrom() time.Time {
	if l.ValidFrom.After(l.SeenAt) {
		return l.ValidFrom
	}
	return l.SeenAt
}

// isReachable tells whether the agent reports what its cluster's API server says
// now.
func isReachable(in Input) bool { return in.Lease.IsOnline(in.Now) && in.Lease.APIServer.IsReachable() }

// setLiveness sets the conditions Online, APIServerReachable and OLMAvailable, and
// returns after how long they may change without any news; zero: never.
func setLiveness(in Input, status *v1alpha1.FleetClusterStatus) time.Duration {
	set := func(conditionType string, holds bool, reason, message string) {
		conditions.Set(&status.Conditions, in.Cluster.Generation, conditionType, holds, reason, message)
	}
	unknown := func(conditionType, reason, message string) {
		conditions.SetUnknown(&status.Conditions, in.Cluster.Generation, conditionType, reason, message)
	}
	switch {
	case !in.Lease.Found:
		set(v1alpha1.ConditionOnline, false, v1alpha1.ReasonNeverJoined, neverJoined(in.Cluster.Name))
		unknown(v1alpha1.ConditionAPIServerReachable, v1alpha1.ReasonNeverJoined,
			"the agent checks the API server once it has joined")
		set(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonNeverJoined,
			"the agent looks for OLM once it has joined")
		return 0
	case !in.Lease.IsOnline(in.Now):
		expired, offline, message := v1alpha1.ReasonLeaseExpired, v1alpha1.ReasonAgentOffline, leaseExpired(in)
		switch {
		case isRevoked(in):
			expired, message = v1alpha1.ReasonAccessRevoked, accessRevoked(in.Cluster.Name)
		case isSaidToHibernate(in):
			expired, offline = v1alpha1.ReasonHibernating, v1alpha1.ReasonHibernating
			message = hibernating(in.Cluster.Status.Source)
		}
		set(v1alpha1.ConditionOnline, false, expired, message)
		unknown(v1alpha1.ConditionAPIServerReachable, offline, message)
		unknown(v1alpha1.ConditionOLMAvailable, offline, message)
		return 0
	}
	set(v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "the agent renews its Lease")
	switch {
	case !in.Lease.APIServer.Checked:
		unknown(v1alpha1.ConditionAPIServerReachable, v1alpha1.ReasonWaiting, notChecked)
		unknown(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonWaiting, notChecked)
	case !in.Lease.APIServer.IsReachable():
		message := apiServerUnreachable(in.Lease.APIServer)
		set(v1alpha1.ConditionAPIServerReachable, false, v1alpha1.ReasonAPIServerUnreachable, message)
		unknown(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonAPIServerUnreachable, message)
	default:
		set(v1alpha1.ConditionAPIServerReachable, true, v1alpha1.ReasonAPIServerReachable,
			"the API server answers the agent")
		switch {
		case !in.Lease.OLMChecked:
			unknown(v1alpha1.ConditionOLMAvailable, v1alpha1.ReasonWaiting, olmNotChecked)
		case in.Lease.Versions.OLM == "":
			set(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonOLMMissing, olmMissing)
		default:
			set(v1alpha1.ConditionOLMAvailable, true, v1alpha1.ReasonSucceeded, "the cluster serves OLM's API")
		}
	}
	return in.Lease.expiresAt().Sub(in.Now)
}

// staleSince returns since when the hub gets no current reports from the cluster;
// nil while it does, and before the first report. The time is the hub's: clocks of
// clusters are never compared.
func staleSince(in Input) *metav1.Time {
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

func neverJoined(cluster string) string {
	return fmt.Sprintf("no agent has reported yet: install it with `bellwether fleet join %s`", cluster)
}

// isRevoked tells whether the agent's last renewal was made with a token of a ServiceAccount that was deleted since.
func isRevoked(in Input) bool {
	return in.Account != "" && in.Lease.Account != "" && in.Account != in.Lease.Account
}

func accessRevoked(cluster string) string {
	return fmt.Sprintf("the agent's access was revoked: the ServiceAccount that its tokens belong to was deleted. "+
		"Join the cluster again with `bellwether fleet join %s --cluster-kubeconfig FILE`", cluster)
}

func leaseExpired(in Input) string {
	since := "the hub started"
	if !in.Lease.SeenAt.IsZero() {
		since = phrase.Time(in.Lease.SeenAt)
	}
	text := fmt.Sprintf("the agent has not renewed its Lease since %s: check the agent on the cluster, and its "+
		"connection to the hub", since)
	if source := in.Cluster.Status.Source; source.SaysStopped() {
		text += "; " + powerUnknown(source)
	}
	return text
}

func apiServerUnreachable(a APIServer) string {
	return fmt.Sprintf("the agent cannot reach the API server of its own cluster since %s (%s): check the cluster's "+
		"control plane; the agent tries again at every renewal of its Lease",
		a.UnreachableSince, cmp.Or(a.Error, "no error reported"))
}
